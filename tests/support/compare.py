"""Comparisons with a tolerance relative to the size of what is compared."""

import numpy as np


def assert_relative(actual, expected, tolerance: float = 1e-9, what: str = "") -> None:
    """`actual` equals `expected` within `tolerance` of the largest entry of `expected` (and of one)."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape} instead of {expected.shape}"
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    error = float(np.abs(actual - expected).max(initial=0.0)) / scale
    assert error <= tolerance, f"{what}: relative error {error:.2e} exceeds {tolerance:.0e}"

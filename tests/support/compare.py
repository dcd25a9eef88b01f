"""Comparison with a tolerance relative to the largest entry."""

import numpy as np

ZERO = 1e-13
"""Differences below this are rounding errors, at any scale."""


def assert_relative(actual, expected, tolerance: float = 1e-9, what: str = "") -> None:
    """Assert equality within `tolerance` times the largest expected entry; differences up to `ZERO` always pass."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape} instead of {expected.shape}"
    scale = float(np.abs(expected).max(initial=0.0))
    difference = float(np.abs(actual - expected).max(initial=0.0))
    if difference <= ZERO:
        return
    error = difference / scale if scale > 0.0 else np.inf
    assert error <= tolerance, f"{what}: relative error {error:.2e} exceeds {tolerance:.0e}"

"""Marker for slow cases of parametrized tests."""

import pytest


def slow(*values):
    """A case for `parametrize` that runs only with the slow tests."""
    return pytest.param(*values, marks=pytest.mark.slow)

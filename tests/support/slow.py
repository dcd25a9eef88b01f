"""Cases of a parametrised test that only the slow run takes."""

import pytest


def slow(*values):
    """One case, given as `parametrize` wants it."""
    return pytest.param(*values, marks=pytest.mark.slow)

"""Status codes: failures inside compiled functions are values, not exceptions."""

from enum import IntEnum


class Status(IntEnum):
    """Status of a rollout or an iterative solve."""

    OK = 0
    """Completed, with finite values."""
    DIVERGED = 1
    """A coordinate or velocity became non-finite or exceeded `DIVERGENCE_LIMIT`."""
    MAX_ITERATIONS = 2
    """An iterative method stopped before it met its tolerance: at its iteration limit or for lack of progress."""


DIVERGENCE_LIMIT = 1e10
"""Magnitude of a coordinate or velocity above which a simulation counts as diverged (as in MuJoCo)."""

"""Result codes: failures inside compiled functions are values, not exceptions."""

from enum import IntEnum


class Status(IntEnum):
    """What became of a rollout or an iterative solve."""

    OK = 0
    """Finished, and every value is finite."""
    DIVERGED = 1
    """A coordinate or velocity became non-finite or larger than `DIVERGENCE_LIMIT`."""
    MAX_ITERATIONS = 2
    """An iterative method stopped before it met its tolerance."""


DIVERGENCE_LIMIT = 1e10
"""A coordinate or velocity beyond this is taken as diverged (MuJoCo uses the same bound)."""

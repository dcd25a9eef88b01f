"""Warnings about contact, shown at the line of the user's own that led to them."""

import sys
import warnings

from hybridsim.core.errors import ModelWarning

_IN_BETWEEN = ("hybridsim", "equinox", "jax", "jaxtyping", "beartype")
"""Packages whose functions stand between the user's line and ours."""


def warn_user(message: str) -> None:
    """Give a `ModelWarning` where the user called the package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _IN_BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, ModelWarning, stacklevel=level)

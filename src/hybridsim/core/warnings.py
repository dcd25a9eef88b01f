"""Warnings that are attributed to the line of user code that caused them."""

import sys
import warnings

from hybridsim.core.errors import ModelWarning

_INTERNAL_PACKAGES = ("hybridsim", "equinox", "jax", "jaxtyping", "beartype")
"""Packages whose stack frames are skipped in the search for user code."""


def warn_user(message: str) -> None:
    """Issue a `ModelWarning` at the line of user code that called the package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INTERNAL_PACKAGES:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, ModelWarning, stacklevel=level)

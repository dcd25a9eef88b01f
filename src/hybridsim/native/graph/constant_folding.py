"""Constant folding: evaluation of graph operations at compile time."""

import math
from collections.abc import Callable

import numpy as np

from hybridsim.native.graph.elementary import FUNCTIONS, reference_function


def divide(x: float, y: float) -> float:
    """Quotient as defined by IEEE 754, division by zero included."""
    if y != 0.0:
        return x / y
    if x == 0.0 or x != x:
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def evaluate_function(name: str, *values: float) -> float:
    """Value of an elementary function; `float32` rounds to single precision."""
    names = {"pow": "power", "atan2": "arctan2", "rem": "fmod"}
    function = reference_function(name) if name in FUNCTIONS else getattr(np, names.get(name, name))
    with np.errstate(all="ignore"):
        return float(function(*values))


def saturate_to_int64(value: float) -> int:
    """A float truncated to int64, saturating at its limits; NaN becomes 0."""
    if value != value:
        return 0
    return int(value) if abs(value) < 2.0**63 else 2**63 - 1 if value > 0.0 else -(2**63)


def _truncating_divide(a: int, b: int) -> int:
    if b == 0:
        return -1
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


INTEGER_OPS: dict[str, Callable[..., int]] = {
    "iadd": lambda a, b: a + b,
    "isub": lambda a, b: a - b,
    "imul": lambda a, b: a * b,
    "iand": lambda a, b: a & b,
    "ior": lambda a, b: a | b,
    "ixor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "ashr": lambda a, b: a >> b,
    "lshr": lambda a, b: (a & (2**64 - 1)) >> b,
    "idiv": _truncating_divide,
    "irem": lambda a, b: a - b * _truncating_divide(a, b),  # the dividend if b is 0
}


def wrap_int64(value: int) -> int:
    """An integer wrapped around to int64."""
    return (value + 2**63) % 2**64 - 2**63

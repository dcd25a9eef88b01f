"""Elementary functions of one argument: the only list of them."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class Function(NamedTuple):
    """An elementary function, named as in C and JAX."""

    cost: int
    """Cost of one evaluation, in additions."""
    reference: str = ""
    """Its name in NumPy, or in `scipy.special` after a dot, if it differs; for constants."""
    is_in_c: bool = True
    """Whether the C library has it; otherwise it needs an expansion into arithmetic in `functions.py`."""


FUNCTIONS = {
    "sin": Function(20),
    "cos": Function(20),
    "tan": Function(40),
    "asin": Function(30, "arcsin"),
    "acos": Function(30, "arccos"),
    "atan": Function(30, "arctan"),
    "sinh": Function(30),
    "cosh": Function(30),
    "tanh": Function(25),
    "asinh": Function(35, "arcsinh"),
    "acosh": Function(35, "arccosh"),
    "atanh": Function(35, "arctanh"),
    "exp": Function(20),
    "exp2": Function(20),
    "expm1": Function(30),
    "log": Function(25),
    "log1p": Function(30),
    "logistic": Function(30, ".expit", is_in_c=False),
    "cbrt": Function(40),
    "erf": Function(60, ".erf"),
    "erfc": Function(60, ".erfc"),
}


def reference_function(name: str) -> Callable[..., Any]:
    """The function in NumPy or SciPy."""
    attribute = FUNCTIONS[name].reference or name
    # imported here because SciPy loads slowly
    module = import_module("scipy.special" if attribute.startswith(".") else "numpy")
    return getattr(module, attribute.removeprefix("."))

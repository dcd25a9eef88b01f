"""What a simulator computes, in words: the name under which its compiled kernels are found on disk.

Two programs of one name must be the same program, also in another process and after a file was edited. So the name
spells out the whole tree of parts with everything in it that is not a number to be handed over, and only parts whose
code belongs to an installed library of a known version can be spelled: a network class of the user's own may be
another one tomorrow, and whatever holds one has no name.
"""

import hashlib
import sys
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from importlib.metadata import version
from types import FunctionType
from typing import Any

import jax
import numpy as np

LIBRARIES = ("builtins", "collections", "functools", "types", "hybridsim", "jax", "jaxlib", "equinox", "numpy")
"""Packages whose code stays the same as long as their version does (hybridsim's own is told by its hash)."""

A_NUMBER, NOTHING = jax.tree.structure(0), jax.tree.structure(None)
"""What JAX calls a leaf is either of them, and one is not the other: what is left out is computed from the model."""


class _Nameless(Exception):
    """Something of which a name would not tell what it does."""


def cache_key(structure: Any, parts: Iterable[Any]) -> str | None:
    """The name of a tree with these other parts; none if something in it is not of a known library.

    Args:
        structure: of the tree, as JAX gives it.
        parts: its leaves that are not arrays: functions and numbers that decide what is computed.
    """
    try:
        spelled = [_tree(structure), *(_value(part) for part in parts)]
    except _Nameless:
        return None
    return "\n".join([f"equinox {version('equinox')}, numpy {np.__version__}", *spelled])


def _tree(structure: Any) -> str:
    if structure == A_NUMBER:
        return "*"
    if structure == NOTHING:
        return "None"
    kind, about = structure.node_data()
    return f"{_value(kind)}[{_value(about)}]({', '.join(_tree(child) for child in structure.children())})"


def _value(x: Any) -> str:
    if x is None or (isinstance(x, bool | int | float | complex | str | bytes) and type(x).__module__ == "builtins"):
        return repr(x)
    if isinstance(x, type) or (callable(x) and hasattr(x, "__qualname__")):
        return _defined(x)
    kind = _defined(type(x))
    if isinstance(x, Enum):
        return f"{kind}.{x.name}"
    if isinstance(x, np.ndarray | np.generic):
        return f"{kind}({x.dtype}, {x.shape}, {hashlib.sha256(x.tobytes()).hexdigest()})"
    if isinstance(x, np.dtype):
        return f"{kind}({x})"
    if isinstance(x, tuple | list):
        return f"{kind}({', '.join(map(_value, x))})"
    if isinstance(x, set | frozenset):
        return f"{kind}({', '.join(sorted(map(_value, x)))})"
    if isinstance(x, dict):
        return f"{kind}({', '.join(f'{_value(k)}: {_value(v)}' for k, v in x.items())})"
    if isinstance(x, partial):
        return f"{kind}({_value(x.func)}, {_value(x.args)}, {_value(x.keywords)})"
    if is_dataclass(x):
        return f"{kind}({', '.join(f'{f.name}={_value(getattr(x, f.name))}' for f in fields(x))})"
    return _marker(x)


def _defined(x: Any) -> str:
    """The full name of a class or function of a library."""
    module, name = str(getattr(x, "__module__", None)), x.__qualname__
    if module.partition(".")[0] not in LIBRARIES:
        raise _Nameless
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is x:
        return f"{module}.{name}"
    if isinstance(x, FunctionType) and x.__closure__ is None and not x.__defaults__ and not x.__kwdefaults__:
        # a library's lambda is told by its line
        return f"{module}.{name}:{x.__code__.co_firstlineno}"
    raise _Nameless


def _marker(x: Any) -> str:
    """The full name of an object that a library's module knows by a name of its own."""
    module = type(x).__module__
    for name, value in vars(sys.modules[module]).items():
        if value is x:
            return f"{module}.{name}"
    raise _Nameless

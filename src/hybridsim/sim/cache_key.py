"""Cache key of a simulator's program, under which its compiled kernels are stored on disk.

Programs with equal keys must be identical, even in another process and after a source file has been edited. The key
therefore serializes the whole pytree with everything that is not a run-time value, and only objects whose code belongs
to an installed library of a known version can be serialized: a user's own network class may have changed by the next
run, so a tree that contains one has no key.
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
"""Packages whose code is determined by their version (hybridsim's own code is identified by its hash)."""

LEAF, NONE = jax.tree.structure(0), jax.tree.structure(None)
"""Tree structures of a leaf and of None."""


class UnidentifiedError(Exception):
    """An object whose behaviour cannot be identified by a text."""


def cache_key(structure: Any, static_leaves: Iterable[Any]) -> str | None:
    """Cache key of a tree with these static leaves; None if it contains an object from outside `LIBRARIES`.

    Args:
        structure: tree structure from JAX.
        static_leaves: leaves that are not arrays: functions, and Python scalars that control the computation.
    """
    try:
        lines = LibraryIdentity().lines(structure, static_leaves)
    except UnidentifiedError:
        return None
    return "\n".join([f"equinox {version('equinox')}, numpy {np.__version__}", *lines])


class LibraryIdentity:
    """Texts that identify trees whose code belongs to `LIBRARIES`."""

    def lines(self, structure: Any, static_leaves: Iterable[Any]) -> list[str]:
        """Lines that identify a tree.

        Raises:
            UnidentifiedError: it contains an object that cannot be identified.
        """
        return [self._tree(structure), *(self.value(leaf) for leaf in static_leaves)]

    def foreign_code(self, x: Any) -> str:
        """Text that identifies a class or function from outside `LIBRARIES`, or a closure."""
        raise UnidentifiedError(getattr(x, "__qualname__", repr(x)))

    def foreign_object(self, x: Any) -> str:
        """Text that identifies an object that is neither data nor code."""
        raise UnidentifiedError(f"an object of the class {type(x).__qualname__}")

    def _tree(self, structure: Any) -> str:
        if structure == LEAF:
            return "*"
        if structure == NONE:
            return "None"
        kind, metadata = structure.node_data()
        children = ", ".join(self._tree(node) for node in structure.children())
        return f"{self.value(kind)}[{self.value(metadata)}]({children})"

    def value(self, x: Any) -> str:
        """Text that identifies a value."""
        if x is None or (
            isinstance(x, bool | int | float | complex | str | bytes) and type(x).__module__ == "builtins"
        ):
            return repr(x)
        if isinstance(x, type) or (callable(x) and hasattr(x, "__qualname__")):
            return self._code(x)
        kind = self._code(type(x))
        if isinstance(x, Enum):
            return f"{kind}.{x.name}"
        if isinstance(x, np.ndarray | np.generic):
            return f"{kind}({x.dtype}, {x.shape}, {hashlib.sha256(x.tobytes()).hexdigest()})"
        if isinstance(x, np.dtype):
            return f"{kind}({x})"
        if isinstance(x, tuple | list):
            return f"{kind}({', '.join(map(self.value, x))})"
        if isinstance(x, set | frozenset):
            return f"{kind}({', '.join(sorted(map(self.value, x)))})"
        if isinstance(x, dict):
            return f"{kind}({', '.join(f'{self.value(k)}: {self.value(v)}' for k, v in x.items())})"
        if isinstance(x, partial):
            return f"{kind}({self.value(x.func)}, {self.value(x.args)}, {self.value(x.keywords)})"
        if is_dataclass(x):
            return f"{kind}({', '.join(f'{f.name}={self.value(getattr(x, f.name))}' for f in fields(x) if f.compare)})"
        return _module_constant(x) or self.foreign_object(x)

    def _code(self, x: Any) -> str:
        """Fully qualified name of a class or function of a library."""
        module, name = str(getattr(x, "__module__", None)), x.__qualname__
        if module.partition(".")[0] not in LIBRARIES:
            return self.foreign_code(x)
        resolved: Any = sys.modules.get(module)
        for part in name.split("."):
            resolved = getattr(resolved, part, None)
        if resolved is x:
            return f"{module}.{name}"
        if isinstance(x, FunctionType) and x.__closure__ is None and not x.__defaults__ and not x.__kwdefaults__:
            # a library's lambda is identified by its line
            return f"{module}.{name}:{x.__code__.co_firstlineno}"
        return self.foreign_code(x)


def _module_constant(x: Any) -> str | None:
    """Fully qualified name of an object that is an attribute of the module of its type."""
    module = type(x).__module__
    for name, value in vars(sys.modules[module]).items():
        if value is x:
            return f"{module}.{name}"
    return None

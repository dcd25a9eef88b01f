"""Identity of a specification that contains the user's own functions and classes.

A fit is resumed only with the code that it was started with. Functions are compared by their bytecode, default values,
closures and the global variables that they use; classes by their bases, methods and constants; objects by what they
would be copied from. Code of installed packages is compared by name and version.
"""

import dis
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np

from hybridsim.sim.cache_key import LibraryIdentity, UnidentifiedError

_STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
_GENERATED_FILE = "<string>"
"""Name of the file of methods that `dataclass` generates."""
_WRAPPED = ("__func__", "__wrapped__", "method", "fget")
"""Attributes of class methods, properties and the like that hold the function."""
_DATA = (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, np.ndarray, jax.Array)


class CodeIdentity(LibraryIdentity):
    """Texts that identify trees with the user's own code; for one tree."""

    def __init__(self):
        self._described: dict[int, tuple[int, Any]] = {}

    def value(self, x: Any) -> str:
        """Text that identifies a value."""
        if isinstance(x, jax.Array):
            return super().value(np.asarray(x))
        if isinstance(x, ModuleType):
            return f"module {x.__name__}"
        if isinstance(x, MethodType):
            return f"method {self.value(x.__func__)} of {self.value(x.__self__)}"
        return super().value(x)

    def foreign_code(self, x: Any) -> str:
        """Text that identifies a class or function of the user's or of another package."""
        name = f"{x.__module__}.{x.__qualname__}"
        if _is_installed(x.__module__):
            package = sys.modules.get(str(x.__module__).partition(".")[0])
            return f"{name} {getattr(package, '__version__', '')}"
        if (known := self._reference(x)) is not None:
            return known
        if isinstance(x, type):
            return f"class {name}({', '.join(self._class_parts(x))})"
        if isinstance(x, FunctionType):
            return f"function {name}({', '.join(self._function_parts(x))})"
        wrapped = getattr(x, "__wrapped__", None)
        if wrapped is None:
            raise UnidentifiedError(name)
        return f"{type(x).__qualname__} of {self.value(wrapped)}"

    def foreign_object(self, x: Any) -> str:
        """Text that identifies an object by what a copy would be made from: class, arguments and attributes."""
        kind = type(x)
        if (known := self._reference(x)) is not None:
            return known
        try:
            parts = x.__reduce_ex__(4)
        except Exception:  # each class raises its own
            raise UnidentifiedError(f"an object of the class {kind.__qualname__}") from None
        if isinstance(parts, str):
            return f"{self.value(kind)} {parts}"
        return f"{self.value(kind)}{self.value([part if k < 3 else list(part or ()) for k, part in enumerate(parts)])}"

    def _reference(self, x: Any) -> str | None:
        """Reference to an object that has been described before; None if this is the first time."""
        if id(x) in self._described:
            return f"number {self._described[id(x)][0]}"
        self._described[id(x)] = (len(self._described), x)  # kept alive, so that the id stays unique
        return None

    def _class_parts(self, cls: type) -> Iterator[str]:
        yield from map(self.value, cls.__bases__)
        for name, attribute in sorted(vars(cls).items()):
            parts = [
                attribute,
                *(getattr(attribute, key, None) for key in ("__func__", "__wrapped__", "method", "fget")),
            ]
            function = next((part for part in parts if isinstance(part, FunctionType)), None)
            is_special = name.startswith("__")
            if function is not None and not (is_special and function.__code__.co_filename == _GENERATED_FILE):
                yield f"{name}={self.value(function)}"
            elif isinstance(attribute, _DATA) and not is_special:
                yield f"{name}={self.value(attribute)}"

    def _function_parts(self, function: FunctionType) -> Iterator[str]:
        yield self._bytecode(function.__code__)
        yield self.value(function.__defaults__)
        yield self.value(function.__kwdefaults__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            yield f"{name}={self.value(cell.cell_contents)}"
        for name in sorted(_global_names(function.__code__) & function.__globals__.keys()):
            yield f"{name}={self.value(function.__globals__[name])}"

    def _bytecode(self, code: CodeType) -> str:
        constants = (self._bytecode(x) if isinstance(x, CodeType) else self.value(x) for x in code.co_consts)
        names = (code.co_names, code.co_varnames, code.co_freevars)
        return f"{code.co_code.hex()} {names} ({', '.join(constants)})"


def _global_names(code: CodeType) -> set[str]:
    """Names of the global variables that a function and those inside it use."""
    names = {str(step.argval) for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_global_names(part) for part in code.co_consts if isinstance(part, CodeType)))


def _is_installed(module: str | None) -> bool:
    """Whether a module is built in, of the standard library, or of an installed package."""
    file = getattr(sys.modules.get(str(module)), "__file__", None)
    if file is None:
        return str(module) in sys.builtin_module_names
    path = Path(file).resolve()
    return path.is_relative_to(_STANDARD_LIBRARY) or not {"site-packages", "dist-packages"}.isdisjoint(path.parts)

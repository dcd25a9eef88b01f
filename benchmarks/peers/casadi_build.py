"""From CasADi functions to a loaded library: generate C, compile it together with a driver, call it."""

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.measure import cpu_seconds


@dataclass
class Library:
    """A compiled driver."""

    functions: ctypes.CDLL
    compile_s: float
    folder: tempfile.TemporaryDirectory = field(repr=False)

    def bound(self, name: str, *arguments: int | np.ndarray) -> Callable[[], None]:
        """A call whose arguments are converted once; the converted arrays keep their memory alive."""
        pointer = ctypes.c_void_p
        converted = [ctypes.c_long(a) if isinstance(a, int) else a.ctypes.data_as(pointer) for a in arguments]
        return functools.partial(getattr(self.functions, name), *converted)


def compiled(
    compiler: Sequence[str], driver: str, functions: Callable[[], Sequence], macros: dict[str, int], libraries=("-lm",)
) -> Library:
    """Generate, compile and load; the compile time runs from the first symbol to the loaded library.

    Args:
        compiler: with its flags.
        driver: source file next to this one; it includes the generated code as GENERATED.
        functions: returns the CasADi functions that the driver calls.
        macros: of the driver.
        libraries: to link with.
    """
    import casadi

    start = cpu_seconds()
    folder = tempfile.TemporaryDirectory()
    generator = casadi.CodeGenerator("generated.c")
    for function in functions():
        generator.add(function)
    generator.generate(f"{folder.name}/")
    defined = [f"-D{name}={value}" for name, value in ({"GENERATED": '"generated.c"'} | macros).items()]
    source, library = Path(__file__).with_name(driver), f"{folder.name}/driver.so"
    files = [f"-I{folder.name}", "-shared", "-fPIC", str(source), "-o", library, *libraries]
    subprocess.run([*compiler, *defined, *files], check=True)
    loaded = ctypes.CDLL(library)
    return Library(loaded, cpu_seconds() - start, folder)

"""Builds libraries from CasADi functions: generates C, compiles it with a driver, and loads it."""

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

    def bind(self, name: str, *arguments: int | np.ndarray) -> Callable[[], None]:
        """A call with arguments converted once; the converted arrays are kept alive."""
        pointer = ctypes.c_void_p
        converted = [ctypes.c_long(a) if isinstance(a, int) else a.ctypes.data_as(pointer) for a in arguments]
        return functools.partial(getattr(self.functions, name), *converted)


def compile_library(
    compiler: Sequence[str], driver: str, functions: Callable[[], Sequence], macros: dict[str, int], libraries=("-lm",)
) -> Library:
    """Generate, compile and load a library; the compile time is from the first symbol to the loaded library.

    Args:
        compiler: compiler with flags.
        driver: source file in this folder, which includes the generated code as GENERATED.
        functions: returns the CasADi functions that the driver calls.
        macros: macros of the driver.
        libraries: libraries to link.
    """
    import casadi

    start = cpu_seconds()
    folder = tempfile.TemporaryDirectory()
    generator = casadi.CodeGenerator("generated.c")
    for function in functions():
        generator.add(function)
    generator.generate(f"{folder.name}/")
    definitions = [f"-D{name}={value}" for name, value in ({"GENERATED": '"generated.c"'} | macros).items()]
    source, library = Path(__file__).with_name(driver), f"{folder.name}/driver.so"
    files = [f"-I{folder.name}", "-shared", "-fPIC", str(source), "-o", library, *libraries]
    subprocess.run([*compiler, *definitions, *files], check=True)
    library_handle = ctypes.CDLL(library)
    return Library(library_handle, cpu_seconds() - start, folder)

"""Compilation of generated C code with the system's compiler, and calls through ctypes."""

import ctypes
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from hybridsim.native.llvm import machine

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="this machine has no C compiler `cc`")

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
IS_X86 = platform.machine() in ("x86_64", "AMD64")
FUSED = ("-mfma",) if IS_X86 and machine.host().fma else ()
EXACT = (*STRICT, "-O2", *FUSED, "-ffp-contract=off")
"""Compiler options for results bitwise equal to those of native kernels."""


def build(source: Path, *options: str, compiler: str = "cc", suffix: str = ".so") -> Path:
    """Compile a file to a library (`.so`) or an object file (`.o`); raises with the compiler's output."""
    out = source.with_suffix(suffix)
    kind = ("-shared", "-fPIC") if suffix == ".so" else ("-c",)
    run(
        compiler,
        *options,
        *kind,
        source.name,
        "-o",
        out.name,
        *(("-lm",) if suffix == ".so" else ()),
        folder=source.parent,
    )
    return out


def run(*command: str, folder: Path) -> str:
    """Run a command; returns its standard output, or raises with all its output."""
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{process.stdout}{process.stderr}")
    return process.stdout


def call(library: Path, name: str, arguments: list[np.ndarray], sizes: list[int]) -> list[np.ndarray]:
    """Results of a C function, as arrays of the specified sizes."""
    # entries that the function does not write remain NaN
    arrays = [np.ascontiguousarray(a, dtype=np.float64) for a in arguments] + [np.full(n, np.nan) for n in sizes]
    function = getattr(ctypes.CDLL(str(library)), name)
    function.restype = None
    function(*(ctypes.c_void_p(a.ctypes.data) for a in arrays))
    return arrays[len(arguments) :]


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are equal bit for bit, apart from the bits of NaN."""
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and bool(np.all((a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b))))

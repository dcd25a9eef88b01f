"""Compiling generated C with the system's compiler, and calling it."""

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
"""Options with which C computes the bits of the native kernels."""


def build(source: Path, *options: str, compiler: str = "cc", to: str = ".so") -> Path:
    """Compile a file into a library (`.so`) or an object (`.o`); raises with the compiler's words."""
    out = source.with_suffix(to)
    kind = ("-shared", "-fPIC") if to == ".so" else ("-c",)
    run(
        compiler, *options, *kind, source.name, "-o", out.name, *(("-lm",) if to == ".so" else ()), folder=source.parent
    )
    return out


def run(*command: str, folder: Path) -> str:
    """What a command prints; raises with its complaints."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def call(library: Path, name: str, given: list[np.ndarray], sizes: list[int]) -> list[np.ndarray]:
    """Call a function with arrays, and with room for results of these sizes."""
    # NaN shows what was not written
    arrays = [np.ascontiguousarray(a, dtype=np.float64) for a in given] + [np.full(n, np.nan) for n in sizes]
    function = getattr(ctypes.CDLL(str(library)), name)
    function.restype = None
    function(*(ctypes.c_void_p(a.ctypes.data) for a in arrays))
    return arrays[len(given) :]


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are equal bit for bit, apart from the bits of NaN."""
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and bool(np.all((a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b))))

"""Calling a kernel: the record it wants, the arrays the record points to, working memory, threads."""

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from hybridsim.native.llvm import machine
from hybridsim.native.llvm.kernel_writer import RECORD_FIELDS
from hybridsim.native.runtime import cache

Results = TypeVar("Results")


@dataclass
class LoadedKernel:
    """A kernel in memory."""

    entry: cache.CachedKernel
    library: machine.Library

    @cached_property
    def call(self) -> Callable[[int], None]:
        """The kernel as a function of the address of a record."""
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.library.addresses[self.entry.name])


class KernelCall(Generic[Results]):
    """A kernel with its arrays, to be called as often as one likes.

    Arrays that are contiguous and of double precision are read in place, so they may be changed between calls; the
    results of a call are overwritten by the next.
    """

    def __init__(self, kernel: LoadedKernel, shape: tuple[int, int], results: Callable[..., Results], threads: int):
        """Begin a call.

        Args:
            kernel: what to call.
            shape: numbers of trajectories and steps.
            results: makes the result of the arrays that are wanted, in the order of wanting.
            threads: how many to use.
        """
        self.kernel, self.shape, self.make_results, self.threads = kernel, shape, results, threads
        self.record = {"batch": shape[0], "steps": shape[1]}
        self.states = 0
        self.chunk = 1
        """Groups of trajectories that one thread takes together."""
        self.results: list[np.ndarray] = []
        self._kept: list[np.ndarray] = []
        self._parts: list[int] = []
        self._pool: ThreadPoolExecutor | None = None

    def give(
        self,
        name: str,
        array: np.ndarray,
        shape: tuple[int, ...],
        *,
        fixed_axes: int,
        names: tuple[str, ...] = ("_stride", "_step"),
    ) -> None:
        """Point to a given array; leading axes of length one are repeated by a stride of zero.

        Args:
            name: of the field.
            array: what is given.
            shape: the full shape.
            fixed_axes: how many trailing axes must be there in full.
            names: fields of the strides of the leading axes.
        """
        array = np.ascontiguousarray(array, dtype=np.float64)
        fits = array.ndim == len(shape) and all(
            have == want or (have == 1 and axis < len(shape) - fixed_axes)
            for axis, (have, want) in enumerate(zip(array.shape, shape, strict=False))
        )
        if not fits:
            raise ValueError(f"{name!r} has shape {array.shape}, but {shape} is wanted")
        self.record[name] = self._keep(array)
        for suffix, size, step in zip(names, array.shape[:-1], array.strides[:-1], strict=False):
            self.record[name + suffix] = step // 8 if size > 1 else 0

    def want(self, name: str, shape: tuple[int, ...]) -> None:
        """Make room for a result."""
        self.results.append(np.empty(shape))
        self.record[name] = self._keep(self.results[-1])

    def __call__(self) -> Results:
        """Run over all groups of trajectories, split over threads."""
        if not self._parts:
            self._divide()
        if len(self._parts) == 1:
            self.kernel.call(self._parts[0])
        else:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(len(self._parts))
            list(self._pool.map(self.kernel.call, self._parts))
        return self.make_results(*self.results)

    def _divide(self) -> None:
        """A record and working memory for each thread."""
        entry = self.kernel.entry
        bounds = group_bounds(-(-self.shape[0] // entry.lanes), self.chunk, self.threads)
        parts = len(bounds) - 1
        for k in range(parts):
            work = self._keep(aligned_buffer(entry.work + self.states))
            own = self.record | {"first": bounds[k], "last": bounds[k + 1], "work": work}
            own["states"] = work + 8 * entry.work
            self._parts.append(self._keep(np.array([own.get(name, 0) for name in RECORD_FIELDS], dtype=np.int64)))

    def _keep(self, array: np.ndarray) -> int:
        """The address of an array, which stays alive as long as the call."""
        self._kept.append(array)
        return array.ctypes.data


def group_bounds(groups: int, chunk: int, threads: int) -> list[int]:
    """Bounds of the groups of trajectories that each thread takes, in whole chunks."""
    chunks = -(-groups // chunk)
    parts = max(min(threads, chunks), 1)
    return [min(chunks * k // parts * chunk, groups) for k in range(parts + 1)]


def aligned_buffer(cells: int) -> np.ndarray:
    """Uninitialised memory that vectors may be loaded from."""
    block = np.empty(cells + 16)
    start = (-block.ctypes.data % 128) // 8
    return block[start : start + cells]

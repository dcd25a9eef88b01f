"""Kernel calls: the argument record, the arrays it points to, working memory, threads."""

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
    """A kernel linked into the process."""

    compiled: cache.CompiledKernel
    library: machine.Library

    @cached_property
    def call(self) -> Callable[[int], None]:
        """The kernel, as a function of the address of a record."""
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.library.addresses[self.compiled.name])


class KernelCall(Generic[Results]):
    """A kernel bound to its arrays, for repeated calls.

    Contiguous arrays of double precision are read in place, so they may be modified between calls; the results of a
    call are overwritten by the next.
    """

    def __init__(
        self, kernel: LoadedKernel, shape: tuple[int, int], make_results: Callable[..., Results], threads: int
    ):
        """Prepare a call.

        Args:
            kernel: kernel to call.
            shape: number of trajectories, number of steps.
            make_results: constructs the result from the output arrays, in the order of their allocation.
            threads: number of threads.
        """
        self.kernel, self.shape, self.make_results, self.threads = kernel, shape, make_results, threads
        self.record = {"batch": shape[0], "steps": shape[1]}
        self.state_memory_cells = 0
        """Cells of each thread's memory for states or tangents."""
        self.chunk = 1
        """Consecutive groups of trajectories that share a row of the gradient and hence a thread."""
        self.results: list[np.ndarray] = []
        self._alive: list[np.ndarray] = []
        self._records: list[int] = []
        """Addresses of the records, one per thread."""
        self._pool: ThreadPoolExecutor | None = None

    def bind_input(
        self,
        name: str,
        array: np.ndarray,
        shape: tuple[int, ...],
        *,
        fixed_axes: int,
        stride_suffixes: tuple[str, ...] = ("_stride", "_step"),
    ) -> None:
        """Bind an input array; leading axes of length one are broadcast by a stride of zero.

        Args:
            name: field of its address.
            array: the array.
            shape: the shape after broadcasting.
            fixed_axes: number of trailing axes that are not broadcast.
            stride_suffixes: suffixes of the record fields that hold the strides of the leading axes.
        """
        array = np.ascontiguousarray(array, dtype=np.float64)
        fits = array.ndim == len(shape) and all(
            size == expected or (size == 1 and axis < len(shape) - fixed_axes)
            for axis, (size, expected) in enumerate(zip(array.shape, shape, strict=False))
        )
        if not fits:
            raise ValueError(f"{name!r} has shape {array.shape}; expected {shape}")
        self.record[name] = self._address(array)
        for suffix, size, step in zip(stride_suffixes, array.shape[:-1], array.strides[:-1], strict=False):
            self.record[name + suffix] = step // 8 if size > 1 else 0

    def allocate_output(self, name: str, shape: tuple[int, ...]) -> None:
        """Allocate an output array."""
        self.results.append(np.empty(shape))
        self.record[name] = self._address(self.results[-1])

    def __call__(self) -> Results:
        """Run the kernel on all groups of trajectories, split over threads."""
        if not self._records:
            self._make_records()
        if len(self._records) == 1:
            self.kernel.call(self._records[0])
        else:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(len(self._records))
            list(self._pool.map(self.kernel.call, self._records))
        return self.make_results(*self.results)

    def _make_records(self) -> None:
        """Make a record with working memory for each thread."""
        compiled = self.kernel.compiled
        bounds = group_bounds(-(-self.shape[0] // compiled.group_size), self.chunk, self.threads)
        for k in range(len(bounds) - 1):
            work = self._address(aligned_buffer(compiled.work_cells + self.state_memory_cells))
            record = self.record | {"first": bounds[k], "last": bounds[k + 1], "work": work}
            record["states"] = work + 8 * compiled.work_cells
            self._records.append(
                self._address(np.array([record.get(name, 0) for name in RECORD_FIELDS], dtype=np.int64))
            )

    def _address(self, array: np.ndarray) -> int:
        """Address of an array, which is kept alive as long as the call."""
        self._alive.append(array)
        return array.ctypes.data


def group_bounds(groups: int, chunk: int, threads: int) -> list[int]:
    """Bounds of each thread's range of groups, at multiples of `chunk`."""
    chunks = -(-groups // chunk)
    parts = max(min(threads, chunks), 1)
    return [min(chunks * k // parts * chunk, groups) for k in range(parts + 1)]


def aligned_buffer(cells: int) -> np.ndarray:
    """Uninitialized memory, aligned for vector loads."""
    buffer = np.empty(cells + 16)
    offset = (-buffer.ctypes.data % 128) // 8
    return buffer[offset : offset + cells]

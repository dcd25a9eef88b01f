"""Compiled rollouts: a step function iterated over time for a batch of trajectories, with derivatives.

All arrays are rows of cells (`pytree_layout.py`); callers such as `sim` and `identify` convert from and to pytrees.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hybridsim.native.graph.graph import FLOAT, Graph
from hybridsim.native.graph.partition import Outputs
from hybridsim.native.llvm import emit, machine
from hybridsim.native.llvm.kernel_forward import forward_kernel
from hybridsim.native.llvm.kernel_gradient import gradient_kernel
from hybridsim.native.llvm.kernel_tangent import tangent_kernel
from hybridsim.native.llvm.kernel_writer import Kernel, StepSizes
from hybridsim.native.lowering.pytree_layout import PytreeLayout
from hybridsim.native.lowering.step_graphs import Step, StepGraphs, StepLayouts, structural_constants
from hybridsim.native.runtime import cache
from hybridsim.native.runtime.call import KernelCall, LoadedKernel

MEMORY_BUDGET = 64 * 2**20
"""Limit on the stored states of one group of trajectories [bytes]; beyond it they are recomputed from checkpoints."""
MAX_PARTIAL_SUMS = 16
"""Maximum number of partial sums of the gradient with respect to large parameters, and hence of threads for it."""

Rows = np.ndarray
"""An array whose last axis is a row of cells."""


class RolloutResult(NamedTuple):
    """Final states and outputs of a rollout."""

    end: Rows
    """(batch, x)"""
    outputs: Rows
    """(batch, steps, y)"""


class RolloutGradient(NamedTuple):
    """A rollout, and its gradient with respect to free parameters, initial states and inputs."""

    end: Rows
    outputs: Rows
    free: Rows
    """(batch, free), or (1, free) if summed"""
    initial: Rows
    """(batch, x)"""
    inputs: Rows
    """(batch, steps, s)"""


class RolloutTangents(NamedTuple):
    """A rollout, and its directional derivatives."""

    end: Rows
    outputs: Rows
    end_tangents: Rows
    """(batch, directions, x)"""
    output_tangents: Rows
    """(batch, directions, steps, y)"""


class Rollout:
    """Rollout of a step function as machine code."""

    compilations = 0
    """Number of kernels compiled by this process, for tests and reports."""

    def __init__(
        self,
        step: Step,
        fixed: Any,
        free: Any,
        carry: Any,
        inputs: Any,
        *,
        outputs: Any = None,
        runtime_cells: Collection[int] = (),
        key: str | None = None,
        target: machine.CpuTarget | None = None,
    ):
        """Prepare a rollout; code is generated, or loaded from disk, at first use.

        Args:
            step: step function.
            fixed: fixed parameters, whose values matter here: zeros, ±1 and infinities become constants in the code.
            free: free parameters, with respect to which the rollout is differentiated; only shapes matter.
            carry: the state; only shapes matter.
            inputs: inputs of one step; only shapes matter.
            outputs: outputs of one step, to save tracing for their shapes; only shapes matter.
            runtime_cells: cells of `fixed` that do not become constants, whatever their values.
            key: identifier of the step function, by which cached kernels are found without tracing; without a key
                nothing is cached on disk.
            target: processor to generate code for; the host by default.
        """
        self.target = target or machine.host()
        self.layouts = StepLayouts(step, fixed, free, carry, inputs, outputs)
        constant_cells = structural_constants(self.layouts.fixed, self.layouts.fixed.pack(fixed))
        large = (range(first, first + size) for first, size in self.layouts.fixed.large_leaves())
        self.runtime_cells = frozenset(runtime_cells).union(*large)
        self.constant_cells = {cell: value for cell, value in constant_cells.items() if cell not in self.runtime_cells}
        self.graphs = StepGraphs(step, self.layouts, self.constant_cells, fma=self.target.fma)
        self.key = key
        self._kernels: dict[tuple[str, bool], LoadedKernel] = {}

    def is_compatible(self, fixed: Rows) -> bool:
        """Whether parameters agree with the constants in the code."""
        return not self.mismatched_cells(fixed)

    def mismatched_cells(self, fixed: Rows) -> set[int]:
        """Cells in which parameters differ from the constants in the code."""
        cells = np.array(list(self.constant_cells), dtype=np.intp)
        values = np.array(list(self.constant_cells.values()))
        rows = np.atleast_2d(fixed)[:, cells]
        # as a float the integer −2⁶³ is −0.0, which equals the constant zero
        differs = (rows != values) | (np.signbit(rows) & self._is_integer[cells])
        return set(cells[differs.any(axis=0)].tolist())

    @cached_property
    def _is_integer(self) -> np.ndarray:
        """Whether each cell of `fixed` is an integer or a Boolean."""
        leaves = self.layouts.fixed.leaves
        return np.array([leaf.kind != FLOAT for leaf in leaves for _ in range(leaf.size)], dtype=bool)

    def check_supported(self) -> None:
        """Raise unless the native back-end supports the step; a cached kernel is proof that it does."""
        if all(self._load_cached("forward", single) is None for single in (True, False)):
            _ = self.graphs.step_graph

    def check_derivatives_supported(self) -> None:
        """Raise unless the native back-end supports the derivatives of the step."""
        if all(self._load_cached("gradient", single) is None for single in (True, False)):
            _ = self.graphs.sweeps

    @cached_property
    def sizes(self) -> StepSizes:
        """Number of cells of each array of a step."""
        large_leaves = tuple(self.layouts.free.large_leaves())
        return StepSizes(
            *(layout.size for layout in self._all_layouts()),
            large_leaves=large_leaves,
            has_large_parameters=bool(large_leaves or self.layouts.fixed.large_leaves()),
        )

    def _all_layouts(self) -> tuple[PytreeLayout, ...]:
        """Layouts of the arguments and the outputs of a step."""
        layouts = self.layouts
        return layouts.fixed, layouts.free, layouts.carry, layouts.inputs, layouts.outputs

    # execution

    def forward(self, *arrays: Rows, threads: int = 1) -> RolloutResult:
        """Roll out a batch; arguments as for `bind_forward`."""
        return self.bind_forward(*arrays, threads=threads)()

    def gradient(
        self, *arrays: Rows, threads: int = 1, segment: int | None = None, summed: bool = False
    ) -> RolloutGradient:
        """Roll out a batch with gradients; arguments as for `bind_gradient`."""
        return self.bind_gradient(*arrays, threads=threads, segment=segment, summed=summed)()

    def tangents(self, *arrays: Rows, threads: int = 1) -> RolloutTangents:
        """Roll out a batch with directional derivatives; arguments as for `bind_tangents`."""
        return self.bind_tangents(*arrays, threads=threads)()

    def bind_forward(
        self, fixed: Rows, free: Rows, initial: Rows, inputs: Rows, *, threads: int = 1
    ) -> KernelCall[RolloutResult]:
        """Kernel call that rolls out a batch.

        Args:
            fixed: fixed parameters, (cells,) if shared, or (batch, cells).
            free: free parameters, (cells,) if shared, or (batch, cells).
            initial: initial states, (batch, cells).
            inputs: inputs of every step, (batch, steps, cells), or (1, steps, cells) if shared.
            threads: number of threads.
        """
        return self._bind("forward", RolloutResult, fixed, free, initial, inputs, threads)

    def bind_gradient(
        self,
        fixed: Rows,
        free: Rows,
        initial: Rows,
        inputs: Rows,
        ct_end: Rows,
        ct_outputs: Rows,
        *,
        threads: int = 1,
        segment: int | None = None,
        summed: bool = False,
    ) -> KernelCall[RolloutGradient]:
        """Kernel call that rolls out a batch and computes gradients by a reverse sweep.

        Args:
            fixed: as in `bind_forward`.
            free: as in `bind_forward`.
            initial: as in `bind_forward`.
            inputs: as in `bind_forward`.
            ct_end: cotangents of the final state, (batch or 1, x).
            ct_outputs: cotangents of the outputs, (batch or 1, steps or 1, y).
            threads: number of threads.
            segment: steps between checkpoints; by default all, or about √T beyond the memory budget.
            summed: whether to sum the gradient with respect to the parameters over trajectories, which with large
                parameters is much faster than one gradient per trajectory.
        """

        def make_results(end: Rows, outputs: Rows, d_free: Rows, d_initial: Rows, d_inputs: Rows) -> RolloutGradient:
            return RolloutGradient(
                end, outputs, d_free.sum(0, keepdims=True) if summed else d_free, d_initial, d_inputs
            )

        call = self._bind("gradient", make_results, fixed, free, initial, inputs, threads, shared=summed)
        sizes, (batch, steps) = self.sizes, call.shape
        call.bind_input("ct_end", ct_end, (batch, sizes.x), fixed_axes=1)
        call.bind_input("ct_y", ct_outputs, (batch, steps, sizes.y), fixed_axes=1)
        rows, call.record["chunk"] = self.gradient_rows(call.kernel, batch)
        call.chunk = call.record["chunk"]
        call.allocate_output("d_free", (rows, sizes.free))
        call.allocate_output("d_x0", (batch, sizes.x))
        call.allocate_output("d_s", (batch, steps, sizes.s))
        segment = segment or segment_length(steps, 8 * call.kernel.compiled.cells_per_state)
        call.record["segment"] = segment
        call.state_memory_cells = self.state_memory_cells(call.kernel, steps, segment, 0)
        return call

    def bind_tangents(
        self,
        fixed: Rows,
        free: Rows,
        initial: Rows,
        inputs: Rows,
        t_free: Rows,
        t_initial: Rows,
        t_inputs: Rows | None = None,
        *,
        threads: int = 1,
    ) -> KernelCall[RolloutTangents]:
        """Kernel call that rolls out a batch with directional derivatives.

        Args:
            fixed: as in `bind_forward`.
            free: as in `bind_forward`.
            initial: as in `bind_forward`.
            inputs: as in `bind_forward`.
            t_free: tangents of the free parameters, (batch or 1, directions, free).
            t_initial: tangents of the initial state, (batch or 1, directions, x).
            t_inputs: tangents of the inputs, (batch or 1, directions, steps, s); zero by default.
            threads: number of threads.
        """
        call = self._bind("tangent", RolloutTangents, fixed, free, initial, inputs, threads)
        sizes, (batch, steps), directions = self.sizes, call.shape, t_free.shape[1]
        if t_inputs is None:
            t_inputs = np.zeros((1, 1, 1, sizes.s))
        call.record["directions"] = directions
        call.bind_input("t_free", t_free, (batch, directions, sizes.free), fixed_axes=2)
        call.bind_input("t_x0", t_initial, (batch, directions, sizes.x), fixed_axes=2)
        shape = (batch, directions, steps, sizes.s)
        call.bind_input("t_s", t_inputs, shape, fixed_axes=1, stride_suffixes=("_stride", "_direction", "_step"))
        call.allocate_output("t_end", (batch, directions, sizes.x))
        call.allocate_output("t_y", (batch, directions, steps, sizes.y))
        call.state_memory_cells = self.state_memory_cells(call.kernel, steps, 1, directions)
        return call

    def _bind(
        self,
        name: str,
        make_results: Callable[..., Any],
        fixed: Rows,
        free: Rows,
        initial: Rows,
        inputs: Rows,
        threads: int,
        *,
        shared: bool = True,
    ) -> KernelCall[Any]:
        """Kernel call with the arrays common to all kernels bound."""
        sizes = self.sizes
        batch, steps = len(initial), np.shape(inputs)[1]
        shared = shared and len(np.atleast_2d(fixed)) == len(np.atleast_2d(free)) == 1
        call = KernelCall(self.kernel(name, batch, shared=shared), (batch, steps), make_results, threads)
        call.bind_input("fixed", np.atleast_2d(fixed), (batch, sizes.fixed), fixed_axes=1)
        call.bind_input("free", np.atleast_2d(free), (batch, sizes.free), fixed_axes=1)
        call.bind_input("x0", initial, (batch, sizes.x), fixed_axes=1)
        call.bind_input("s", inputs, (batch, steps, sizes.s), fixed_axes=2)
        call.allocate_output("x_end", (batch, sizes.x))
        call.allocate_output("y", (batch, steps, sizes.y))
        return call

    # machine code

    def kernel(self, name: str, batch: int, *, shared: bool = True) -> LoadedKernel:
        """Kernel for a batch size: from memory, from disk, or newly compiled.

        Args:
            name: name of the kernel.
            batch: number of trajectories.
            shared: whether they share their parameters, and the gradient with respect to these.
        """
        single = batch < (4 if name == "tangent" else 2)  # as in `emit_kernel`
        single = single or (self.sizes.has_large_parameters and not shared)
        kernel = self._kernels.get((name, single))
        if kernel is None:
            compiled = self._load_cached(name, single) or self._compile(name, single)
            library = machine.load([compiled.code], [compiled.name])
            kernel = self._kernels[name, single] = LoadedKernel(compiled, library)
        return kernel

    def gradient_rows(self, kernel: LoadedKernel, batch: int) -> tuple[int, int]:
        """Rows of the gradient with respect to the parameters, and groups of trajectories summed in each row."""
        group_size = kernel.compiled.group_size
        if not self.sizes.large_leaves or group_size == 1:
            return batch, 1
        groups = -(-batch // group_size)
        chunk = -(-groups // MAX_PARTIAL_SUMS)
        return -(-groups // chunk), chunk

    def state_memory_cells(self, kernel: LoadedKernel, steps: int, segment: int, directions: int) -> int:
        """Cells of memory of a kernel for states, or for tangents along directions."""
        compiled = kernel.compiled
        padded = directions if compiled.group_size > 1 else -(-directions // compiled.lanes) * compiled.lanes
        return compiled.cells_per_state * (segment + 2 + -(-steps // segment)) + compiled.cells_per_direction * padded

    def _disk_key(self, name: str, single: bool) -> str:
        layouts = "\n".join(str(layout.leaves) for layout in self._all_layouts())
        constants = str(sorted(self.constant_cells.items()))
        return cache.key(str(self.key), name, str(single), self.target.key, layouts, constants)

    def _load_cached(self, name: str, single: bool) -> cache.CompiledKernel | None:
        return cache.load(self._disk_key(name, single)) if self.key is not None else None

    def _compile(self, name: str, single: bool) -> cache.CompiledKernel:
        k = self.emit_kernel(name, single)
        entry_name, entry_text = machine.entry_point(k.name, self.target)
        code = machine.object_code(emit.module(k.functions, (*k.texts, entry_text)), self.target)
        Rollout.compilations += 1
        compiled = cache.CompiledKernel(
            entry_name, k.group_size, k.lanes, k.work_cells, k.cells_per_state, k.cells_per_direction, code
        )
        if self.key is not None:
            cache.store(self._disk_key(name, single), compiled)
        return compiled

    def emit_kernel(self, name: str, single: bool) -> Kernel:
        """IR of a kernel.

        Args:
            name: name of the kernel.
            single: whether a group is one trajectory; lanes are then time steps, directions or isomorphic operations.
        """
        graphs, sizes, register_width = self.graphs, self.sizes, self.target.register_width

        def lanes(*parts: tuple[Graph, Outputs]) -> int:
            return self.target.lanes_for(max(len(graph.live_nodes(outputs.values())) for graph, outputs in parts))

        if name == "forward":
            step = graphs.step_graph
            return forward_kernel(step, sizes, 1 if single else lanes(step), register_width)
        if name == "gradient":
            step, vjp, saved = graphs.sweeps
            sizes = replace(sizes, saved=saved)
            count = lanes(step, vjp)
            return gradient_kernel(step, vjp, sizes, 1 if single else count, count, register_width)
        jvp = graphs.jvp_graph
        return tangent_kernel(jvp, sizes, 1 if single else lanes(jvp), lanes(jvp), register_width)


def segment_length(steps: int, bytes_per_state: int) -> int:
    """Steps between checkpoints: all of them, or about √T beyond the memory budget."""
    if steps * bytes_per_state <= MEMORY_BUDGET:
        return max(steps, 1)
    return math.isqrt(steps) + 1

"""Compiled rollouts: a step function run over time and over a batch of trajectories, with derivatives.

Everything here is in rows of cells (`cells.py`); `sim` and `jax_call.py` put trees of arrays around it.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hybridsim.native.graph.graph import Graph
from hybridsim.native.graph.partition import Outputs
from hybridsim.native.llvm import emit, machine
from hybridsim.native.llvm.kernel_forward import forward_kernel
from hybridsim.native.llvm.kernel_gradient import gradient_kernel
from hybridsim.native.llvm.kernel_tangent import tangent_kernel
from hybridsim.native.llvm.kernel_writer import Kernel, StepSizes
from hybridsim.native.lowering.step_graphs import Program, Step, StepLayouts, structural_constants
from hybridsim.native.runtime import cache
from hybridsim.native.runtime.call import KernelCall, LoadedKernel

MEMORY_BUDGET = 64 * 2**20
"""Bytes that the states of one group of trajectories may take before they are recomputed from checkpoints."""
MAX_PARTIAL_SUMS = 16
"""Rows in which gradients of large parameters are summed, at most: as many threads can work on them."""

Rows = np.ndarray
"""An array whose last axis are cells."""


class RolloutResult(NamedTuple):
    """What a rollout gives."""

    end: Rows
    """(batch, x)"""
    outputs: Rows
    """(batch, steps, y)"""


class RolloutGradient(NamedTuple):
    """A rollout, and its cotangents pulled back to what it was given."""

    end: Rows
    outputs: Rows
    free: Rows
    """(batch, free), or (1, free) if summed"""
    initial: Rows
    """(batch, x)"""
    inputs: Rows
    """(batch, steps, s)"""


class RolloutTangents(NamedTuple):
    """A rollout, and its derivatives along directions."""

    end: Rows
    outputs: Rows
    end_tangents: Rows
    """(batch, directions, x)"""
    output_tangents: Rows
    """(batch, directions, steps, y)"""


class Rollout:
    """A step function as machine code."""

    compilations = 0
    """How many kernels this process has compiled, for tests and reports."""

    def __init__(
        self,
        step: Step,
        fixed: Any,
        free: Any,
        carry: Any,
        inputs: Any,
        *,
        outputs: Any = None,
        varying: Collection[int] = (),
        key: str | None = None,
        target: machine.CpuTarget | None = None,
    ):
        """Prepare a rollout; code is generated, or found on disk, when it is first needed.

        Args:
            step: what to repeat.
            fixed: parameters that are not differentiated, with values: their zeros and ones become part of the code.
            free: parameters to differentiate; only shapes count.
            carry: the state; only shapes count.
            inputs: what a step reads of its own; only shapes count.
            outputs: what a step streams out, to save tracing it for that; only shapes count.
            varying: cells of `fixed` that are not to become part of the code whatever their value is.
            key: identifies the step function, so that kernels on disk are found without tracing it; without a key
                nothing is kept on disk.
            target: processor to generate code for; the one that this runs on by default.
        """
        self.target = target or machine.host()
        self.forms = StepLayouts(step, fixed, free, carry, inputs, outputs)
        baked = structural_constants(self.forms.fixed, self.forms.fixed.pack(fixed))
        large = (range(first, first + size) for first, size in self.forms.fixed.large_leaves())
        self.varying = frozenset(varying).union(*large)
        self.baked = {cell: value for cell, value in baked.items() if cell not in self.varying}
        self.program = Program(step, self.forms, self.baked, fma=self.target.fma)
        self.key = key
        self._kernels: dict[tuple[str, bool], LoadedKernel] = {}

    def fits(self, fixed: Rows) -> bool:
        """Do these parameters have the zeros and ones that are part of the code?"""
        return not self.changed_cells(fixed)

    def changed_cells(self, fixed: Rows) -> set[int]:
        """The cells in which these parameters differ from what is part of the code."""
        cells = np.array(list(self.baked), dtype=np.intp)
        values = np.array(list(self.baked.values()))
        differs = (np.atleast_2d(fixed)[:, cells] != values).any(axis=0)
        return set(cells[differs].tolist())

    def check_supported(self) -> None:
        """Raise if the step uses something that has no native code; kernels on disk are proof enough."""
        if all(self._from_disk("forward", alone) is None for alone in (True, False)):
            _ = self.program.step_graph

    def check_derivatives_supported(self) -> None:
        """The same for its derivatives."""
        if all(self._from_disk("gradient", alone) is None for alone in (True, False)):
            _ = self.program.sweeps

    @cached_property
    def sizes(self) -> StepSizes:
        """Cells of each array of a step."""
        f = self.forms
        sizes = (form.size for form in (f.fixed, f.free, f.carry, f.inputs, f.outputs))
        large = tuple(f.free.large_leaves())
        return StepSizes(*sizes, large=large, in_place=bool(large or f.fixed.large_leaves()))

    # running

    def forward(self, *arrays: Rows, threads: int = 1) -> RolloutResult:
        """Roll out a batch; arguments as for `bind_forward`."""
        return self.bind_forward(*arrays, threads=threads)()

    def gradient(
        self, *arrays: Rows, threads: int = 1, segment: int | None = None, summed: bool = False
    ) -> RolloutGradient:
        """Roll out a batch and sweep back; arguments as for `bind_gradient`."""
        return self.bind_gradient(*arrays, threads=threads, segment=segment, summed=summed)()

    def tangents(self, *arrays: Rows, threads: int = 1) -> RolloutTangents:
        """Roll out a batch with derivatives along directions; arguments as for `bind_tangents`."""
        return self.bind_tangents(*arrays, threads=threads)()

    def bind_forward(
        self, fixed: Rows, free: Rows, start: Rows, inputs: Rows, *, threads: int = 1
    ) -> KernelCall[RolloutResult]:
        """A call that rolls out a batch.

        Args:
            fixed: (cells,) for all, or (batch, cells).
            free: (cells,) for all, or (batch, cells).
            start: (batch, cells).
            inputs: (batch, steps, cells), or (1, steps, cells) for all.
            threads: how many to use.
        """
        return self._begun("forward", RolloutResult, fixed, free, start, inputs, threads)

    def bind_gradient(
        self,
        fixed: Rows,
        free: Rows,
        start: Rows,
        inputs: Rows,
        ct_end: Rows,
        ct_outputs: Rows,
        *,
        threads: int = 1,
        segment: int | None = None,
        summed: bool = False,
    ) -> KernelCall[RolloutGradient]:
        """A call that rolls out a batch and sweeps back.

        Args:
            fixed: as in `bind_forward`.
            free: as in `bind_forward`.
            start: as in `bind_forward`.
            inputs: as in `bind_forward`.
            ct_end: cotangents of the last state, (batch or 1, x).
            ct_outputs: cotangents of what is streamed out, (batch or 1, steps or 1, y).
            threads: how many to use.
            segment: how many states to keep at once; by default as many as a budget of memory allows.
            summed: is the gradient of parameters wanted as its sum over trajectories? With large parameters that is
                much faster than one gradient for each.
        """

        def results(end: Rows, outputs: Rows, d_free: Rows, d_start: Rows, d_inputs: Rows) -> RolloutGradient:
            return RolloutGradient(end, outputs, d_free.sum(0, keepdims=True) if summed else d_free, d_start, d_inputs)

        call = self._begun("gradient", results, fixed, free, start, inputs, threads, together=summed)
        sizes, (batch, steps) = self.sizes, call.shape
        call.give("ct_end", ct_end, (batch, sizes.x), fixed_axes=1)
        call.give("ct_y", ct_outputs, (batch, steps, sizes.y), fixed_axes=1)
        rows, call.record["chunk"] = self.gradient_rows(call.kernel, batch)
        call.chunk = call.record["chunk"]
        call.want("d_free", (rows, sizes.free))
        call.want("d_x0", (batch, sizes.x))
        call.want("d_s", (batch, steps, sizes.s))
        segment = segment or segment_length(steps, 8 * call.kernel.entry.per_state)
        call.record["segment"] = segment
        call.states = self.state_cells(call.kernel, steps, segment, 0)
        return call

    def bind_tangents(
        self,
        fixed: Rows,
        free: Rows,
        start: Rows,
        inputs: Rows,
        t_free: Rows,
        t_start: Rows,
        t_inputs: Rows | None = None,
        *,
        threads: int = 1,
    ) -> KernelCall[RolloutTangents]:
        """A call that rolls out a batch with derivatives along directions.

        Args:
            fixed: as in `bind_forward`.
            free: as in `bind_forward`.
            start: as in `bind_forward`.
            inputs: as in `bind_forward`.
            t_free: directions in the parameters, (batch or 1, directions, free).
            t_start: directions in the first state, (batch or 1, directions, x).
            t_inputs: directions in what is streamed in, (batch or 1, directions, steps, s); none by default.
            threads: how many to use.
        """
        call = self._begun("tangent", RolloutTangents, fixed, free, start, inputs, threads)
        sizes, (batch, steps), directions = self.sizes, call.shape, t_free.shape[1]
        if t_inputs is None:
            t_inputs = np.zeros((1, 1, 1, sizes.s))
        call.record["directions"] = directions
        call.give("t_free", t_free, (batch, directions, sizes.free), fixed_axes=2)
        call.give("t_x0", t_start, (batch, directions, sizes.x), fixed_axes=2)
        shape = (batch, directions, steps, sizes.s)
        call.give("t_s", t_inputs, shape, fixed_axes=1, names=("_stride", "_direction", "_step"))
        call.want("t_end", (batch, directions, sizes.x))
        call.want("t_y", (batch, directions, steps, sizes.y))
        call.states = self.state_cells(call.kernel, steps, 1, directions)
        return call

    def _begun(
        self,
        name: str,
        results: Callable[..., Any],
        fixed: Rows,
        free: Rows,
        start: Rows,
        inputs: Rows,
        threads: int,
        *,
        together: bool = True,
    ) -> KernelCall[Any]:
        """A call with the arrays that all kernels want."""
        sizes = self.sizes
        batch, steps = len(start), np.shape(inputs)[1]
        together = together and len(np.atleast_2d(fixed)) == len(np.atleast_2d(free)) == 1
        call = KernelCall(self.kernel(name, batch, together=together), (batch, steps), results, threads)
        call.give("fixed", np.atleast_2d(fixed), (batch, sizes.fixed), fixed_axes=1)
        call.give("free", np.atleast_2d(free), (batch, sizes.free), fixed_axes=1)
        call.give("x0", start, (batch, sizes.x), fixed_axes=1)
        call.give("s", inputs, (batch, steps, sizes.s), fixed_axes=2)
        call.want("x_end", (batch, sizes.x))
        call.want("y", (batch, steps, sizes.y))
        return call

    # machine code

    def kernel(self, name: str, batch: int, *, together: bool = True) -> LoadedKernel:
        """A kernel for so many trajectories: from memory, from disk, or newly compiled.

        Args:
            name: of the kernel.
            batch: number of trajectories.
            together: do they share their parameters, and the gradient of these?
        """
        alone = batch < (4 if name == "tangent" else 2)  # then steps or directions are lanes
        alone = alone or (self.sizes.in_place and not together)
        found = self._kernels.get((name, alone))
        if found is None:
            entry = self._from_disk(name, alone) or self._compiled(name, alone)
            found = self._kernels[name, alone] = LoadedKernel(entry, machine.load([entry.code], [entry.name]))
        return found

    def gradient_rows(self, kernel: LoadedKernel, batch: int) -> tuple[int, int]:
        """How many rows a gradient of parameters has, and how many groups of trajectories are summed up in each."""
        lanes = kernel.entry.lanes
        if not self.sizes.large or lanes == 1:
            return batch, 1
        groups = -(-batch // lanes)
        chunk = -(-groups // MAX_PARTIAL_SUMS)
        return -(-groups // chunk), chunk

    def state_cells(self, kernel: LoadedKernel, steps: int, segment: int, directions: int) -> int:
        """Cells of memory that a kernel needs for states, or for tangents along directions."""
        entry = kernel.entry
        padded = directions if entry.lanes > 1 else -(-directions // entry.width) * entry.width
        return entry.per_state * (segment + 2 + -(-steps // segment)) + entry.per_direction * padded

    def _disk_key(self, name: str, alone: bool) -> str:
        f = self.forms
        forms = "\n".join(str(form.leaves) for form in (f.fixed, f.free, f.carry, f.inputs, f.outputs))
        return cache.key(str(self.key), name, str(alone), self.target.key, forms, str(sorted(self.baked.items())))

    def _from_disk(self, name: str, alone: bool) -> cache.CachedKernel | None:
        return cache.load(self._disk_key(name, alone)) if self.key is not None else None

    def _compiled(self, name: str, alone: bool) -> cache.CachedKernel:
        k = self.emit_kernel(name, alone)
        entry_name, entry_text = machine.entry_point(k.name, self.target)
        code = machine.object_code(emit.module(k.functions, (*k.texts, entry_text)), self.target)
        Rollout.compilations += 1
        entry = cache.CachedKernel(entry_name, k.lanes, k.width, k.work, k.per_state, k.per_direction, code)
        if self.key is not None:
            cache.store(self._disk_key(name, alone), entry)
        return entry

    def emit_kernel(self, name: str, alone: bool) -> Kernel:
        """The text of a kernel, for one trajectory or for many."""
        program, sizes, register = self.program, self.sizes, self.target.register

        def wide(*graphs: tuple[Graph, Outputs]) -> int:
            return self.target.lanes_for(max(len(graph.live(outputs.values())) for graph, outputs in graphs))

        if name == "forward":
            step = program.step_graph
            return forward_kernel(step, sizes, 1 if alone else wide(step), register)
        if name == "gradient":
            step, vjp, kept = program.sweeps
            sizes = replace(sizes, saved=kept)
            return gradient_kernel(step, vjp, sizes, 1 if alone else wide(step, vjp), wide(step, vjp), register)
        jvp = program.jvp_graph
        return tangent_kernel(jvp, sizes, 1 if alone else wide(jvp), wide(jvp), register)


def segment_length(steps: int, bytes_per_state: int) -> int:
    """How many states to keep at once: all of them, or about √T beyond the budget."""
    if steps * bytes_per_state <= MEMORY_BUDGET:
        return max(steps, 1)
    return math.isqrt(steps) + 1

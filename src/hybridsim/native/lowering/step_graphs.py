"""Scalar graphs of a step function and of its vector-Jacobian and Jacobian-vector products.

Derivatives are traced by JAX, so that custom rules apply, and lowered like any other function.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.graph.graph import FLOAT, Graph
from hybridsim.native.graph.optimize import optimize
from hybridsim.native.graph.partition import STATE, Outputs, assign_stages
from hybridsim.native.graph.rematerialization import (
    cell_count,
    read_saved_values,
    saved_value_offsets,
    select_saved_values,
)
from hybridsim.native.lowering.lower import Lowering, Nodes
from hybridsim.native.lowering.pytree_layout import PytreeLayout

Step = Callable[[Any, Any, Any, Any], tuple[Any, Any]]
"""`step(fixed, free, carry, inputs) -> (carry, outputs)`: one step of a rollout."""

Argument = tuple[str, PytreeLayout, bool]
"""An argument of a function of pytrees: its slot, its layout, and whether it consists of the float leaves only."""

IN_PLACE_SLOTS = {"fixed": "fixed_rows", "free": "free_rows", "contribution": "sums", "t_free": "t_free"}
"""For each slot, the slot of its large leaves, read and written in place and shared by all lanes (except tangents)."""


class StepGraphs:
    """The graphs of a step function."""

    def __init__(
        self,
        step: Step,
        layouts: "StepLayouts",
        constant_cells: dict[int, float],
        *,
        fma: bool,
        in_place_slots: Mapping[str, str] = IN_PLACE_SLOTS,
    ):
        """Prepare the graphs; each is built at first access.

        Args:
            step: step function.
            layouts: layouts of its arguments and results.
            constant_cells: values of the cells of `fixed` that become compile-time constants.
            fma: whether the target has fused multiply-add.
            in_place_slots: for each slot, the slot of its large leaves.
        """
        self.step, self.layouts, self.constant_cells = step, layouts, constant_cells
        self.fma, self.in_place_slots = fma, in_place_slots

    @cached_property
    def step_graph(self) -> tuple[Graph, Outputs]:
        """Graph of a step, which writes `x2` and `y`."""
        graph, outputs = self._step
        return self._optimize(graph, outputs)

    @cached_property
    def vjp_graph(self) -> tuple[Graph, Outputs]:
        """Graph of the VJP, which also reads `ct` and `ct_y`, and writes `contribution`, `ct2` and `d_s`.

        Contributions to the gradient with respect to large parameters are accumulated in `sums`.
        """
        graph, _, vjp = self._step_and_vjp
        return self._optimize(graph, vjp)

    @cached_property
    def sweeps(self) -> tuple[tuple[Graph, Outputs], tuple[Graph, Outputs], int]:
        """Graphs of the step and its VJP for one kernel, and the number of cells that the step saves for the VJP.

        The step writes saved values to `saved`, from which the VJP reads them.
        """
        graph, step, vjp = self._step_and_vjp
        stages = assign_stages(graph, step | vjp)
        saved = select_saved_values(graph, step, vjp, stages, state=STATE)
        step = step | {("saved", cell): node for node, cell in saved_value_offsets(graph, saved).items()}
        saved_cells = sum(cell_count(graph, node) for node in saved)
        return self._optimize(graph, step), self._optimize(*read_saved_values(graph, vjp, saved)), saved_cells

    @cached_property
    def _step_and_vjp(self) -> tuple[Graph, Outputs, Outputs]:
        """Unoptimized common graph of a step and its VJP, and the outputs of each."""
        layouts = self.layouts

        def step_and_pullback(fixed, free, x, s, ct, ct_y):
            function, floats = self._differentiable_step(fixed, (free, x, s))
            _, pullback, results = jax.vjp(function, *floats, has_aux=True)
            return pullback((ct, ct_y)), results

        arguments = [*layouts.step_arguments(), ("ct", layouts.carry, True), ("ct_y", layouts.outputs, True)]
        lowering = Lowering()
        graph, results = lowering.graph, self._lower(lowering, self._trace(step_and_pullback, arguments), arguments)
        vjp = self._pop_derivatives(graph, results, contribution=layouts.free, ct2=layouts.carry, d_s=layouts.inputs)
        return graph, self._step_outputs(graph, results), vjp

    @cached_property
    def jvp_graph(self) -> tuple[Graph, Outputs]:
        """Graph of the step and its JVP, which also reads `t_free`, `t_x` and `t_s`, and writes `t_x2` and `t_y`."""
        layouts = self.layouts

        def jvp(fixed, free, x, s, *tangents):
            function, floats = self._differentiable_step(fixed, (free, x, s))
            return jax.jvp(function, floats, tangents, has_aux=True)[1]

        tangent_arguments = (
            ("t_free", layouts.free, True),
            ("t_x", layouts.carry, True),
            ("t_s", layouts.inputs, True),
        )
        arguments = [*layouts.step_arguments(), *tangent_arguments]
        # JAX fuses a loop with its derivative, but the step itself must not depend on tangents
        step, outputs = self._step
        lowering = Lowering(step.copy())
        graph, derivatives = lowering.graph, self._lower(lowering, self._trace(jvp, arguments), arguments)
        return self._optimize(
            graph, self._pop_derivatives(graph, derivatives, t_x2=layouts.carry, t_y=layouts.outputs) | outputs
        )

    @cached_property
    def _step_jaxpr(self) -> Any:
        """Jaxpr of the step with its custom derivative rules, traced once for all graphs."""
        closed = self._trace(self.step, self.layouts.step_arguments())
        self.layouts.check_results(closed.out_avals)
        return closed

    @cached_property
    def _step(self) -> tuple[Graph, Outputs]:
        """Unoptimized graph of a step, and its outputs."""
        lowering = Lowering()
        results = self._lower(lowering, self._step_jaxpr, self.layouts.step_arguments())
        return lowering.graph, self._step_outputs(lowering.graph, results)

    def _differentiable_step(self, fixed: Any, trees: tuple[Any, Any, Any]) -> tuple[Callable, tuple[list, ...]]:
        """The step as a function of its float leaves, with all results as auxiliary output; and those leaves."""
        layouts = self.layouts
        groups = (layouts.free, layouts.carry, layouts.inputs)
        step, count = jaxpr_as_fun(self._step_jaxpr), len(layouts.carry.leaves)

        def function(*floats):
            new_trees = [
                layout.with_float_leaves(tree, leaves)
                for layout, tree, leaves in zip(groups, trees, floats, strict=True)
            ]
            results = step(*jax.tree.leaves((fixed, new_trees)))
            x2, y = results[:count], results[count:]
            return (layouts.carry.float_leaves(x2), layouts.outputs.float_leaves(y)), results

        return function, tuple(layout.float_leaves(tree) for layout, tree in zip(groups, trees, strict=True))

    def _trace(self, function: Callable, arguments: list[Argument]) -> Any:
        """Jaxpr of a function of pytrees."""
        trees = [
            layout.float_leaves(layout.shapes()) if floats_only else layout.shapes()
            for _, layout, floats_only in arguments
        ]
        return jax.make_jaxpr(lambda *traced_trees: jax.tree.leaves(function(*traced_trees)))(*trees)

    def _lower(self, lowering: Lowering, closed: Any, arguments: list[Argument]) -> list[Nodes]:
        """Nodes of the results of a traced function."""
        nodes = []
        for name, layout, floats_only in arguments:
            constant_cells = self.constant_cells if name == "fixed" else {}
            in_place_slot = self.in_place_slots.get(name)
            nodes += layout.input_nodes(
                lowering.graph, name, constant_cells, floats_only=floats_only, in_place_slot=in_place_slot
            )
        return lowering.lower_closed_jaxpr(closed, nodes)

    def _step_outputs(self, graph: Graph, results: list[Nodes]) -> Outputs:
        """Outputs for the results of a step."""
        carry, outputs = self.layouts.carry, self.layouts.outputs
        count = len(carry.leaves)
        return carry.output_nodes(graph, "x2", results[:count]) | outputs.output_nodes(graph, "y", results[count:])

    def _pop_derivatives(self, graph: Graph, results: list[Nodes], **layouts: PytreeLayout) -> Outputs:
        """Pop derivatives of pytrees off the front of the results; returns outputs by slot, zero for integer leaves."""
        outputs: Outputs = {}
        zero = graph.constant(0.0)
        for slot, layout in layouts.items():
            for leaf, first in zip(layout.leaves, layout.offsets(), strict=True):
                if leaf.kind != FLOAT:
                    outputs |= {(slot, first + k): zero for k in range(leaf.size)}
            count = len(layout.float_leaves(layout.shapes()))
            in_place_slot = self.in_place_slots.get(slot)
            try:
                outputs |= layout.output_nodes(
                    graph, slot, results[:count], floats_only=True, in_place_slot=in_place_slot
                )
            except UnsupportedOperationError as error:
                raise UnsupportedOperationError(f"in the derivative with respect to large arrays, {error}") from None
            del results[:count]
        return outputs

    def _optimize(self, graph: Graph, outputs: Outputs) -> tuple[Graph, Outputs]:
        graph, nodes = optimize(graph, list(outputs.values()), fma=self.fma)
        return graph, dict(zip(outputs, nodes, strict=True))


class StepLayouts:
    """Layouts of the arguments and results of a step."""

    def __init__(self, step: Step, fixed: Any, free: Any, carry: Any, inputs: Any, outputs: Any = None):
        """Derive the layouts from example values; without example outputs, the step is traced."""
        self.fixed, self.free, self.carry, self.inputs = (
            PytreeLayout.from_tree(tree) for tree in (fixed, free, carry, inputs)
        )
        arguments = (self.fixed, self.free, self.carry, self.inputs)
        if outputs is not None:
            self.outputs = PytreeLayout.from_tree(outputs)
            return
        new_carry, outputs = jax.eval_shape(step, *(layout.shapes() for layout in arguments))
        self.outputs = PytreeLayout.from_tree(outputs)
        if PytreeLayout.from_tree(new_carry) != self.carry:
            raise ValueError("the carry returned by a step must have the structure, shapes and types of its input")

    def check_results(self, results: Sequence[Any]) -> None:
        """Raise a ValueError unless the results of a step match the layouts."""
        expected = [*self.carry.leaves, *self.outputs.leaves]
        for k, (leaf, result) in enumerate(zip(expected, results, strict=True)):
            if (leaf.shape, leaf.dtype) != (tuple(result.shape), str(result.dtype)):
                name = f"array {k} of the carry" if k < len(self.carry.leaves) else "an output array"
                old, new = f"{leaf.dtype}{list(leaf.shape)}", f"{result.dtype}{list(result.shape)}"
                raise ValueError(f"a step must preserve shapes and types: {name} was {old} and became {new}")

    def step_arguments(self) -> list[Argument]:
        """Arguments of the step, with all leaves."""
        names = ("fixed", "free", "x", "s")
        return [
            (n, layout, False)
            for n, layout in zip(names, (self.fixed, self.free, self.carry, self.inputs), strict=True)
        ]


def structural_constants(layout: PytreeLayout, values: np.ndarray) -> dict[int, float]:
    """Cells whose values become compile-time constants: structural zeros, ones and infinities."""
    constants = {}
    for leaf, first in zip(layout.leaves, layout.offsets(), strict=True):
        for k, v in enumerate(values[first : first + leaf.size].tolist(), start=first):
            # integer cells hold bit patterns, which as floats can be anything; only +0.0, the integer 0, is unambiguous
            is_zero = v == 0.0 and (leaf.kind == FLOAT or math.copysign(1.0, v) > 0.0)
            if is_zero or (leaf.kind == FLOAT and (v in (1.0, -1.0) or math.isinf(v))):
                constants[k] = v
    return constants

"""A step function as scalar graphs: the step itself, its transposed derivative, its derivative along directions.

Derivatives come from JAX, so that custom rules hold, and are lowered like any other function.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun

from hybridsim.core.errors import UnsupportedPrimitive
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
"""`step(fixed, free, carry, inputs) -> (carry, outputs)`: what a rollout repeats."""

Argument = tuple[str, PytreeLayout, bool]
"""Of a function of trees: its slot, its form, and whether only its floats count."""

IN_PLACE_SLOTS = {"fixed": "fixed_rows", "free": "free_rows", "contribution": "sums", "t_free": "t_free"}
"""Slots for the large leaves of others; all but tangents lie where the caller has them, one for all lanes."""


class Program:
    """Graphs of a step function."""

    def __init__(
        self,
        step: Step,
        forms: "StepLayouts",
        baked: dict[int, float],
        *,
        fma: bool,
        in_place: Mapping[str, str] = IN_PLACE_SLOTS,
    ):
        """Prepare the graphs; each is made when it is first asked for.

        Args:
            step: what to repeat.
            forms: of its arguments.
            baked: cells of `fixed` whose value becomes part of the graph.
            fma: does the machine have fused multiply-add?
            in_place: slots for the large leaves of others.
        """
        self.step, self.forms, self.baked, self.fma, self.in_place = step, forms, baked, fma, in_place

    @cached_property
    def step_graph(self) -> tuple[Graph, Outputs]:
        """One step: writes `x2` and `y`."""
        graph, places = self._step
        return self._optimize(graph, places)

    @cached_property
    def vjp_graph(self) -> tuple[Graph, Outputs]:
        """Its transposed derivative: reads `ct`, `ct_y` too, writes `contribution`, `ct2` and `d_s`.

        What it contributes to the gradient of large parameters is added to `sums`.
        """
        graph, _, vjp = self._step_and_vjp
        return self._optimize(graph, vjp)

    @cached_property
    def sweeps(self) -> tuple[tuple[Graph, Outputs], tuple[Graph, Outputs], int]:
        """The step and its transposed derivative for one kernel, and the cells that the first keeps for the second.

        The step writes them to `kept`, where the derivative reads them.
        """
        graph, step, vjp = self._step_and_vjp
        stages = assign_stages(graph, step | vjp)
        kept = select_saved_values(graph, step, vjp, stages, state=STATE)
        step = step | {("kept", cell): node for node, cell in saved_value_offsets(graph, kept).items()}
        size = sum(cell_count(graph, node) for node in kept)
        return self._optimize(graph, step), self._optimize(*read_saved_values(graph, vjp, kept)), size

    @cached_property
    def _step_and_vjp(self) -> tuple[Graph, Outputs, Outputs]:
        """One graph of a step and its transposed derivative, not yet optimised, and the outputs of each."""
        forms = self.forms

        def both(fixed, free, x, s, ct, ct_y):
            function, floats = self._differentiable(fixed, (free, x, s))
            _, pull, results = jax.vjp(function, *floats, has_aux=True)
            return pull((ct, ct_y)), results

        arguments = [*forms.step_arguments(), ("ct", forms.carry, True), ("ct_y", forms.outputs, True)]
        lowering = Lowering()
        graph, results = lowering.graph, self._lower(lowering, self._trace(both, arguments), arguments)
        vjp = self._take_derivatives(graph, results, contribution=forms.free, ct2=forms.carry, d_s=forms.inputs)
        return graph, self._step_outputs(graph, results), vjp

    @cached_property
    def jvp_graph(self) -> tuple[Graph, Outputs]:
        """The step with its derivative: reads `t_free`, `t_x`, `t_s` too, writes `t_x2` and `t_y` too."""
        forms = self.forms

        def jvp(fixed, free, x, s, *tangents):
            function, floats = self._differentiable(fixed, (free, x, s))
            return jax.jvp(function, floats, tangents, has_aux=True)[1]

        given = (("t_free", forms.free, True), ("t_x", forms.carry, True), ("t_s", forms.inputs, True))
        arguments = [*forms.step_arguments(), *given]
        # JAX makes one loop of a loop and its derivative, but the step itself must not wait for tangents
        step, places = self._step
        lowering = Lowering(step.copy())
        graph, slopes = lowering.graph, self._lower(lowering, self._trace(jvp, arguments), arguments)
        return self._optimize(
            graph, self._take_derivatives(graph, slopes, t_x2=forms.carry, t_y=forms.outputs) | places
        )

    @cached_property
    def _step_jaxpr(self) -> Any:
        """The step as JAX sees it, with the rules of its derivatives: it is traced once for all graphs."""
        closed = self._trace(self.step, self.forms.step_arguments())
        self.forms.check_results(closed.out_avals)
        return closed

    @cached_property
    def _step(self) -> tuple[Graph, Outputs]:
        """The graph of a step, not yet optimised, and its outputs."""
        lowering = Lowering()
        results = self._lower(lowering, self._step_jaxpr, self.forms.step_arguments())
        return lowering.graph, self._step_outputs(lowering.graph, results)

    def _differentiable(self, fixed: Any, trees: tuple[Any, Any, Any]) -> tuple[Callable, tuple[list, ...]]:
        """The step as a function of its floats, with all its results beside, and those floats."""
        forms = self.forms
        groups = (forms.free, forms.carry, forms.inputs)
        again, count = jaxpr_as_fun(self._step_jaxpr), len(forms.carry.leaves)

        def function(*floats):
            given = [form.with_floats(tree, f) for form, tree, f in zip(groups, trees, floats, strict=True)]
            results = again(*jax.tree.leaves((fixed, given)))
            x2, y = results[:count], results[count:]
            return (forms.carry.floats(x2), forms.outputs.floats(y)), results

        return function, tuple(form.floats(tree) for form, tree in zip(groups, trees, strict=True))

    def _trace(self, function: Callable, arguments: list[Argument]) -> Any:
        """A function of trees, traced."""
        trees = [form.floats(form.shapes()) if floats_only else form.shapes() for _, form, floats_only in arguments]
        return jax.make_jaxpr(lambda *given: jax.tree.leaves(function(*given)))(*trees)

    def _lower(self, lowering: Lowering, closed: Any, arguments: list[Argument]) -> list[Nodes]:
        """Nodes of a traced function's results."""
        nodes = []
        for name, form, floats_only in arguments:
            baked = self.baked if name == "fixed" else {}
            in_place = self.in_place.get(name)
            nodes += form.input_nodes(lowering.graph, name, baked, floats_only=floats_only, in_place=in_place)
        return lowering.lower_closed_jaxpr(closed, nodes)

    def _step_outputs(self, graph: Graph, results: list[Nodes]) -> Outputs:
        """Places of what a step returns."""
        carry, outputs = self.forms.carry, self.forms.outputs
        count = len(carry.leaves)
        return carry.output_nodes(graph, "x2", results[:count]) | outputs.output_nodes(graph, "y", results[count:])

    def _take_derivatives(self, graph: Graph, results: list[Nodes], **forms: PytreeLayout) -> Outputs:
        """Places of the derivatives of trees by slot, removed from the front of the results; zero for whole numbers."""
        places: Outputs = {}
        zero = graph.constant(0.0)
        for slot, form in forms.items():
            for leaf, first in zip(form.leaves, form.offsets(), strict=True):
                if leaf.kind != FLOAT:
                    places |= {(slot, first + k): zero for k in range(leaf.size)}
            count = len(form.floats(form.shapes()))
            in_place = self.in_place.get(slot)
            try:
                places |= form.output_nodes(graph, slot, results[:count], floats_only=True, in_place=in_place)
            except UnsupportedPrimitive as error:
                raise UnsupportedPrimitive(f"in the derivative with respect to large arrays, {error}") from None
            del results[:count]
        return places

    def _optimize(self, graph: Graph, places: Outputs) -> tuple[Graph, Outputs]:
        graph, nodes = optimize(graph, list(places.values()), fma=self.fma)
        return graph, dict(zip(places, nodes, strict=True))


class StepLayouts:
    """The forms of a step's arguments and results."""

    def __init__(self, step: Step, fixed: Any, free: Any, carry: Any, inputs: Any, outputs: Any = None):
        """Take the forms from examples; what is not told of the outputs is found by tracing the step."""
        self.fixed, self.free, self.carry, self.inputs = (
            PytreeLayout.from_tree(tree) for tree in (fixed, free, carry, inputs)
        )
        arguments = (self.fixed, self.free, self.carry, self.inputs)
        if outputs is not None:
            self.outputs = PytreeLayout.from_tree(outputs)
            return
        new_carry, outputs = jax.eval_shape(step, *(form.shapes() for form in arguments))
        self.outputs = PytreeLayout.from_tree(outputs)
        if PytreeLayout.from_tree(new_carry) != self.carry:
            raise ValueError("a step must return a state of the same form as the one that it is given")

    def check_results(self, results: Sequence[Any]) -> None:
        """Raise unless these are what a step was said to return."""
        wanted = [*self.carry.leaves, *self.outputs.leaves]
        for k, (leaf, found) in enumerate(zip(wanted, results, strict=True)):
            if (leaf.shape, leaf.dtype) != (tuple(found.shape), str(found.dtype)):
                what = f"array {k} of the state" if k < len(self.carry.leaves) else "what it streams out"
                had, has = f"{leaf.dtype}{list(leaf.shape)}", f"{found.dtype}{list(found.shape)}"
                raise ValueError(f"a step must keep the form of its state: {what} was {had} and became {has}")

    def step_arguments(self) -> list[Argument]:
        """The step's arguments; all their numbers count."""
        names = ("fixed", "free", "x", "s")
        return [
            (n, form, False) for n, form in zip(names, (self.fixed, self.free, self.carry, self.inputs), strict=True)
        ]


def structural_constants(form: PytreeLayout, values: np.ndarray) -> dict[int, float]:
    """Cells whose value becomes part of the code: zeros, ones and infinities of a mechanism."""
    found = {}
    for leaf, first in zip(form.leaves, form.offsets(), strict=True):
        for k, v in enumerate(values[first : first + leaf.size].tolist(), start=first):
            # other whole numbers look like floats that they are not
            if v == 0.0 or (leaf.kind == FLOAT and (v in (1.0, -1.0) or math.isinf(v))):
                found[k] = v
    return found

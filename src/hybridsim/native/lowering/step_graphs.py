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
from hybridsim.native.graph.optimize import optimized
from hybridsim.native.graph.partition import STATE, Outputs, by_slots
from hybridsim.native.graph.rematerialization import cells_of, kept_cells, kept_values, reading_kept
from hybridsim.native.lowering.lower import Lowering, Nodes
from hybridsim.native.lowering.pytree_layout import Cells

Step = Callable[[Any, Any, Any, Any], tuple[Any, Any]]
"""`step(fixed, free, carry, inputs) -> (carry, outputs)`: what a rollout repeats."""

Argument = tuple[str, Cells, bool]
"""Of a function of trees: its slot, its form, and whether only its floats count."""

IN_PLACE = {"fixed": "fixed_rows", "free": "free_rows", "contribution": "sums", "t_free": "t_free"}
"""Slots for the large leaves of others; all but tangents lie where the caller has them, one for all lanes."""


class Program:
    """Graphs of a step function."""

    def __init__(
        self,
        step: Step,
        forms: "Forms",
        baked: dict[int, float],
        *,
        fma: bool,
        in_place: Mapping[str, str] = IN_PLACE,
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
        return self._optimized(graph, places)

    @cached_property
    def vjp_graph(self) -> tuple[Graph, Outputs]:
        """Its transposed derivative: reads `ct`, `ct_y` too, writes `contribution`, `ct2` and `d_s`.

        What it contributes to the gradient of large parameters is added to `sums`.
        """
        graph, _, vjp = self._step_and_vjp
        return self._optimized(graph, vjp)

    @cached_property
    def sweeps(self) -> tuple[tuple[Graph, Outputs], tuple[Graph, Outputs], int]:
        """The step and its transposed derivative for one kernel, and the cells that the first keeps for the second.

        The step writes them to `kept`, where the derivative reads them.
        """
        graph, step, vjp = self._step_and_vjp
        stages = by_slots(graph, step | vjp)
        kept = kept_values(graph, step, vjp, stages, state=STATE)
        step = step | {("kept", cell): node for node, cell in kept_cells(graph, kept).items()}
        size = sum(cells_of(graph, node) for node in kept)
        return self._optimized(graph, step), self._optimized(*reading_kept(graph, vjp, kept)), size

    @cached_property
    def _step_and_vjp(self) -> tuple[Graph, Outputs, Outputs]:
        """One graph of a step and its transposed derivative, not yet optimised, and the outputs of each."""
        forms = self.forms

        def both(fixed, free, x, s, ct, ct_y):
            function, floats = self._differentiable(fixed, (free, x, s))
            _, pull, results = jax.vjp(function, *floats, has_aux=True)
            return pull((ct, ct_y)), results

        arguments = [*forms.of_step(), ("ct", forms.carry, True), ("ct_y", forms.outputs, True)]
        lowering = Lowering()
        graph, results = lowering.graph, self._lowered(lowering, self._jaxpr(both, arguments), arguments)
        vjp = self._taken(graph, results, contribution=forms.free, ct2=forms.carry, d_s=forms.inputs)
        return graph, self._results(graph, results), vjp

    @cached_property
    def jvp_graph(self) -> tuple[Graph, Outputs]:
        """The step with its derivative: reads `t_free`, `t_x`, `t_s` too, writes `t_x2` and `t_y` too."""
        forms = self.forms

        def jvp(fixed, free, x, s, *tangents):
            function, floats = self._differentiable(fixed, (free, x, s))
            return jax.jvp(function, floats, tangents, has_aux=True)[1]

        given = (("t_free", forms.free, True), ("t_x", forms.carry, True), ("t_s", forms.inputs, True))
        arguments = [*forms.of_step(), *given]
        # JAX makes one loop of a loop and its derivative, but the step itself must not wait for tangents
        step, places = self._step
        lowering = Lowering(step.copy())
        graph, slopes = lowering.graph, self._lowered(lowering, self._jaxpr(jvp, arguments), arguments)
        return self._optimized(graph, self._taken(graph, slopes, t_x2=forms.carry, t_y=forms.outputs) | places)

    @cached_property
    def _traced(self) -> Any:
        """The step as JAX sees it, with the rules of its derivatives: it is traced once for all graphs."""
        closed = self._jaxpr(self.step, self.forms.of_step())
        self.forms.check(closed.out_avals)
        return closed

    @cached_property
    def _step(self) -> tuple[Graph, Outputs]:
        """The graph of a step, not yet optimised, and its outputs."""
        lowering = Lowering()
        results = self._lowered(lowering, self._traced, self.forms.of_step())
        return lowering.graph, self._results(lowering.graph, results)

    def _differentiable(self, fixed: Any, trees: tuple[Any, Any, Any]) -> tuple[Callable, tuple[list, ...]]:
        """The step as a function of its floats, with all its results beside, and those floats."""
        forms = self.forms
        groups = (forms.free, forms.carry, forms.inputs)
        again, count = jaxpr_as_fun(self._traced), len(forms.carry.leaves)

        def function(*floats):
            given = [form.with_floats(tree, f) for form, tree, f in zip(groups, trees, floats, strict=True)]
            results = again(*jax.tree.leaves((fixed, given)))
            x2, y = results[:count], results[count:]
            return (forms.carry.floats(x2), forms.outputs.floats(y)), results

        return function, tuple(form.floats(tree) for form, tree in zip(groups, trees, strict=True))

    def _jaxpr(self, function: Callable, arguments: list[Argument]) -> Any:
        """A function of trees, traced."""
        trees = [form.floats(form.shapes()) if floats_only else form.shapes() for _, form, floats_only in arguments]
        return jax.make_jaxpr(lambda *given: jax.tree.leaves(function(*given)))(*trees)

    def _lowered(self, lowering: Lowering, closed: Any, arguments: list[Argument]) -> list[Nodes]:
        """Nodes of a traced function's results."""
        nodes = []
        for name, form, floats_only in arguments:
            baked = self.baked if name == "fixed" else {}
            in_place = self.in_place.get(name)
            nodes += form.nodes(lowering.graph, name, baked, floats_only=floats_only, in_place=in_place)
        return lowering.closed(closed, nodes)

    def _results(self, graph: Graph, results: list[Nodes]) -> Outputs:
        """Places of what a step returns."""
        carry, outputs = self.forms.carry, self.forms.outputs
        count = len(carry.leaves)
        return carry.places(graph, "x2", results[:count]) | outputs.places(graph, "y", results[count:])

    def _taken(self, graph: Graph, results: list[Nodes], **forms: Cells) -> Outputs:
        """Places of the derivatives of trees by slot, removed from the front of the results; zero for whole numbers."""
        places: Outputs = {}
        zero = graph.constant(0.0)
        for slot, form in forms.items():
            for leaf, first in zip(form.leaves, form.starts(), strict=True):
                if leaf.kind != FLOAT:
                    places |= {(slot, first + k): zero for k in range(leaf.size)}
            count = len(form.floats(form.shapes()))
            in_place = self.in_place.get(slot)
            try:
                places |= form.places(graph, slot, results[:count], floats_only=True, in_place=in_place)
            except UnsupportedPrimitive as error:
                raise UnsupportedPrimitive(f"in the derivative with respect to large arrays, {error}") from None
            del results[:count]
        return places

    def _optimized(self, graph: Graph, places: Outputs) -> tuple[Graph, Outputs]:
        graph, nodes = optimized(graph, list(places.values()), fma=self.fma)
        return graph, dict(zip(places, nodes, strict=True))


class Forms:
    """The forms of a step's arguments and results."""

    def __init__(self, step: Step, fixed: Any, free: Any, carry: Any, inputs: Any, outputs: Any = None):
        """Take the forms from examples; what is not told of the outputs is found by tracing the step."""
        self.fixed, self.free, self.carry, self.inputs = (Cells.of(tree) for tree in (fixed, free, carry, inputs))
        arguments = (self.fixed, self.free, self.carry, self.inputs)
        if outputs is not None:
            self.outputs = Cells.of(outputs)
            return
        new_carry, outputs = jax.eval_shape(step, *(form.shapes() for form in arguments))
        self.outputs = Cells.of(outputs)
        if Cells.of(new_carry) != self.carry:
            raise ValueError("a step must return a state of the same form as the one that it is given")

    def check(self, results: Sequence[Any]) -> None:
        """Raise unless these are what a step was said to return."""
        wanted = [*self.carry.leaves, *self.outputs.leaves]
        for k, (leaf, found) in enumerate(zip(wanted, results, strict=True)):
            if (leaf.shape, leaf.dtype) != (tuple(found.shape), str(found.dtype)):
                what = f"array {k} of the state" if k < len(self.carry.leaves) else "what it streams out"
                had, has = f"{leaf.dtype}{list(leaf.shape)}", f"{found.dtype}{list(found.shape)}"
                raise ValueError(f"a step must keep the form of its state: {what} was {had} and became {has}")

    def of_step(self) -> list[Argument]:
        """The step's arguments; all their numbers count."""
        names = ("fixed", "free", "x", "s")
        return [
            (n, form, False) for n, form in zip(names, (self.fixed, self.free, self.carry, self.inputs), strict=True)
        ]


def structural(form: Cells, values: np.ndarray) -> dict[int, float]:
    """Cells whose value becomes part of the code: zeros, ones and infinities of a mechanism."""
    found = {}
    for leaf, first in zip(form.leaves, form.starts(), strict=True):
        for k, v in enumerate(values[first : first + leaf.size].tolist(), start=first):
            # other whole numbers look like floats that they are not
            if v == 0.0 or (leaf.kind == FLOAT and (v in (1.0, -1.0) or math.isinf(v))):
                found[k] = v
    return found

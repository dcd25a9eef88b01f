"""Lowering: a traced JAX function becomes nodes of the scalar graph.

An array is a NumPy array of node numbers, so reshaping, slicing and indexing cost nothing and leave no trace in the
kernel. Every primitive has a rule in one of the `rules_*` files; calls (`jit`, `custom_jvp`, checkpoints) are walked
through, and loops of known length are written out.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jex

from hybridsim.core.errors import UnsupportedPrimitive
from hybridsim.native.graph.arrays import scalarize
from hybridsim.native.graph.graph import BOOL, FLOAT, INT, Graph

MAX_NODES = 500_000
"""Nodes of a graph; compiling more takes longer than anyone would wait."""

Nodes = np.ndarray
"""An array of node numbers."""
Rule = Callable[["Lowering", Any, list[Nodes]], list[Nodes]]
"""Nodes of an equation's results from those of its arguments."""


class Lowering:
    """A graph under construction."""

    def __init__(self, graph: Graph | None = None):
        self.graph = graph if graph is not None else Graph()

    def constants(self, values: Any) -> Nodes:
        """Nodes of known numbers."""
        values = np.asarray(values)
        if values.dtype == np.uint64:
            values = values.view(np.int64)
        flat = values.ravel().tolist()
        if values.dtype.kind == "f" or values.dtype.name == "bfloat16":
            flat = [float(v) for v in flat]
        elif values.dtype.kind not in "iub":
            raise UnsupportedPrimitive(f"numbers of type {values.dtype} have no native code")
        return np.array([self.graph.constant(v) for v in flat], dtype=np.int64).reshape(values.shape)

    def known(self, nodes: Nodes) -> np.ndarray | None:
        """The values of nodes if all of them are constants."""
        constants = self.graph.constants
        values = [constants.get(n) for n in nodes.ravel().tolist()]
        if any(v is None for v in values):
            return None
        return np.array(values).reshape(nodes.shape)

    def elementwise(self, function: Callable[..., int], *arrays: Nodes) -> Nodes:
        """A function of nodes applied along arrays."""
        arrays = tuple(scalarize(self.graph, a) for a in arrays)
        shape = arrays[0].shape
        if any(a.shape != shape for a in arrays):
            arrays = np.broadcast_arrays(*arrays)
            shape = arrays[0].shape
        flat = [a.ravel().tolist() for a in arrays]
        return np.array([function(*nodes) for nodes in zip(*flat, strict=True)], dtype=np.int64).reshape(shape)

    def lower_jaxpr(self, jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Nodes]) -> list[Nodes]:
        """Nodes of a jaxpr's results."""
        values: dict[Any, Nodes] = {}

        def read(variable: Any) -> Nodes:
            return self.constants(variable.val) if isinstance(variable, jex.Literal) else values[variable]

        for variable, value in zip(jaxpr.constvars, consts, strict=True):
            values[variable] = self.constants(value)
        values.update(zip(jaxpr.invars, arguments, strict=True))
        for equation in jaxpr.eqns:
            results = self.lower_equation(equation, [read(v) for v in equation.invars])
            values.update(zip(equation.outvars, results, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def lower_closed_jaxpr(self, closed_jaxpr: Any, arguments: Sequence[Nodes]) -> list[Nodes]:
        """Nodes of the results of a jaxpr that carries its constants."""
        return self.lower_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, arguments)

    def lower_equation(self, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        """Nodes of an equation's results."""
        try:
            results = self._apply_rule(equation, arguments)
            if len(self.graph) > MAX_NODES:
                raise UnsupportedPrimitive(f"written out it would be more than {MAX_NODES:,} operations")
        except UnsupportedPrimitive as error:
            if " (at " in str(error):
                raise
            raise UnsupportedPrimitive(f"{error}{_source_location(equation)}") from None
        outputs = equation.outvars
        if any(v.aval.dtype in _NARROW_FLOATS for v in outputs):
            results = [self._round_to_dtype(v.aval.dtype, nodes) for v, nodes in zip(outputs, results, strict=True)]
        return results

    def _apply_rule(self, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        """The results of the first rule that fits."""
        from hybridsim.native.lowering import rules_arrays

        name = equation.primitive.name
        rule = _rules().get(name)
        if rule is None:
            raise UnsupportedPrimitive(f"the primitive {name!r} has no native code")
        passes = name in rules_arrays.STRUCTURAL
        if not passes and name not in _SIGN_AGNOSTIC and _uses_dtype(_UINT64, equation.invars, equation.outvars):
            raise UnsupportedPrimitive(f"{name!r} of numbers of type uint64 has no native code")
        results = rules_arrays.lower_to_loop(self, equation, arguments)
        if results is not None:
            return results
        if not passes:
            arguments = [scalarize(self.graph, a) for a in arguments]
        return rule(self, equation, arguments)

    def _round_to_dtype(self, dtype: Any, nodes: Nodes) -> Nodes:
        """Single precision is double precision rounded after every operation, which gives the same bits."""
        if dtype == np.float32:
            return self.elementwise(self.graph.round_to_float32, nodes)
        if dtype in _NARROW_FLOATS:
            raise UnsupportedPrimitive(f"numbers of type {dtype} have no native code")
        return nodes


def lower(
    function: Callable, arguments: Sequence[Any], slots: Sequence[str], graph: Graph | None = None
) -> tuple[Graph, list[Nodes]]:
    """Trace a function of arrays and lower it.

    Args:
        function: of flat array arguments, returning a flat sequence of arrays.
        arguments: shapes and types (anything with `shape` and `dtype`).
        slots: the name of the array that each argument is read from.
        graph: a graph to add to.
    """
    closed = jax.make_jaxpr(function)(*[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arguments])
    lowering = Lowering(graph)
    nodes = [
        input_nodes(lowering.graph, slot, a.shape, kind_of(a.dtype)) for slot, a in zip(slots, arguments, strict=True)
    ]
    return lowering.graph, lowering.lower_closed_jaxpr(closed, nodes)


def input_nodes(graph: Graph, slot: str, shape: tuple[int, ...], kind: str = FLOAT, first: int = 0) -> Nodes:
    """Nodes that read an array, row after row."""
    size = int(np.prod(shape, dtype=np.int64))
    return np.array([graph.input(slot, first + k, kind) for k in range(size)], dtype=np.int64).reshape(shape)


def _uses_dtype(dtype: Any, *variables: Sequence[Any]) -> bool:
    return any(v.aval.dtype == dtype for some in variables for v in some)


@cache
def kind_of(dtype: Any) -> str:
    """The kind of node that holds numbers of a type."""
    kind = _KINDS.get(str(dtype))
    if kind is None:
        raise UnsupportedPrimitive(f"numbers of type {dtype} have no native code")
    return kind


_KINDS = {
    **dict.fromkeys(("float64", "float32"), FLOAT),
    **dict.fromkeys(("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"), INT),
    "bool": BOOL,
}
_SIGN_AGNOSTIC = set(
    "add sub mul and or xor not eq ne shift_left shift_right_logical select_n bitcast_convert_type convert_element_type"
    " copy".split()
)
"""What does the same to the bits of uint64 as to those of int64, which stand for them."""
_PACKAGE_ROOT = Path(__file__).parents[2]
_NARROW_FLOATS = {np.dtype(jnp.float32), np.dtype(jnp.float16), np.dtype(jnp.bfloat16)}
_UINT64 = np.dtype(np.uint64)
_rule_table: dict[str, Rule] = {}


def _rules() -> dict[str, Rule]:
    """Every rule by the name of its primitive; collected at first use because the rule files import this one."""
    if not _rule_table:
        from hybridsim.native.lowering import (
            rules_bits,
            rules_calls,
            rules_elementwise,
            rules_indexing,
            rules_linalg,
            rules_reductions,
            rules_structure,
        )

        arrays = (rules_structure, rules_reductions, rules_indexing, rules_linalg)
        for module in (rules_elementwise, rules_bits, *arrays, rules_calls):
            _rule_table.update(module.RULES)
    return _rule_table


def _source_location(equation: Any) -> str:
    """Where in the user's code an equation was written; unknown inside of JAX, where the call that led there tells."""
    from jax._src import source_info_util

    frames = list(source_info_util.user_frames(equation.source_info.traceback))
    if not frames:
        return ""
    # derivatives are traced from within the library, but it is the user's code that they are of
    frame = next((f for f in frames if not Path(f.file_name).is_relative_to(_PACKAGE_ROOT)), frames[0])
    return f" (at {frame.file_name}:{frame.start_line}:{frame.start_column} ({frame.function_name}))"

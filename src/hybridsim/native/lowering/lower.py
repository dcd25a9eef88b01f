"""Lowering of traced JAX functions to the scalar graph.

An array of the traced function is represented by a NumPy array of node ids, so reshapes, slices and static indexing
generate no code. Every primitive has a rule in one of the `rules_*` modules; calls (`jit`, `custom_jvp`, checkpoints)
are inlined, and loops of known trip count are unrolled unless the unrolled code would be long.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jex

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.graph.arrays import scalarize
from hybridsim.native.graph.graph import BOOL, FLOAT, INT, Graph

MAX_NODES = 500_000
"""Maximum number of nodes of a graph, beyond which compilation takes too long."""

Nodes = np.ndarray
"""An array of node ids."""
Rule = Callable[["Lowering", Any, list[Nodes]], list[Nodes]]
"""Lowering rule of a primitive: nodes of the results of an equation from those of its arguments."""


class Lowering:
    """Lowers jaxprs into a graph."""

    def __init__(self, graph: Graph | None = None):
        self.graph = graph if graph is not None else Graph()

    def constants(self, values: Any) -> Nodes:
        """Constant nodes with given values."""
        values = np.asarray(values)
        if values.dtype == np.uint64:
            values = values.view(np.int64)
        flat = values.ravel().tolist()
        if values.dtype.kind == "f" or values.dtype.name == "bfloat16":
            flat = [float(v) for v in flat]
        elif values.dtype.kind not in "iub":
            raise UnsupportedOperationError(f"values of type {values.dtype} are not supported by the native back-end")
        return np.array([self.graph.constant(v) for v in flat], dtype=np.int64).reshape(values.shape)

    def constant_values(self, nodes: Nodes) -> np.ndarray | None:
        """Values of nodes if all of them are constants, else None."""
        constants = self.graph.constants
        values = [constants.get(n) for n in nodes.ravel().tolist()]
        if any(v is None for v in values):
            return None
        return np.array(values).reshape(nodes.shape)

    def map_elements(self, function: Callable[..., int], *arrays: Nodes) -> Nodes:
        """A function of nodes mapped over arrays with broadcasting."""
        arrays = tuple(scalarize(self.graph, a) for a in arrays)
        shape = arrays[0].shape
        if any(a.shape != shape for a in arrays):
            arrays = np.broadcast_arrays(*arrays)
            shape = arrays[0].shape
        flat = [a.ravel().tolist() for a in arrays]
        return np.array([function(*nodes) for nodes in zip(*flat, strict=True)], dtype=np.int64).reshape(shape)

    def lower_jaxpr(self, jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Nodes]) -> list[Nodes]:
        """Nodes of the results of a jaxpr."""
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
        """Nodes of the results of a closed jaxpr."""
        return self.lower_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, arguments)

    def lower_equation(self, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        """Nodes of the results of an equation."""
        try:
            results = self._apply_rule(equation, arguments)
            if len(self.graph) > MAX_NODES:
                raise UnsupportedOperationError(f"the unrolled program has more than {MAX_NODES:,} operations")
        except UnsupportedOperationError as error:
            if " (at " in str(error):
                raise
            raise UnsupportedOperationError(f"{error}{_source_location(equation)}") from None
        outputs = equation.outvars
        if any(v.aval.dtype in _NARROW_FLOATS for v in outputs):
            results = [self._round_to_dtype(v.aval.dtype, nodes) for v, nodes in zip(outputs, results, strict=True)]
        return results

    def _apply_rule(self, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        """Results by the loop rule if it applies, else by the rule of the primitive."""
        from hybridsim.native.lowering import rules_arrays

        name = equation.primitive.name
        rule = _rules().get(name)
        if rule is None:
            raise UnsupportedOperationError(f"the primitive {name!r} is not supported by the native back-end")
        is_structural = name in rules_arrays.STRUCTURAL
        if not is_structural and name not in _SIGN_AGNOSTIC and _uses_dtype(_UINT64, equation.invars, equation.outvars):
            raise UnsupportedOperationError(f"{name!r} of uint64 values is not supported by the native back-end")
        results = rules_arrays.lower_to_loop(self, equation, arguments)
        if results is not None:
            return results
        if not is_structural:
            arguments = [scalarize(self.graph, a) for a in arguments]
        return rule(self, equation, arguments)

    def _round_to_dtype(self, dtype: Any, nodes: Nodes) -> Nodes:
        """Round to single precision, which after every operation gives the bits of single-precision arithmetic."""
        if dtype == np.float32:
            return self.map_elements(self.graph.round_to_float32, nodes)
        if dtype in _NARROW_FLOATS:
            raise UnsupportedOperationError(f"values of type {dtype} are not supported by the native back-end")
        return nodes


def lower(
    function: Callable, arguments: Sequence[Any], slots: Sequence[str], graph: Graph | None = None
) -> tuple[Graph, list[Nodes]]:
    """Trace a function of arrays and lower it.

    Args:
        function: function of flat array arguments that returns a flat sequence of arrays.
        arguments: shapes and types of the arguments (anything with `shape` and `dtype`).
        slots: slot from which each argument is read.
        graph: graph to add nodes to; a new one by default.
    """
    closed = jax.make_jaxpr(function)(*[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arguments])
    lowering = Lowering(graph)
    nodes = [
        input_nodes(lowering.graph, slot, a.shape, kind_of(a.dtype)) for slot, a in zip(slots, arguments, strict=True)
    ]
    return lowering.graph, lowering.lower_closed_jaxpr(closed, nodes)


def input_nodes(graph: Graph, slot: str, shape: tuple[int, ...], kind: str = FLOAT, first: int = 0) -> Nodes:
    """Input nodes of an array, in row-major order."""
    size = int(np.prod(shape, dtype=np.int64))
    return np.array([graph.input(slot, first + k, kind) for k in range(size)], dtype=np.int64).reshape(shape)


def _uses_dtype(dtype: Any, *variables: Sequence[Any]) -> bool:
    return any(v.aval.dtype == dtype for group in variables for v in group)


@cache
def kind_of(dtype: Any) -> str:
    """Kind of node for values of a type."""
    kind = _KINDS.get(str(dtype))
    if kind is None:
        raise UnsupportedOperationError(f"values of type {dtype} are not supported by the native back-end")
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
"""Primitives with the same effect on the bits of uint64 and int64 values; uint64 is stored as int64."""
_PACKAGE_ROOT = Path(__file__).parents[2]
_NARROW_FLOATS = {np.dtype(jnp.float32), np.dtype(jnp.float16), np.dtype(jnp.bfloat16)}
_UINT64 = np.dtype(np.uint64)
_rule_table: dict[str, Rule] = {}


def _rules() -> dict[str, Rule]:
    """Rules by name of the primitive; collected at first use because the rule modules import this one."""
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
    """Location of an equation in the user's code, for the end of a message; empty if JAX has none."""
    from jax._src import source_info_util

    frames = list(source_info_util.user_frames(equation.source_info.traceback))
    if not frames:
        return ""
    # derivatives are traced by the library itself: report the frame of the user's function
    frame = next((f for f in frames if not Path(f.file_name).is_relative_to(_PACKAGE_ROOT)), frames[0])
    return f" (at {frame.file_name}:{frame.start_line}:{frame.start_column} ({frame.function_name}))"

"""Lowering rules of higher-order primitives: calls, loops and branches."""

from typing import Any

import jax
import numpy as np

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.lowering.lower import Lowering, Nodes
from hybridsim.native.lowering.scan_lowering import (
    MAX_WHILE_ITERATIONS,
    MIN_LOOP_ITERATIONS,
    Scan,
    unroll,
    unroll_or_loop,
)


def _call(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """Inline a call; custom derivative rules have been applied before lowering."""
    params = equation.params
    inner = next(params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in params)
    if hasattr(inner, "consts"):
        return lowering.lower_closed_jaxpr(inner, arguments)
    return lowering.lower_jaxpr(inner, (), arguments)


def _high_level_call(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """Inline a high-level primitive of newer versions of JAX by its expansion."""
    operation = equation.params["_prim"]

    def expand(*leaves):
        return jax.tree.leaves(operation.expand(*jax.tree.unflatten(operation.in_tree, leaves)))

    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
    return lowering.lower_closed_jaxpr(jax.make_jaxpr(expand)(*shapes), arguments)


def _scan(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """A loop of known trip count: unrolled, or a loop node if unrolling would be long and fold little."""
    params = equation.params
    n_consts, n_carry = _scan_counts(params)
    scan = Scan(
        params["jaxpr"],
        params["length"],
        bool(params["reverse"]),
        arguments[:n_consts],
        arguments[n_consts : n_consts + n_carry],
        arguments[n_consts + n_carry :],
        [v.aval for v in equation.outvars],
    )
    return unroll(lowering, scan) if scan.trip_count < MIN_LOOP_ITERATIONS else unroll_or_loop(lowering, scan)


def _scan_counts(params: dict[str, Any]) -> tuple[int, int]:
    """Numbers of constants and carry entries of a scan; newer versions of JAX store them as pytrees."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()
    return len(consts), len(carry)


def _while(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """A while loop whose trip count has a constant bound, as in `(k < 20) & (error > tolerance)`.

    All iterations up to the bound are unrolled, so that counters stay constants; the result is selected from the first
    iteration at which the condition is false. A loop under `vmap` has one condition per batch element.
    """
    params, graph = equation.params, lowering.graph
    n_condition, n_body = params["cond_nconsts"], params["body_nconsts"]
    condition_consts = arguments[:n_condition]
    body_consts = arguments[n_condition : n_condition + n_body]
    carry = arguments[n_condition + n_body :]
    candidates: list[tuple[Nodes, list[Nodes]]] = []
    for _ in range(MAX_WHILE_ITERATIONS + 1):
        (condition,) = lowering.lower_closed_jaxpr(params["cond_jaxpr"], [*condition_consts, *carry])
        values = [graph.constants.get(n) for n in condition.flat]
        if all(value is False for value in values):
            break
        if not all(value is True for value in values):
            candidates.append((condition, carry))
        carry = lowering.lower_closed_jaxpr(params["body_jaxpr"], [*body_consts, *carry])
    else:
        raise UnsupportedOperationError(
            f"a while loop has more than {MAX_WHILE_ITERATIONS} iterations, or their number has no constant bound"
        )
    for condition, state in reversed(candidates):
        carry = [
            lowering.map_elements(
                graph.select, condition.reshape(condition.shape + (1,) * (a.ndim - condition.ndim)), a, b
            )
            for a, b in zip(carry, state, strict=True)
        ]
    return list(carry)


def _cond(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """Lower all branches and select the result."""
    graph, branches = lowering.graph, equation.params["branches"]
    index, *operands = arguments
    value = graph.constants.get(index.item())
    if value is not None:
        return lowering.lower_closed_jaxpr(branches[min(max(int(value), 0), len(branches) - 1)], operands)
    results = lowering.lower_closed_jaxpr(branches[-1], operands)
    for k in range(len(branches) - 2, -1, -1):
        # an index out of range is clamped
        branch_index = index.item()
        chosen = (
            graph.compare("le", branch_index, graph.constant(k))
            if graph.kinds[branch_index] == "i"
            else graph.invert(branch_index)
        )
        branch_results = lowering.lower_closed_jaxpr(branches[k], operands)
        results = [
            lowering.map_elements(lambda yes, no, c=chosen: graph.select(c, yes, no), a, b)
            for a, b in zip(branch_results, results, strict=True)
        ]
    return results


def _platform_index(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """Index of the branch for CPUs, or of the default branch."""
    platforms = equation.params["platforms"]
    matches = [k for k, names in enumerate(platforms) if names is None or "cpu" in names]
    if not matches:
        raise UnsupportedOperationError(f"code for the platforms {platforms} is not supported by the native back-end")
    return [lowering.constants(matches[0])]


def _custom_linear_solve(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    lengths = equation.params["const_lengths"]
    counts = [lengths.matvec, lengths.vecmat, lengths.solve, lengths.transpose_solve]
    ends = np.cumsum(counts)
    solve_consts = arguments[ends[1] : ends[2]]
    return lowering.lower_closed_jaxpr(equation.params["jaxprs"].solve, [*solve_consts, *arguments[ends[-1] :]])


RULES = {
    "jit": _call,
    "call_hi_primitive": _high_level_call,
    "pjit": _call,
    "closed_call": _call,
    "core_call": _call,
    "remat": _call,
    "remat2": _call,
    "checkpoint": _call,
    "custom_jvp_call": _call,
    "custom_vjp_call": _call,
    "custom_vjp_call_jaxpr": _call,
    "custom_linear_solve": _custom_linear_solve,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "platform_index": _platform_index,
}

"""Rules of primitives that hold other functions: calls, loops and branches."""

from typing import Any

import jax
import numpy as np

from hybridsim.core.errors import UnsupportedPrimitive
from hybridsim.native.lowering.lower import Lowering, Nodes
from hybridsim.native.lowering.scan_lowering import (
    MAX_WHILE_ITERATIONS,
    MIN_LOOP_ITERATIONS,
    Scan,
    unroll,
    unroll_or_loop,
)


def _call(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """Walk through a call; a custom derivative rule has done its work before lowering."""
    params = equation.params
    inner = next(params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in params)
    if hasattr(inner, "consts"):
        return lowering.lower_closed_jaxpr(inner, arguments)
    return lowering.lower_jaxpr(inner, (), arguments)


def _high_level_call(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """What newer versions of JAX write for operations that expand into others."""
    operation = equation.params["_prim"]

    def expanded(*leaves):
        return jax.tree.leaves(operation.expand(*jax.tree.unflatten(operation.in_tree, leaves)))

    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
    return lowering.lower_closed_jaxpr(jax.make_jaxpr(expanded)(*shapes), arguments)


def _scan(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """A loop of known length: written out, or kept as a loop if that would be long and save nothing."""
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
    """How many constants and carried values a scan has; newer versions of JAX tell by trees of its arguments."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()
    return len(consts), len(carry)


def _while(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """A loop whose number of turns has a bound that does not depend on values, as `(k < 20) & (error > small)` has.

    All turns are written out as if each were needed, so that counters stay known; then the result is that of the first
    turn after which the loop would have ended. A mapped loop has a condition for each of the mapped.
    """
    params, graph = equation.params, lowering.graph
    n_condition, n_body = params["cond_nconsts"], params["body_nconsts"]
    condition_consts = arguments[:n_condition]
    body_consts = arguments[n_condition : n_condition + n_body]
    carry = arguments[n_condition + n_body :]
    perhaps_last: list[tuple[Nodes, list[Nodes]]] = []
    for _ in range(MAX_WHILE_ITERATIONS + 1):
        (go_on,) = lowering.lower_closed_jaxpr(params["cond_jaxpr"], [*condition_consts, *carry])
        ends = [graph.constants.get(n) for n in go_on.flat]
        if all(end is False for end in ends):
            break
        if not all(end is True for end in ends):
            perhaps_last.append((go_on, carry))
        carry = lowering.lower_closed_jaxpr(params["body_jaxpr"], [*body_consts, *carry])
    else:
        raise UnsupportedPrimitive(
            f"a while loop takes more than {MAX_WHILE_ITERATIONS} turns, or has no bound on them"
        )
    for go_on, earlier in reversed(perhaps_last):
        carry = [
            lowering.elementwise(graph.select, go_on.reshape(go_on.shape + (1,) * (a.ndim - go_on.ndim)), a, b)
            for a, b in zip(carry, earlier, strict=True)
        ]
    return list(carry)


def _cond(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """Every branch is computed and the right result chosen."""
    graph, branches = lowering.graph, equation.params["branches"]
    index, *operands = arguments
    known = graph.constants.get(index.item())
    if known is not None:
        return lowering.lower_closed_jaxpr(branches[min(max(int(known), 0), len(branches) - 1)], operands)
    results = lowering.lower_closed_jaxpr(branches[-1], operands)
    for k in range(len(branches) - 2, -1, -1):
        # an index out of range means the nearest branch
        here = index.item()
        chosen = graph.compare("le", here, graph.constant(k)) if graph.kinds[here] == "i" else graph.invert(here)
        others = lowering.lower_closed_jaxpr(branches[k], operands)
        results = [
            lowering.elementwise(lambda yes, no, c=chosen: graph.select(c, yes, no), a, b)
            for a, b in zip(others, results, strict=True)
        ]
    return results


def _platform_index(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """The branch for this kind of processor, or the one for any."""
    platforms = equation.params["platforms"]
    fits = [k for k, names in enumerate(platforms) if names is None or "cpu" in names]
    if not fits:
        raise UnsupportedPrimitive(f"code for the platforms {platforms} has no native code")
    return [lowering.constants(fits[0])]


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

"""Elementary functions expanded into arithmetic on graph nodes, so that they vectorize over lanes.

Expansions have no branches, tables or calls: they are the same sequence of IEEE operations on every lane of every
vector width, so results do not depend on vectorization. Errors are below 2 ulp; that of tanh is below 2.6 ulp (see the
tests).

Many of these sums are exact only in the given order and must not be reassociated, so functions are expanded after all
passes that reorder arithmetic.

Polynomials are minimax fits made for this package, with coefficients rounded successively, lowest degree first; the
stated errors include this rounding.
"""

from collections.abc import Callable

from hybridsim.native.graph import functions_exp, functions_inverse, functions_log, functions_trig
from hybridsim.native.graph.functions_expr import Expr
from hybridsim.native.graph.graph import Graph

EXPANSIONS: dict[str, Callable[..., Expr]] = {
    "sin": functions_trig.sin,
    "cos": functions_trig.cos,
    "tan": functions_trig.tan,
    "asin": functions_inverse.asin,
    "acos": functions_inverse.acos,
    "atan": functions_inverse.atan,
    "atan2": functions_inverse.atan2,
    "exp": functions_exp.exp,
    "exp2": functions_exp.exp2,
    "expm1": functions_exp.expm1,
    "sinh": functions_exp.sinh,
    "cosh": functions_exp.cosh,
    "tanh": functions_exp.tanh,
    "logistic": functions_exp.logistic,
    "log": functions_log.log,
    "log1p": functions_log.log1p,
    "pow": functions_log.power,
}
"""Expansion of each function; functions not listed are calls to the C library."""


def expand(graph: Graph, name: str, *args: int, fma: bool) -> int | None:
    """Expand an elementary function into arithmetic.

    Args:
        graph: graph to add the nodes to.
        name: name of the function, as in `Graph.function`.
        args: its arguments.
        fma: whether the target has fused multiply-add; without it, products and sums are rounded separately.

    Returns:
        The node of the result, or None if the function is a call to the C library.
    """
    expansion = EXPANSIONS.get(name)
    if expansion is None:
        return None
    return expansion(*(Expr(graph, arg, fma) for arg in args)).node

"""Elementary functions as arithmetic on graph nodes, so that they run on all lanes at once.

No branches, no tables, no calls: every formula is the same sequence of IEEE operations on every lane of every width, so
results do not depend on how a kernel is vectorised. Errors stay below 2 units in the last place,
that of tanh below 2.6 (see the tests).

Many of these sums are exact only in the order in which they are written: nothing may reorder them afterwards, so
functions are expanded after every pass that rearranges arithmetic.

Polynomials are minimax fits made for this package, with coefficients rounded one after the other, lowest first; each
states the error that is left after rounding.
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
"""How each function is written as arithmetic; the ones that are missing are left to the C library."""


def expand(graph: Graph, name: str, *args: int, fma: bool) -> int | None:
    """Writes an elementary function as arithmetic.

    Args:
        graph: Graph that gets the nodes.
        name: Name of the function, as in `Graph.function`.
        args: Its arguments.
        fma: Whether the machine has fused multiply-add; without it, products and sums round one by one.

    Returns:
        The node of the result, or None if the function is left to the C library.
    """
    expansion = EXPANSIONS.get(name)
    if expansion is None:
        return None
    return expansion(*(Expr(graph, arg, fma) for arg in args)).node

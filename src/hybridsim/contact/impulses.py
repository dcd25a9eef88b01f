"""Solving a contact problem for its impulses, with one of two derivatives.

`unrolled`: the derivative of the sweeps that were made, exact for what was computed, however far they have come.

`implicit`: the derivative of the solution. There one Gauss–Seidel update leaves every impulse where it is,
x = N(x, A x + b), and differentiating that gives one linear system for the change of x, whatever the number of sweeps;
none of them has to be kept for the reverse sweep. It is off by as much as the sweeps are from the solution, and knows
nothing of the impulses that they started with.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from hybridsim.contact.delassus import delassus, divided, factor
from hybridsim.contact.gauss_seidel import Problem, gauss_seidel, gauss_seidel_map
from hybridsim.core.types import AnyArray

GRADIENTS = ("unrolled", "implicit")


class Rows(eqx.Module):
    """A contact problem of a mechanism; `Problem` says what the fields mean that are not explained here."""

    M: Float[AnyArray, "nv nv"]
    """Mass matrix."""
    J: Float[AnyArray, "n nv"]
    """Velocities of the rows by those of the mechanism."""
    b: Float[AnyArray, " n"]
    softness: Float[AnyArray, " n"]
    """Share of a row's own entry of A that is added to it."""
    cfm: Float[AnyArray, " n"]
    """What else is added to it (constraint force mixing) [1/kg]."""
    friction: Float[AnyArray, " nc"]
    lower: Float[AnyArray, " nj"]
    upper: Float[AnyArray, " nj"]
    cone: str = eqx.field(static=True)

    def problem(self) -> Problem:
        """The problem in the space of impulses."""
        A = delassus(self.M, self.J)
        A = A + jnp.diag(self.softness * jnp.diagonal(A) + self.cfm)
        return Problem(A, self.b, self.friction, self.lower, self.upper, self.cone)


def impulses(rows: Rows, start: Float[AnyArray, " n"], sweeps: int, gradient: str) -> Float[AnyArray, " n"]:
    """Impulses after some sweeps of projected Gauss–Seidel.

    Args:
        rows: the problem.
        start: impulses to begin with.
        sweeps: how often every row has its turn.
        gradient: `unrolled` or `implicit`.
    """
    if gradient == "unrolled":
        return gauss_seidel(rows.problem(), start, sweeps)
    return _solution(rows, jax.lax.stop_gradient(start), sweeps)


@eqx.filter_custom_jvp
def _solution(rows: Rows, start: Float[AnyArray, " n"], sweeps: int) -> Float[AnyArray, " n"]:
    return gauss_seidel(rows.problem(), start, sweeps)


@_solution.def_jvp
def _change_of_solution(primals, tangents):
    rows, start, sweeps = primals
    x = _solution(rows, start, sweeps)
    A = rows.problem().A
    X = divided(factor(rows.M), rows.J.T)  # M⁻¹ Jᵀ
    dv = X @ x

    def updated(rows: Rows) -> Float[AnyArray, " n"]:
        """The update as a function of the problem at fixed impulses; X and A within it are numbers.

        A x and the diagonal of A are written so that they have the right derivative nevertheless.
        """
        Ax = rows.J @ dv + (rows.J.T @ x - rows.M @ dv) @ X
        diagonal = 2.0 * jnp.sum(rows.J.T * X, axis=0) - jnp.sum(X * (rows.M @ X), axis=0)
        w = Ax + (rows.softness * diagonal + rows.cfm) * x + rows.b
        # the steps that A sets do not matter at a solution
        return gauss_seidel_map(Problem(A, rows.b, rows.friction, rows.lower, rows.upper, rows.cone), x, w)

    _, change = eqx.filter_jvp(updated, (rows,), (tangents[0],))
    # x = N(x, A x + b), so (1 − ∂N/∂x − ∂N/∂w A) dx = change of N
    by_x, by_w = jax.jacfwd(lambda x, w: gauss_seidel_map(rows.problem(), x, w), argnums=(0, 1))(x, A @ x + rows.b)
    return x, jnp.linalg.solve(jnp.eye(len(x)) - by_x - by_w @ A, change)

"""Solving a contact problem for its impulses and what they do to the velocities, with one of two derivatives.

`unrolled`: the derivative of the sweeps that were made, exact for what was computed, however far they have come.

`implicit`: the derivative of the solution. There one more step leaves every impulse where it is,
x = N(x − s (A x + b)), and differentiating that gives one linear system for the change of x, whatever the number of
sweeps; none of them has to be kept for the reverse sweep. It is off by as much as the sweeps are from the solution, and
knows nothing of the impulses that they started with.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.delassus import momentum, response
from hybridsim.contact.elimination import eliminated
from hybridsim.contact.gauss_seidel import Problem, gauss_seidel, projected, projected_rows
from hybridsim.core.types import AnyArray, Qd, Tau
from hybridsim.dynamics.kinematics import Kinematics
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import RigidInertia

GRADIENTS = ("unrolled", "implicit")


class Mechanism(NamedTuple):
    """What decides how velocities answer to impulses."""

    model: Model
    kin: Kinematics
    inertia: RigidInertia


class Rows(eqx.Module):
    """A contact problem of a mechanism; `Problem` says what the fields mean that are not explained here."""

    J: Float[AnyArray, "n nv"]
    """Velocities of the rows by those of the mechanism."""
    b: Float[AnyArray, " n"]
    cfm: Float[AnyArray, " n"]
    """Constraint force mixing, which is added to each row's own entry of A [1/kg]."""
    friction: Float[AnyArray, " nc"]
    lower: Float[AnyArray, " nj"]
    upper: Float[AnyArray, " nj"]
    cone: str = eqx.field(static=True)

    def problem(self, A: Float[AnyArray, "n n"]) -> Problem:
        """The problem in the space of impulses, regularised."""
        return Problem(A + jnp.diag(self.cfm), self.b, self.friction, self.lower, self.upper, self.cone)


class Answer(NamedTuple):
    """Impulses, and what they do."""

    impulses: Float[AnyArray, " n"]
    dv: Qd
    """Change of the velocities."""


def answer(mechanism: Mechanism, rows: Rows, start: Float[AnyArray, " n"], sweeps: int, gradient: str) -> Answer:
    """Impulses after some sweeps of projected Gauss–Seidel.

    Args:
        mechanism: that they act on.
        rows: the problem.
        start: impulses to begin with.
        sweeps: how often every row has its turn.
        gradient: `unrolled` or `implicit`.
    """
    if gradient == "implicit":
        return _solution(mechanism, rows, jax.lax.stop_gradient(start), sweeps)
    x = gauss_seidel(rows.problem(response(*mechanism).delassus(rows.J)), start, sweeps)
    return Answer(x, velocity_change(mechanism, rows.J, x))


@eqx.filter_custom_jvp
def velocity_change(mechanism: Mechanism, J: Float[AnyArray, "n nv"], x: Float[AnyArray, " n"]) -> Qd:
    """M⁻¹ Jᵀ x; its derivative goes through M dv = Jᵀ x, as that of forward dynamics does."""
    return response(*mechanism).combined(J, x)


@velocity_change.def_jvp
def _change_of_velocity_change(primals, tangents):
    mechanism, J, x = primals
    dv = velocity_change(mechanism, J, x)
    _, change = eqx.filter_jvp(lambda given, J, x: x @ J - momentum(*given, v=dv), primals, tangents)
    return dv, _divided(mechanism, change)


def _divided(mechanism: Mechanism, p: Tau) -> Qd:
    """M⁻¹ times an impulse, as something linear that JAX can transpose."""
    to_velocity = response(*mechanism)
    return jax.lax.custom_linear_solve(
        lambda v: momentum(*mechanism, v=v), p, lambda _, p: to_velocity.divided(p), symmetric=True
    )


@eqx.filter_custom_jvp
def _solution(mechanism: Mechanism, rows: Rows, start: Float[AnyArray, " n"], sweeps: int) -> Answer:
    to_velocity = response(*mechanism)
    x = gauss_seidel(rows.problem(to_velocity.delassus(rows.J)), start, sweeps)
    return Answer(x, to_velocity.combined(rows.J, x))


@_solution.def_jvp
def _change_of_solution(primals, tangents):
    mechanism, rows, start, sweeps = primals
    x, dv = _solution(mechanism, rows, start, sweeps)
    J = rows.J
    problem = rows.problem(response(*mechanism).delassus(J))

    # changes at fixed impulses: of the velocities, then of what an update makes of the impulses
    def push(mechanism: Mechanism, rows: Rows) -> Qd:
        return x @ rows.J - momentum(*mechanism, v=dv)

    _, d_push = eqx.filter_jvp(push, (mechanism, rows), (tangents[0], tangents[1]))
    d_dv = _divided(mechanism, d_push)

    steps = problem.steps

    def updated(rows: Rows, moved: Qd) -> Float[AnyArray, " n"]:
        # the steps that A sets do not matter at a solution
        w = rows.J @ dv + J @ moved + rows.cfm * x + rows.b
        like = Problem(problem.A, rows.b, rows.friction, rows.lower, rows.upper, rows.cone)
        return projected(like, x - steps * w)

    _, change = eqx.filter_jvp(updated, (rows, jnp.zeros_like(dv)), (tangents[1], d_dv))
    # x = N(x − s (A x + b)), so (1 − N' (1 − s A)) dx = change of N
    wanted = x - steps * (problem.A @ x + rows.b)
    G = np.eye(len(x)) - projected_rows(problem, wanted, np.eye(len(x)) - steps[:, None] * problem.A)
    dx = eliminated(G, change)
    return Answer(x, dv), Answer(dx, d_dv + _divided(mechanism, dx @ J))

"""Solving a contact problem for its impulses and the accelerations with them, with one of two derivatives.

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

from hybridsim.contact.impulse.gauss_seidel import ContactProblem, gauss_seidel, project, project_tangents
from hybridsim.contact.impulse.linear_solve import solve_without_pivoting
from hybridsim.core.types import AnyArray, Qd, Qdd, Scalar, Tau
from hybridsim.dynamics.kinematics import Kinematics
from hybridsim.dynamics.mass_factors import MassFactors, mass_factors
from hybridsim.dynamics.rnea import tree_bias_torques, tree_torques
from hybridsim.model.coordinates import expand_v, reduce_tau
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import RigidInertia

GRADIENTS = ("unrolled", "implicit")
GIVING_WAY = 2e-7
"""By how much of its own entry of A a row gives way in the implicit derivative. Feet of one body that stick hold each
other along the line between them, where hardly anything can move: sweeps would take millions to find what they do to
each other, and without this the derivative would be that of an answer which they never reach."""


class Mechanism(NamedTuple):
    """What decides how a mechanism accelerates."""

    model: Model
    kin: Kinematics
    inertia: RigidInertia
    bias: Float[AnyArray, "nb 6"]
    """Forces that the bodies' motion calls for, minus those from outside [N·m, N]."""
    tau: Tau
    """Joint torques or forces [N·m or N]."""

    def factors(self) -> MassFactors:
        """M, factored."""
        return mass_factors(self.model, self.kin, self.inertia)

    def torque(self) -> Tau:
        """Joint torques minus what holds the bodies to their motion: M qdd without impulses."""
        rest = tree_bias_torques(self.model, self.kin, self.inertia, self.bias)
        return self.tau - reduce_tau(self.model, rest)

    def imbalance(self, qdd: Qdd) -> Tau:
        """Joint torques minus those that accelerations call for: zero without impulses."""
        tree = tree_torques(self.model, self.kin, self.inertia, self.bias, expand_v(self.model, qdd))
        return self.tau - reduce_tau(self.model, tree)


class ConstraintRows(eqx.Module):
    """A contact problem of a mechanism; `Problem` says what the fields mean that are not explained here."""

    J: Float[AnyArray, "n nv"]
    """Velocities of the rows by those of the mechanism."""
    b: Float[AnyArray, " n"]
    """As in `Problem`, but without what the accelerations of the step add."""
    dt: Scalar
    """Time step [s]."""
    cfm: Float[AnyArray, " n"]
    """Constraint force mixing, which is added to each row's own entry of A [1/kg]."""
    friction: Float[AnyArray, " nc"]
    lower: Float[AnyArray, " nj"]
    upper: Float[AnyArray, " nj"]
    cone: str = eqx.field(static=True)

    def problem(self, factors: MassFactors, free: Float[AnyArray, " nv"]) -> ContactProblem:
        """The problem for a mechanism that accelerates like this without impulses (the second half of its torque)."""
        u, k = jax.vmap(factors.half_solve)(self.J)
        return ContactProblem(
            u, k, self.cfm, self.b + self.dt * (u @ free), self.friction, self.lower, self.upper, self.cone
        )


class ContactSolution(NamedTuple):
    """Impulses, and the accelerations with them."""

    impulses: Float[AnyArray, " n"]
    qdd: Qdd


def solve_contacts(
    mechanism: Mechanism, rows: ConstraintRows, start: Float[AnyArray, " n"], sweeps: int, gradient: str
) -> ContactSolution:
    """Impulses after some sweeps of projected Gauss–Seidel, and the accelerations over the step that they lead to.

    Args:
        mechanism: that they act on.
        rows: the problem.
        start: impulses to begin with.
        sweeps: how often every row has its turn.
        gradient: `unrolled` or `implicit`.
    """
    if gradient == "implicit":
        return _solution(mechanism, rows, jax.lax.stop_gradient(start), sweeps)
    return _computed(mechanism, rows, start, sweeps)


def _computed(mechanism: Mechanism, rows: ConstraintRows, start: Float[AnyArray, " n"], sweeps: int) -> ContactSolution:
    """Impulses, and accelerations with them.

    What a torque does to rows follows from the halves of both (see `mass_factors.py`), so that no acceleration is
    computed before the impulses are known.
    """
    factors = mechanism.factors()
    _, free = factors.half_solve(mechanism.torque())
    found = gauss_seidel(rows.problem(factors, free), start, sweeps)
    return ContactSolution(found.x, factors.finish_solve(free + found.z / rows.dt))


def velocity_change(mechanism: Mechanism, J: Float[AnyArray, "n nv"], x: Float[AnyArray, " n"]) -> Qd:
    """M⁻¹ Jᵀ x."""
    return mechanism.factors().apply_mass_inverse(x @ J)


@eqx.filter_custom_jvp
def _solution(mechanism: Mechanism, rows: ConstraintRows, start: Float[AnyArray, " n"], sweeps: int) -> ContactSolution:
    return _computed(mechanism, rows, start, sweeps)


@_solution.def_jvp
def _change_of_solution(primals, tangents):
    mechanism, rows, start, sweeps = primals
    x, qdd = _solution(mechanism, rows, start, sweeps)
    J, dt = rows.J, rows.dt
    factors = mechanism.factors()
    problem = rows.problem(factors, np.zeros(J.shape[1]))
    steps = problem.steps

    # changes at fixed impulses: of the accelerations, then of what a further step makes of the impulses
    def imbalance(mechanism: Mechanism, rows: ConstraintRows) -> Tau:
        return mechanism.imbalance(qdd) + (x / rows.dt) @ rows.J

    _, change = eqx.filter_jvp(imbalance, (mechanism, rows), (tangents[0], tangents[1]))
    # none where what changes is a number that accelerations at fixed impulses do not depend on, as friction
    d_qdd = jnp.zeros_like(qdd) if change is None else factors.apply_mass_inverse(change)

    def wanted(rows: ConstraintRows, moved: Qdd) -> Float[AnyArray, " n"]:
        # the steps that A sets do not matter at a solution
        return x - steps * (rows.b + rows.dt * (rows.J @ qdd + J @ moved) + rows.cfm * x)

    def updated(rows: ConstraintRows, moved: Qdd) -> Float[AnyArray, " n"]:
        limits = eqx.tree_at(lambda p: (p.friction, p.lower, p.upper), problem, (rows.friction, rows.lower, rows.upper))
        return project(limits, wanted(rows, moved))

    still = jnp.zeros_like(qdd)
    _, change = eqx.filter_jvp(updated, (rows, still), (tangents[1], d_qdd))
    # x = N(x − s (A x + b)), so (1 − N' (1 − s A)) dx = change of N
    own = np.eye(len(x))
    kept = (1.0 - GIVING_WAY) * own - steps[:, None] * problem.A
    dx = solve_without_pivoting(own - project_tangents(problem, wanted(rows, still), kept), change)
    return ContactSolution(x, qdd), ContactSolution(dx, d_qdd + factors.apply_mass_inverse(dx @ J) / dt)

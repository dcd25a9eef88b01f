"""Solution of a contact problem for impulses and accelerations, with one of two derivatives.

`unrolled`: derivative of the sweeps themselves, exact for the computed result, converged or not.

`implicit`: derivative of the converged solution, a fixed point of the projected Jacobi update x = N(x − s (A x + b)),
with step sizes s and the projection N onto the feasible set. Differentiating the fixed point gives one linear system
for the tangent of x, whatever the number of sweeps, and reverse mode stores none of them. The error of this derivative
is of the order of the convergence error, and the warm start has no influence on it.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.impulse.gauss_seidel import ContactProblem, gauss_seidel, project, project_jvp
from hybridsim.contact.impulse.linear_solve import solve_without_pivoting
from hybridsim.core.types import AnyArray, Qd, Qdd, Scalar, Tau
from hybridsim.dynamics.equations_of_motion import EquationsOfMotion
from hybridsim.dynamics.mass_factors import MassFactors

GRADIENTS = ("unrolled", "implicit")
IMPLICIT_SOFTNESS = 2e-7
"""Softness of every row in the implicit derivative, relative to its diagonal entry of A. Two sticking feet of one body
are nearly redundant constraints along the line between them, and their internal force takes millions of sweeps to
converge; without softness the derivative would be that of a solution that is never reached."""


class ConstraintRows(eqx.Module):
    """Constraint rows of a mechanism; other fields are as in `ContactProblem`."""

    J: Float[AnyArray, "n nv"]
    """Constraint Jacobian."""
    b: Float[AnyArray, " n"]
    """As in `ContactProblem`, but without the velocity change due to the free acceleration."""
    dt: Scalar
    """Time step [s]."""
    cfm: Float[AnyArray, " n"]
    """Constraint force mixing, added to the diagonal of A [1/kg]."""
    friction: Float[AnyArray, " nc"]
    lower: Float[AnyArray, " nj"]
    upper: Float[AnyArray, " nj"]
    cone: str = eqx.field(static=True)

    def problem(self, factors: MassFactors, free: Float[AnyArray, " nv"]) -> ContactProblem:
        """Contact problem for a free acceleration, given as D⁻¹ u of `MassFactors.half_solve`."""
        u, k = jax.vmap(factors.half_solve)(self.J)
        return ContactProblem(
            u, k, self.cfm, self.b + self.dt * (u @ free), self.friction, self.lower, self.upper, self.cone
        )


class ContactSolution(NamedTuple):
    """Impulses and the resulting accelerations."""

    impulses: Float[AnyArray, " n"]
    qdd: Qdd


def solve_contacts(
    equations: EquationsOfMotion, rows: ConstraintRows, warm_start: Float[AnyArray, " n"], sweeps: int, gradient: str
) -> ContactSolution:
    """Impulses after a number of projected Gauss–Seidel sweeps, and the resulting accelerations over the step.

    Args:
        equations: equations of motion of the mechanism without impulses.
        rows: constraint rows.
        warm_start: initial impulses.
        sweeps: number of sweeps over all rows.
        gradient: `unrolled` or `implicit`.
    """
    if gradient == "implicit":
        return _solution(equations, rows, jax.lax.stop_gradient(warm_start), sweeps)
    return _run_sweeps(equations, rows, warm_start, sweeps)


def _run_sweeps(
    equations: EquationsOfMotion, rows: ConstraintRows, warm_start: Float[AnyArray, " n"], sweeps: int
) -> ContactSolution:
    """Impulses and accelerations by Gauss–Seidel.

    The effect of a torque on the rows follows from the half solves of both (see `mass_factors.py`), so accelerations
    need to be computed only once, after the impulses.
    """
    factors = equations.mass_factors()
    _, free = factors.half_solve(equations.net_torque())
    impulses = gauss_seidel(rows.problem(factors, free), warm_start, sweeps)
    return ContactSolution(impulses.x, factors.finish_solve(free + impulses.z / rows.dt))


def velocity_change(equations: EquationsOfMotion, J: Float[AnyArray, "n nv"], x: Float[AnyArray, " n"]) -> Qd:
    """Velocity change M⁻¹ Jᵀ x by impulses x."""
    return equations.mass_factors().apply_mass_inverse(x @ J)


@eqx.filter_custom_jvp
def _solution(
    equations: EquationsOfMotion, rows: ConstraintRows, warm_start: Float[AnyArray, " n"], sweeps: int
) -> ContactSolution:
    return _run_sweeps(equations, rows, warm_start, sweeps)


@_solution.def_jvp
def _solution_jvp(primals, tangents):
    equations, rows, warm_start, sweeps = primals
    x, qdd = _solution(equations, rows, warm_start, sweeps)
    J, dt = rows.J, rows.dt
    factors = equations.mass_factors()
    problem = rows.problem(factors, np.zeros(J.shape[1]))
    step_sizes = problem.step_sizes

    # tangents at fixed impulses: of the accelerations, then of one more update of the impulses
    def imbalance(equations: EquationsOfMotion, rows: ConstraintRows) -> Tau:
        return equations.imbalance(qdd) + (x / rows.dt) @ rows.J

    _, tangent = eqx.filter_jvp(imbalance, (equations, rows), (tangents[0], tangents[1]))
    # `None` if only parameters such as friction vary, which do not affect accelerations at fixed impulses
    d_qdd = jnp.zeros_like(qdd) if tangent is None else factors.apply_mass_inverse(tangent)

    def unprojected_update(rows: ConstraintRows, delta_qdd: Qdd) -> Float[AnyArray, " n"]:
        # at a solution the derivative does not depend on the step sizes
        return x - step_sizes * (rows.b + rows.dt * (rows.J @ qdd + J @ delta_qdd) + rows.cfm * x)

    def update(rows: ConstraintRows, delta_qdd: Qdd) -> Float[AnyArray, " n"]:
        varied = eqx.tree_at(lambda p: (p.friction, p.lower, p.upper), problem, (rows.friction, rows.lower, rows.upper))
        return project(varied, unprojected_update(rows, delta_qdd))

    zero = jnp.zeros_like(qdd)
    _, tangent = eqx.filter_jvp(update, (rows, zero), (tangents[1], d_qdd))
    # x = N(x − s (A x + b)), so (1 − N' (1 − s A)) dx = tangent of N at fixed x
    identity = np.eye(len(x))
    iteration_matrix = (1.0 - IMPLICIT_SOFTNESS) * identity - step_sizes[:, None] * problem.A
    dx = solve_without_pivoting(
        identity - project_jvp(problem, unprojected_update(rows, zero), iteration_matrix), tangent
    )
    return ContactSolution(x, qdd), ContactSolution(dx, d_qdd + factors.apply_mass_inverse(dx @ J) / dt)

"""Projected Gauss–Seidel for impulses under unilateral contact and Coulomb friction.

w = A x + b with A = u kᵀ + diag(cfm) is the velocity after the impulses x minus the target velocity, plus the CFM term.
Contacts obey 0 ≤ x_n ⊥ w_n ≥ 0 and friction opposes slip within |x_t| ≤ μ x_n; scalar rows obey lower ≤ x ≤ upper with
w = 0 between the bounds. Row by row, each impulse is set so that its own w vanishes, then projected onto its feasible
set, for a fixed number of sweeps over all rows. There is no test of convergence, and a step reports no convergence
error: with the warm start, the iteration continues from step to step. What a number of sweeps achieves is measured in
docs/contact.md.

The sweeps never form A; only the implicit derivative does. The combined effect of all impulses is one vector of size
nv, z = kᵀ x, which every row update reads and writes: the cost of an update grows with the degrees of freedom, not
with the contacts. No update uses the index of its row, so a sweep is a single loop in XLA, and also in native code if
it is long.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.numerics import TINY_COMPLIANCE, clamp
from hybridsim.core.types import AnyArray

CONES = ("pyramidal", "circular")
"""Friction bounded along each tangent separately, or by a circle."""


class ContactProblem(eqx.Module):
    """Complementarity problem. Contact rows first, three each (normal, tangents), then scalar rows."""

    u: Float[AnyArray, "n nv"]
    k: Float[AnyArray, "n nv"]
    """Factors of A: u[i] · k[j] is the velocity of row i due to a unit impulse of row j."""
    cfm: Float[AnyArray, " n"]
    """Regularization added to the diagonal of A [1/kg, or 1/(kg·m²) for revolute joints]."""
    b: Float[AnyArray, " n"]
    """Velocity without impulses minus target velocity [m/s or rad/s]."""
    friction: Float[AnyArray, " nc"]
    """Friction coefficient μ."""
    lower: Float[AnyArray, " nj"]
    upper: Float[AnyArray, " nj"]
    """Bounds of the impulses of scalar rows."""
    cone: str = eqx.field(static=True, default="pyramidal")

    @property
    def nc(self) -> int:
        """Number of contacts."""
        return self.friction.shape[0]

    @property
    def nj(self) -> int:
        """Number of scalar rows."""
        return self.lower.shape[0]

    @property
    def A(self) -> Float[AnyArray, "n n"]:
        """Regularized Delassus matrix J M⁻¹ Jᵀ + diag(cfm) [1/kg or 1/(kg·m²)]."""
        upper = np.triu(np.ones((self.u.shape[0], self.u.shape[0]), dtype=bool))
        A = self.u @ self.k.T
        return jnp.where(upper, A, A.T) + jnp.diag(self.cfm)  # native code does not compute the lower triangle

    @property
    def blocks(self) -> Float[AnyArray, "nc 3 3"]:
        """Diagonal 3×3 blocks of A, one per contact."""
        nc = self.nc
        u, k = (factor[: 3 * nc].reshape(nc, 3, factor.shape[1]) for factor in (self.u, self.k))
        blocks = jnp.einsum("ciz,cjz->cij", u, k)
        upper = np.broadcast_to(np.triu(np.ones((3, 3), dtype=bool)), blocks.shape)
        blocks = jnp.where(upper, blocks, blocks.transpose(0, 2, 1))
        return blocks + jax.vmap(jnp.diag)(self.cfm[: 3 * nc].reshape(nc, 3))

    @property
    def step_sizes(self) -> Float[AnyArray, " n"]:
        """Update of each row's impulse per unit of its velocity."""
        nc, blocks = self.nc, self.blocks
        scalar = jnp.einsum("nz,nz->n", self.u[3 * nc :], self.k[3 * nc :]) + self.cfm[3 * nc :]
        contacts = 1.0 / jnp.stack([blocks[:, 0, 0], blocks[:, 1, 1], blocks[:, 2, 2]], axis=1)
        if self.cone == "circular" and nc:
            # one step size for both tangents, too small to overshoot, so that the projected impulse opposes the slip
            tangent = 1.0 / (jnp.maximum(blocks[:, 1, 1], blocks[:, 2, 2]) + jnp.abs(blocks[:, 1, 2]))
            contacts = jnp.concatenate([contacts[:, :1], tangent[:, None], tangent[:, None]], axis=1)
        return jnp.concatenate([contacts.reshape(-1), 1.0 / scalar])

    @property
    def tangent_friction(self) -> Float[AnyArray, "nc 2"]:
        """Friction coefficient μ along both tangents, zero along tangents of zero inverse effective mass.

        A planar mechanism cannot move out of its plane, and native code eliminates the impulses in that direction.
        """
        blocks = self.blocks
        is_movable = jnp.stack([blocks[:, 1, 1], blocks[:, 2, 2]], axis=1) > 2.0 * TINY_COMPLIANCE
        return jnp.where(is_movable, self.friction[:, None], 0.0)


class Impulses(eqx.Module):
    """Impulses and their combined effect z."""

    x: Float[AnyArray, " n"]
    z: Float[AnyArray, " nv"]
    """kᵀ x."""


def gauss_seidel(problem: ContactProblem, warm_start: Float[AnyArray, " n"], sweeps: int) -> Impulses:
    """Impulses after a number of sweeps from a warm start."""
    nc = problem.nc
    contact_rows, scalar_rows = _contact_rows(problem), _scalar_rows(problem)

    def sweep(state, _):
        z, contacts, scalars = state
        if nc:
            z, contacts = jax.lax.scan(partial(_update_contact, problem.cone), z, (contact_rows, contacts))
        if problem.nj:
            z, scalars = jax.lax.scan(_update_scalar, z, (scalar_rows, scalars))
        return (z, contacts, scalars), None

    state = (warm_start @ problem.k, warm_start[: 3 * nc].reshape(nc, 3), warm_start[3 * nc :])
    (z, contacts, scalars), _ = jax.lax.scan(sweep, state, None, length=sweeps)
    return Impulses(jnp.concatenate([contacts.reshape(-1), scalars]), z)


class _ContactRow(eqx.Module):
    """Data for updating one contact, or all of them with a leading axis."""

    u: Float[AnyArray, "*nc 3 nv"]
    """Scaled by the step size of each row."""
    k: Float[AnyArray, "*nc 3 nv"]
    block: Float[AnyArray, "*nc 3 3"]
    """Diagonal block of A, scaled by the step size of each row."""
    cfm: Float[AnyArray, "*nc 3"]
    """Scaled by the step size of each row."""
    b: Float[AnyArray, "*nc 3"]
    """Scaled by the step size of each row."""
    friction: Float[AnyArray, "*nc 2"]
    """Friction coefficient μ along both tangents."""


def _contact_rows(problem: ContactProblem) -> _ContactRow:
    nc = problem.nc
    steps = problem.step_sizes[: 3 * nc].reshape(nc, 3)
    u, k = (factor[: 3 * nc].reshape(nc, 3, factor.shape[1]) for factor in (problem.u, problem.k))
    cfm, b = (x[: 3 * nc].reshape(nc, 3) for x in (problem.cfm, problem.b))
    block = steps[:, :, None] * problem.blocks
    return _ContactRow(steps[:, :, None] * u, k, block, steps * cfm, steps * b, problem.tangent_friction)


def _update_contact(cone: str, z: Float[AnyArray, " nv"], data: tuple[_ContactRow, Float[AnyArray, "3"]]):
    row, x = data
    # unconstrained update of each impulse, independent of the other two
    proposed = x - (row.u @ z + row.cfm * x + row.b)
    normal = jnp.maximum(proposed[0], 0.0)
    proposed = proposed[1:] - row.block[1:, 0] * (normal - x[0])
    if cone == "pyramidal":
        limit = row.friction * normal
        first = _clamp_impulse(proposed[0], -limit[0], limit[0])
        second = _clamp_impulse(proposed[1] - row.block[2, 1] * (first - x[1]), -limit[1], limit[1])
        updated = jnp.stack([normal, first, second])
    else:
        updated = jnp.concatenate([normal[None], _project_to_circle(proposed, jnp.max(row.friction) * normal)])
    return z + (updated - x) @ row.k, updated


def _clamp_impulse(x: AnyArray, lower: AnyArray, upper: AnyArray) -> AnyArray:
    """Clamp between two bounds, with a zero derivative where they coincide.

    Without this, an open contact without slip would have the derivative of a sticking one.
    """
    return clamp(_stop_gradient_unless(lower < upper, x), lower, upper)


def _stop_gradient_unless(condition: AnyArray, x: AnyArray) -> AnyArray:
    return jnp.where(condition, x, jax.lax.stop_gradient(x))


def _project_to_circle(x: Float[AnyArray, "2"], limit) -> Float[AnyArray, "2"]:
    x = _stop_gradient_unless(limit > 0.0, x)
    squared = x @ x
    slides = squared > limit * limit
    return jnp.where(slides, limit / jnp.sqrt(jnp.where(slides, squared, 1.0)), 1.0) * x


class _ScalarRow(eqx.Module):
    """Data for updating one scalar row, or all with a leading axis; u, cfm and b are scaled by the step size."""

    u: Float[AnyArray, "*nj nv"]
    k: Float[AnyArray, "*nj nv"]
    cfm: Float[AnyArray, "*nj"]
    b: Float[AnyArray, "*nj"]
    lower: Float[AnyArray, "*nj"]
    upper: Float[AnyArray, "*nj"]


def _scalar_rows(problem: ContactProblem) -> _ScalarRow:
    first = 3 * problem.nc
    steps = problem.step_sizes[first:]
    u, k, cfm, b = (x[first:] for x in (problem.u, problem.k, problem.cfm, problem.b))
    return _ScalarRow(steps[:, None] * u, k, steps * cfm, steps * b, problem.lower, problem.upper)


def _update_scalar(z: Float[AnyArray, " nv"], data: tuple[_ScalarRow, Float[AnyArray, ""]]):
    row, x = data
    updated = _clamp_impulse(x - (row.u @ z + row.cfm * x + row.b), row.lower, row.upper)
    return z + (updated - x) * row.k, updated


def project(problem: ContactProblem, proposed: Float[AnyArray, " n"]) -> Float[AnyArray, " n"]:
    """Projection of impulses onto the feasible set.

    With `proposed = x − step_sizes · (A x + b)` this is a projected Jacobi update; its fixed points solve the problem.
    """
    nc = problem.nc
    project_all = jax.vmap(partial(_project_contact, problem.cone))
    contacts = project_all(proposed[: 3 * nc].reshape(nc, 3), problem.tangent_friction)
    scalars = _clamp_impulse(proposed[3 * nc :], problem.lower, problem.upper)
    return jnp.concatenate([contacts.reshape(-1), scalars])


def _project_contact(cone: str, proposed: Float[AnyArray, "3"], friction: Float[AnyArray, "2"]):
    normal = jnp.maximum(proposed[0], 0.0)
    limit = friction * normal
    if cone == "pyramidal":
        return jnp.concatenate([normal[None], _clamp_impulse(proposed[1:], -limit, limit)])
    return jnp.concatenate([normal[None], _project_to_circle(proposed[1:], jnp.max(limit))])


def project_jvp(
    problem: ContactProblem, proposed: Float[AnyArray, " n"], tangents: Float[AnyArray, "n k"]
) -> Float[AnyArray, "n k"]:
    """Jacobian of `project`, which is block diagonal, times a matrix of tangent vectors."""
    nc = problem.nc
    jacobians = jax.vmap(jax.jacfwd(partial(_project_contact, problem.cone)))
    blocks = jacobians(proposed[: 3 * nc].reshape(nc, 3), problem.tangent_friction)
    contacts = jnp.einsum("cij,cjk->cik", blocks, tangents[: 3 * nc].reshape(nc, 3, -1)).reshape(3 * nc, -1)
    scalars = proposed[3 * nc :]
    is_free = (scalars >= problem.lower) & (scalars <= problem.upper) & (problem.lower < problem.upper)
    return jnp.concatenate([contacts, jnp.where(is_free[:, None], tangents[3 * nc :], 0.0)])

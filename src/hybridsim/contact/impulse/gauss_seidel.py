"""Projected Gauss–Seidel: impulses that obey unilateral contact and Coulomb friction.

Velocities after the impulses x are w = A x + b with A = u kᵀ + cfm. Every contact wants 0 ≤ x_n ⊥ w_n ≥ 0 and friction
that opposes its slip within |x_t| ≤ μ x_n, every further row lower ≤ x ≤ upper with w = 0 between the bounds. Row by
row, each impulse is set so that its own w vanishes, then projected onto what is allowed; a fixed number of sweeps over
all rows.

A is never formed. What all impulses together do is kept as one vector of the size of the mechanism, z = kᵀ x, which
each turn reads and changes: a turn costs as much as the mechanism has joints, not as there are contacts. A turn knows
nothing of its number, so that a sweep is one loop, for XLA and, if it is long, in native code.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.numerics import TINY_COMPLIANCE, clamp
from hybridsim.core.types import AnyArray

CONES = ("pyramid", "cone")
"""Friction bounded along each tangent by itself, or by a circle."""


class ContactProblem(eqx.Module):
    """Rows of contacts first, three each (normal, tangents), then single rows."""

    u: Float[AnyArray, "n nv"]
    k: Float[AnyArray, "n nv"]
    """Halves of the rows: u of one times k of another is the velocity of the one after a unit impulse of the other."""
    cfm: Float[AnyArray, " n"]
    """Regularisation: what is added to a row's velocity per unit of its own impulse [1/kg and the like]."""
    b: Float[AnyArray, " n"]
    """Velocity without impulses, minus what is aimed at [m/s or rad/s]."""
    friction: Float[AnyArray, " nc"]
    """Coulomb's μ."""
    lower: Float[AnyArray, " nj"]
    upper: Float[AnyArray, " nj"]
    """Bounds of the single rows' impulses."""
    cone: str = eqx.field(static=True, default="pyramid")

    @property
    def nc(self) -> int:
        """Number of contacts."""
        return self.friction.shape[0]

    @property
    def nj(self) -> int:
        """Number of single rows."""
        return self.lower.shape[0]

    @property
    def A(self) -> Float[AnyArray, "n n"]:
        """Change of each row's velocity by each row's impulse [1/kg and the like]."""
        upper = np.triu(np.ones((self.u.shape[0], self.u.shape[0]), dtype=bool))
        A = self.u @ self.k.T
        return jnp.where(upper, A, A.T) + jnp.diag(self.cfm)  # native code never computes the lower half

    @property
    def blocks(self) -> Float[AnyArray, "nc 3 3"]:
        """A between each contact's own rows."""
        nc = self.nc
        u, k = (half[: 3 * nc].reshape(nc, 3, half.shape[1]) for half in (self.u, self.k))
        own = jnp.einsum("ciz,cjz->cij", u, k)
        upper = np.broadcast_to(np.triu(np.ones((3, 3), dtype=bool)), own.shape)
        own = jnp.where(upper, own, own.transpose(0, 2, 1))
        return own + jax.vmap(jnp.diag)(self.cfm[: 3 * nc].reshape(nc, 3))

    @property
    def steps(self) -> Float[AnyArray, " n"]:
        """What each row's velocity is multiplied by to give the change of its impulse."""
        nc, own = self.nc, self.blocks
        single = jnp.einsum("nz,nz->n", self.u[3 * nc :], self.k[3 * nc :]) + self.cfm[3 * nc :]
        contacts = 1.0 / jnp.stack([own[:, 0, 0], own[:, 1, 1], own[:, 2, 2]], axis=1)
        if self.cone == "cone" and nc:
            # one step for both tangents, so short that it cannot overshoot: then what is projected opposes the slip
            both = 1.0 / (jnp.maximum(own[:, 1, 1], own[:, 2, 2]) + jnp.abs(own[:, 1, 2]))
            contacts = jnp.concatenate([contacts[:, :1], both[:, None], both[:, None]], axis=1)
        return jnp.concatenate([contacts.reshape(-1), 1.0 / single])

    @property
    def limits(self) -> Float[AnyArray, "nc 2"]:
        """Coulomb's μ along both tangents: none along one in which nothing can move.

        A planar mechanism has no motion out of its plane, and with this, native code has no impulses there either.
        """
        own = self.blocks
        moves = jnp.stack([own[:, 1, 1], own[:, 2, 2]], axis=1) > 2.0 * TINY_COMPLIANCE
        return jnp.where(moves, self.friction[:, None], 0.0)


class Impulses(eqx.Module):
    """Impulses, and what they do together."""

    x: Float[AnyArray, " n"]
    z: Float[AnyArray, " nv"]
    """kᵀ x."""


def gauss_seidel(problem: ContactProblem, start: Float[AnyArray, " n"], sweeps: int) -> Impulses:
    """Impulses after some sweeps."""
    nc = problem.nc
    contacts, singles = _contact_rows(problem), _single_rows(problem)

    def sweep(state, _):
        z, touching, rest = state
        if nc:
            z, touching = jax.lax.scan(partial(_contact_turn, problem.cone), z, (contacts, touching))
        if problem.nj:
            z, rest = jax.lax.scan(_single_turn, z, (singles, rest))
        return (z, touching, rest), None

    state = (start @ problem.k, start[: 3 * nc].reshape(nc, 3), start[3 * nc :])
    (z, touching, rest), _ = jax.lax.scan(sweep, state, None, length=sweeps)
    return Impulses(jnp.concatenate([touching.reshape(-1), rest]), z)


class _ContactRow(eqx.Module):
    """What the turn of one contact needs, or of all of them with a leading axis."""

    u: Float[AnyArray, "*nc 3 nv"]
    """Times the step of each row."""
    k: Float[AnyArray, "*nc 3 nv"]
    own: Float[AnyArray, "*nc 3 3"]
    """Between the contact's own rows, times the step of each."""
    cfm: Float[AnyArray, "*nc 3"]
    """Times the step of each row."""
    b: Float[AnyArray, "*nc 3"]
    """Times the step of each row."""
    friction: Float[AnyArray, "*nc 2"]


def _contact_rows(problem: ContactProblem) -> _ContactRow:
    nc = problem.nc
    steps = problem.steps[: 3 * nc].reshape(nc, 3)
    u, k = (half[: 3 * nc].reshape(nc, 3, half.shape[1]) for half in (problem.u, problem.k))
    cfm, b = (x[: 3 * nc].reshape(nc, 3) for x in (problem.cfm, problem.b))
    own = steps[:, :, None] * problem.blocks
    return _ContactRow(steps[:, :, None] * u, k, own, steps * cfm, steps * b, problem.limits)


def _contact_turn(cone: str, z: Float[AnyArray, " nv"], given: tuple[_ContactRow, Float[AnyArray, "3"]]):
    row, x = given
    # what each impulse would be if only its own row moved
    wanted = x - (row.u @ z + row.cfm * x + row.b)
    normal = jnp.maximum(wanted[0], 0.0)
    wanted = wanted[1:] - row.own[1:, 0] * (normal - x[0])
    if cone == "pyramid":
        limit = row.friction * normal
        first = _bounded(wanted[0], -limit[0], limit[0])
        second = _bounded(wanted[1] - row.own[2, 1] * (first - x[1]), -limit[1], limit[1])
        new = jnp.stack([normal, first, second])
    else:
        new = jnp.concatenate([normal[None], _within_circle(wanted, jnp.max(row.friction) * normal)])
    return z + (new - x) @ row.k, new


def _bounded(wanted: AnyArray, lower: AnyArray, upper: AnyArray) -> AnyArray:
    """What is wanted, kept between two bounds; where these leave no room, it has no derivative.

    Without that, a contact that does not touch would have the derivative of one that sticks while its slip is zero.
    """
    return clamp(_felt_if(lower < upper, wanted), lower, upper)


def _felt_if(condition: AnyArray, wanted: AnyArray) -> AnyArray:
    return jnp.where(condition, wanted, jax.lax.stop_gradient(wanted))


def _within_circle(wanted: Float[AnyArray, "2"], limit) -> Float[AnyArray, "2"]:
    wanted = _felt_if(limit > 0.0, wanted)
    squared = wanted @ wanted
    slides = squared > limit * limit
    return jnp.where(slides, limit / jnp.sqrt(jnp.where(slides, squared, 1.0)), 1.0) * wanted


class _SingleRow(eqx.Module):
    """What the turn of one single row needs, or of all of them with a leading axis; u, cfm and b in steps."""

    u: Float[AnyArray, "*nj nv"]
    k: Float[AnyArray, "*nj nv"]
    cfm: Float[AnyArray, "*nj"]
    b: Float[AnyArray, "*nj"]
    lower: Float[AnyArray, "*nj"]
    upper: Float[AnyArray, "*nj"]


def _single_rows(problem: ContactProblem) -> _SingleRow:
    first = 3 * problem.nc
    steps = problem.steps[first:]
    u, k, cfm, b = (x[first:] for x in (problem.u, problem.k, problem.cfm, problem.b))
    return _SingleRow(steps[:, None] * u, k, steps * cfm, steps * b, problem.lower, problem.upper)


def _single_turn(z: Float[AnyArray, " nv"], given: tuple[_SingleRow, Float[AnyArray, ""]]):
    row, x = given
    new = _bounded(x - (row.u @ z + row.cfm * x + row.b), row.lower, row.upper)
    return z + (new - x) * row.k, new


def project(problem: ContactProblem, wanted: Float[AnyArray, " n"]) -> Float[AnyArray, " n"]:
    """Impulses nearest to what is wanted among those that are allowed.

    With `wanted = x − steps · (A x + b)` this is one more turn for all rows at once; what it leaves alone solves the
    problem.
    """
    nc = problem.nc
    touching = jax.vmap(partial(_projected_contact, problem.cone))(wanted[: 3 * nc].reshape(nc, 3), problem.limits)
    rest = _bounded(wanted[3 * nc :], problem.lower, problem.upper)
    return jnp.concatenate([touching.reshape(-1), rest])


def _projected_contact(cone: str, wanted: Float[AnyArray, "3"], friction: Float[AnyArray, "2"]):
    normal = jnp.maximum(wanted[0], 0.0)
    limit = friction * normal
    if cone == "pyramid":
        return jnp.concatenate([normal[None], _bounded(wanted[1:], -limit, limit)])
    return jnp.concatenate([normal[None], _within_circle(wanted[1:], jnp.max(limit))])


def project_tangents(
    problem: ContactProblem, wanted: Float[AnyArray, " n"], rows: Float[AnyArray, "n k"]
) -> Float[AnyArray, "n k"]:
    """Change of what is `projected` times a matrix; rows of different contacts have nothing to do with each other."""
    nc = problem.nc
    slopes = jax.vmap(jax.jacfwd(partial(_projected_contact, problem.cone)))
    blocks = slopes(wanted[: 3 * nc].reshape(nc, 3), problem.limits)
    touching = jnp.einsum("cij,cjk->cik", blocks, rows[: 3 * nc].reshape(nc, 3, -1)).reshape(3 * nc, -1)
    rest = wanted[3 * nc :]
    is_free = (rest >= problem.lower) & (rest <= problem.upper) & (problem.lower < problem.upper)
    return jnp.concatenate([touching, jnp.where(is_free[:, None], rows[3 * nc :], 0.0)])

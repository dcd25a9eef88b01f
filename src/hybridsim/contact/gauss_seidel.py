"""Projected Gauss–Seidel: impulses that obey unilateral contact and Coulomb friction.

Velocities after the impulses x are w = A x + b. Every contact wants 0 ≤ x_n ⊥ w_n ≥ 0 and friction that opposes its
slip within |x_t| ≤ μ x_n, every further row lower ≤ x ≤ upper with w = 0 between the bounds. Row by row, each impulse
is set so that its own w vanishes, then projected onto what is allowed; a fixed number of sweeps over all rows.

Rows are divided by their own entry of A beforehand, so that a turn is a sum of products and a projection. Impulses are
kept in the order in which they are to be updated: the one whose turn it is stands first and goes to the end. So no
index depends on a loop's counter, and a sweep is one loop for XLA and no indexing at all in native code.
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


class Problem(eqx.Module):
    """Rows of contacts first, three each (normal, tangents), then single rows."""

    A: Float[AnyArray, "n n"]
    """Change of each row's velocity by each row's impulse, regularisation included [1/kg and the like]."""
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
    def blocks(self) -> Float[AnyArray, "nc 3 3"]:
        """A between each contact's own rows."""
        nc = self.nc
        return self.A[: 3 * nc, : 3 * nc].reshape(nc, 3, nc, 3)[np.arange(nc), :, np.arange(nc)]

    @property
    def steps(self) -> Float[AnyArray, " n"]:
        """What each row's velocity is multiplied by to give the change of its impulse."""
        steps = 1.0 / jnp.diagonal(self.A)
        if self.cone == "pyramid" or not self.nc:
            return steps
        # one step for both tangents, so short that it cannot overshoot: then what is projected opposes the slip
        own = self.blocks
        both = 1.0 / (jnp.maximum(own[:, 1, 1], own[:, 2, 2]) + jnp.abs(own[:, 1, 2]))
        contacts = steps[: 3 * self.nc].reshape(-1, 3).at[:, 1:].set(both[:, None])
        return jnp.concatenate([contacts.reshape(-1), steps[3 * self.nc :]])

    @property
    def limits(self) -> Float[AnyArray, "nc 2"]:
        """Coulomb's μ along both tangents: none along one in which nothing can move.

        A planar mechanism has no motion out of its plane, and with this, native code has no impulses there either.
        """
        own = self.blocks
        moves = jnp.stack([own[:, 1, 1], own[:, 2, 2]], axis=1) > 2.0 * TINY_COMPLIANCE
        return jnp.where(moves, self.friction[:, None], 0.0)


def gauss_seidel(problem: Problem, start: Float[AnyArray, " n"], sweeps: int) -> Float[AnyArray, " n"]:
    """Impulses after some sweeps."""
    nc, nj = problem.nc, problem.nj
    steps = problem.steps
    A, b = steps[:, None] * problem.A, steps * problem.b
    contacts = _contact_rows(problem, A, b) if nc else None
    singles = _single_rows(problem, A, b) if nj else None

    def sweep(x, _):
        touching, rest = x
        if contacts is not None:
            touching, _ = jax.lax.scan(partial(_contact_turn, problem.cone, rest), touching, contacts)
        if singles is not None:
            rest, _ = jax.lax.scan(partial(_single_turn, touching.reshape(-1)), rest, singles)
        return (touching, rest), None

    x = (start[: 3 * nc].reshape(nc, 3), start[3 * nc :])
    (touching, rest), _ = jax.lax.scan(sweep, x, None, length=sweeps)
    return jnp.concatenate([touching.reshape(-1), rest])


class _ContactRow(eqx.Module):
    """What the turn of one contact needs, or of all of them with a leading axis; A and b in steps."""

    own: Float[AnyArray, "*nc 3 3"]
    """1 − A between the contact's own rows: zero on the diagonal where a step is the whole way."""
    others: Float[AnyArray, "*nc 3 m"]
    """A with the contacts after it, in the order in which they stand behind it."""
    rest: Float[AnyArray, "*nc 3 nj"]
    b: Float[AnyArray, "*nc 3"]
    friction: Float[AnyArray, "*nc 2"]


def _contact_rows(problem: Problem, A: Float[AnyArray, "n n"], b: Float[AnyArray, " n"]) -> _ContactRow:
    nc = problem.nc
    rest = A[: 3 * nc, 3 * nc :].reshape(nc, 3, problem.nj)
    A = A[: 3 * nc, : 3 * nc].reshape(nc, 3, nc, 3)
    turned = jnp.stack([jnp.roll(A[c], -c, axis=1) for c in range(nc)])  # its own rows first, then those after it
    own, others = jnp.eye(3)[None] - turned[:, :, 0], turned[:, :, 1:].reshape(nc, 3, -1)
    whole = (0, 1, 2) if problem.cone == "pyramid" else (0,)
    own = own.at[:, whole, whole].set(0.0)
    return _ContactRow(own, others, rest, b[: 3 * nc].reshape(nc, 3), problem.limits)


def _contact_turn(cone: str, rest: Float[AnyArray, " nj"], x: Float[AnyArray, "nc 3"], row: _ContactRow):
    own, wanted = row.own, -(row.b + row.others @ x[1:].reshape(-1) + row.rest @ rest)
    normal = jnp.maximum(wanted[0] + own[0, 1:] @ x[0, 1:], 0.0)
    wanted = wanted[1:] + own[1:, 0] * normal
    if cone == "pyramid":
        limit = row.friction * normal
        first = _bounded(wanted[0] + own[1, 2] * x[0, 2], -limit[0], limit[0])
        second = _bounded(wanted[1] + own[2, 1] * first, -limit[1], limit[1])
        new = jnp.stack([normal, first, second])
    else:
        wanted = wanted + own[1:, 1:] @ x[0, 1:]
        new = jnp.concatenate([normal[None], _within_circle(wanted, jnp.max(row.friction) * normal)])
    return jnp.concatenate([x[1:], new[None]]), None


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
    """What the turn of one single row needs, or of all of them with a leading axis; A and b in steps."""

    others: Float[AnyArray, "*nj m"]
    contacts: Float[AnyArray, "*nj k"]
    b: Float[AnyArray, "*nj"]
    lower: Float[AnyArray, "*nj"]
    upper: Float[AnyArray, "*nj"]


def _single_rows(problem: Problem, A: Float[AnyArray, "n n"], b: Float[AnyArray, " n"]) -> _SingleRow:
    first, nj = 3 * problem.nc, problem.nj
    turned = jnp.stack([jnp.roll(A[first + k, first:], -k) for k in range(nj)])
    return _SingleRow(turned[:, 1:], A[first:, :first], b[first:], problem.lower, problem.upper)


def _single_turn(contacts: Float[AnyArray, " k"], x: Float[AnyArray, " nj"], row: _SingleRow):
    wanted = -(row.b + row.contacts @ contacts + row.others @ x[1:])
    return jnp.concatenate([x[1:], _bounded(wanted, row.lower, row.upper)[None]]), None


def projected(problem: Problem, wanted: Float[AnyArray, " n"]) -> Float[AnyArray, " n"]:
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


def projected_rows(
    problem: Problem, wanted: Float[AnyArray, " n"], rows: Float[AnyArray, "n k"]
) -> Float[AnyArray, "n k"]:
    """Change of what is `projected` times a matrix; rows of different contacts have nothing to do with each other."""
    nc = problem.nc
    slopes = jax.vmap(jax.jacfwd(partial(_projected_contact, problem.cone)))
    blocks = slopes(wanted[: 3 * nc].reshape(nc, 3), problem.limits)
    touching = jnp.einsum("cij,cjk->cik", blocks, rows[: 3 * nc].reshape(nc, 3, -1)).reshape(3 * nc, -1)
    rest = wanted[3 * nc :]
    is_free = (rest >= problem.lower) & (rest <= problem.upper) & (problem.lower < problem.upper)
    return jnp.concatenate([touching, jnp.where(is_free[:, None], rows[3 * nc :], 0.0)])

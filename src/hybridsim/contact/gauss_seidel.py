"""Projected Gauss–Seidel: impulses that obey unilateral contact and Coulomb friction.

Velocities after the impulses x are w = A x + b. Every contact wants 0 ≤ x_n ⊥ w_n ≥ 0 and friction that opposes its
slip within |x_t| ≤ μ x_n, every further row lower ≤ x ≤ upper with w = 0 between the bounds. Row by row, each impulse
is set so that its own w vanishes, then projected onto what is allowed; a fixed number of sweeps over all rows.

Impulses are kept in the order in which they are to be updated: the one whose turn it is stands first and goes to the
end. So no index depends on a loop's counter, and a sweep is one loop for XLA and no indexing at all in native code.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.numerics import clamp
from hybridsim.core.types import AnyArray, Scalar

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


def gauss_seidel(problem: Problem, start: Float[AnyArray, " n"], sweeps: int) -> Float[AnyArray, " n"]:
    """Impulses after some sweeps."""
    nc, nj = problem.nc, problem.nj
    contacts = _contact_rows(problem) if nc else None
    singles = _single_rows(problem) if nj else None

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
    """What the turn of one contact needs, or of all of them with a leading axis."""

    own: Float[AnyArray, "*nc 3 3"]
    """A between the contact's own rows."""
    others: Float[AnyArray, "*nc 3 m"]
    """A with the contacts after it, in the order in which they stand behind it."""
    rest: Float[AnyArray, "*nc 3 nj"]
    b: Float[AnyArray, "*nc 3"]
    friction: Float[AnyArray, "*nc"]


def _contact_rows(problem: Problem) -> _ContactRow:
    nc = problem.nc
    A = problem.A[: 3 * nc, : 3 * nc].reshape(nc, 3, nc, 3)
    rest = problem.A[: 3 * nc, 3 * nc :].reshape(nc, 3, problem.nj)
    turned = jnp.stack([jnp.roll(A[c], -c, axis=1) for c in range(nc)])  # its own rows first, then those after it
    own, others = turned[:, :, 0], turned[:, :, 1:].reshape(nc, 3, -1)
    return _ContactRow(own, others, rest, problem.b[: 3 * nc].reshape(nc, 3), problem.friction)


def _contact_turn(cone: str, rest: Float[AnyArray, " nj"], x: Float[AnyArray, "nc 3"], row: _ContactRow):
    coming = row.b + row.others @ x[1:].reshape(-1) + row.rest @ rest
    new = contact_update(cone, x[0], coming + row.own @ x[0], row.own, row.friction)
    return jnp.concatenate([x[1:], new[None]]), None


def contact_update(
    cone: str, x: Float[AnyArray, "3"], w: Float[AnyArray, "3"], own: Float[AnyArray, "3 3"], friction: Scalar
) -> Float[AnyArray, "3"]:
    """A contact's next impulse.

    Args:
        cone: `pyramid` or `cone`.
        x: its impulse.
        w: its velocity with that impulse.
        own: change of its velocity by its impulse.
        friction: Coulomb's μ.
    """
    normal = jnp.maximum(x[0] - w[0] / own[0, 0], 0.0)
    limit = friction * normal
    w = w + own[:, 0] * (normal - x[0])
    if cone == "pyramid":
        first = clamp(x[1] - w[1] / own[1, 1], -limit, limit)
        w2 = w[2] + own[2, 1] * (first - x[1])
        second = clamp(x[2] - w2 / own[2, 2], -limit, limit)
        return jnp.stack([normal, first, second])
    # one step for both tangents, so short that it cannot overshoot: then what is projected opposes the slip
    step = 1.0 / (jnp.maximum(own[1, 1], own[2, 2]) + jnp.abs(own[1, 2]))
    wanted = x[1:] - step * w[1:]
    squared = wanted @ wanted
    slides = squared > limit * limit
    scale = jnp.where(slides, limit / jnp.sqrt(jnp.where(slides, squared, 1.0)), 1.0)
    return jnp.concatenate([normal[None], scale * wanted])


class _SingleRow(eqx.Module):
    own: Float[AnyArray, "*nj"]
    others: Float[AnyArray, "*nj m"]
    contacts: Float[AnyArray, "*nj k"]
    b: Float[AnyArray, "*nj"]
    lower: Float[AnyArray, "*nj"]
    upper: Float[AnyArray, "*nj"]


def _single_rows(problem: Problem) -> _SingleRow:
    first, nj = 3 * problem.nc, problem.nj
    A = problem.A[first:, first:]
    turned = jnp.stack([jnp.roll(A[k], -k) for k in range(nj)])
    contacts = problem.A[first:, :first]
    return _SingleRow(turned[:, 0], turned[:, 1:], contacts, problem.b[first:], problem.lower, problem.upper)


def _single_turn(contacts: Float[AnyArray, " k"], x: Float[AnyArray, " nj"], row: _SingleRow):
    w = row.b + row.contacts @ contacts + row.others @ x[1:] + row.own * x[0]
    new = clamp(x[0] - w / row.own, row.lower, row.upper)
    return jnp.concatenate([x[1:], new[None]]), None


def gauss_seidel_map(problem: Problem, x: Float[AnyArray, " n"], w: Float[AnyArray, " n"]) -> Float[AnyArray, " n"]:
    """Every row updated by itself: a map whose fixed points, with w = A x + b, solve the problem."""
    nc = problem.nc
    blocks = problem.A[: 3 * nc, : 3 * nc].reshape(nc, 3, nc, 3)[np.arange(nc), :, np.arange(nc)]
    touching = jax.vmap(lambda x, w, own, mu: contact_update(problem.cone, x, w, own, mu))(
        x[: 3 * nc].reshape(nc, 3), w[: 3 * nc].reshape(nc, 3), blocks, problem.friction
    )
    diagonal = jnp.diagonal(problem.A)[3 * nc :]
    rest = clamp(x[3 * nc :] - w[3 * nc :] / diagonal, problem.lower, problem.upper)
    return jnp.concatenate([touching.reshape(-1), rest])

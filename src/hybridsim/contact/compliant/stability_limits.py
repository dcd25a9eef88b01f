"""What a time step can follow: bounds of springs, dampers and friction that were left to the simulator.

A spring, a damper or a steep friction law at a contact is stable in explicit steps as long as what all contacts change
its velocity by within a step stays in bounds. That depends on how deep bodies are in each other and how much they
press: a box bears the boxes on it, a foot the robot that lands on it. So depth and load are taken as they are in the
step; what a newton-second at one contact does to another follows from the masses, once, at q = 0.

    spring      k ≤ SPRING / (dt² w)       as a slope of force over depth
    damper      c ≤ 1 / (dt w)             then it stops a contact within a step and no more
    friction    v_t ≥ FRICTION · dt w μN   then it does not throw back all of a slow slip within a step

Beyond 4 (spring) and 2 (damper, friction) steps would grow without bounds. w is the apparent inverse mass that contacts
share: of points that bear together, and of each by itself where only one is loaded.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.apparent_mass import MIN_INVERSE_MASS, Mobility, mobility
from hybridsim.contact.candidates import Candidates
from hybridsim.contact.collision.bounding_faces import bounding_faces
from hybridsim.core.types import AnyArray, Scalar
from hybridsim.model.model import Model
from hybridsim.model.topology import WORLD

SPRING = 0.5
"""Largest square of a contact's natural frequency by the step rate."""
FRICTION = 0.6
"""Least velocity over which friction rises, by what friction changes slip by within a step. More makes what bears a
side load creep faster."""

PerContact = Float[AnyArray, " nc"]
PerPair = Float[AnyArray, " npairs"]


class Sharing(eqx.Module):
    """What newton-seconds at contacts change their velocities by, in one direction [1/kg]."""

    pairs: Float[AnyArray, "npairs npairs"]
    """At a pair (row) by another one (column), spread over the points of a side."""
    point: PerPair
    """At one point of a pair by itself."""

    def felt(self, strength: PerContact, pairs: Candidates) -> PerContact:
        """Σ w · strength at every contact: of all pairs together, or of its own point if that is more."""
        each = np.array(pairs.pair_indices, dtype=int)
        of_pair = np.equal(np.arange(len(pairs.pairs))[:, None], each[None]).astype(float)
        together = jnp.asarray(self.pairs) @ (of_pair @ strength)
        return jnp.maximum(together[each], jnp.asarray(self.point)[each] * strength)


class StabilityLimits(eqx.Module):
    """How contacts of a mechanism feel each other."""

    normal: Sharing
    slip: Sharing

    def hardest(self, pairs: Candidates, dt: Scalar) -> PerPair:
        """Largest stiffness of one contact [N/m]."""
        points = np.array([pair.max_points for pair in pairs.pairs], dtype=float)
        shared = points * jnp.diag(jnp.asarray(self.normal.pairs))
        return SPRING / (dt * dt * jnp.maximum(shared, jnp.asarray(self.normal.point)))

    def damping_share(self, damping: PerContact, pairs: Candidates, dt: Scalar) -> PerContact:
        """Share of the damping of contacts [N·s/m] that stops none of them within less than a step."""
        return 1.0 / jnp.maximum(1.0, dt * self.normal.felt(damping, pairs))

    def transition(self, friction: PerContact, pairs: Candidates, dt: Scalar) -> PerContact:
        """Least velocity [m/s] over which friction of this size [N] may rise."""
        return FRICTION * dt * self.slip.felt(friction, pairs)


def stability_limits(model: Model, pairs: Candidates) -> StabilityLimits:
    """How the contacts of a mechanism feel each other.

    Raises:
        ValueError: masses or placements are traced, so that they are no numbers yet.
    """
    moves, geometry = mobility(model), model.geometry
    ends = [[k for k in (pair.first, pair.second) if geometry.infos[k].body != WORLD] for pair in pairs.pairs]
    shapes = sorted({k for shapes in ends for k in shapes})
    centres = {
        k: moves.jacobian(model, geometry.infos[k].body, np.asarray(geometry.placement.p)[k][None])[0] for k in shapes
    }
    own = {k: _own(model, moves, k) for k in shapes}
    across = {
        (a, b): float(np.linalg.norm(centres[a] @ moves.inverse @ centres[b].T, 2)) for a in shapes for b in shapes
    }

    def sharing(direction: int) -> Sharing:
        together, alone = ({k: own[k][direction][which] for k in shapes} for which in (0, 1))
        coupling = np.array(
            [
                [sum(together[a] if a == b else across[a, b] for a in one for b in other) for other in ends]
                for one in ends
            ]
        ).reshape(len(ends), len(ends))
        # what moves both shapes of a pair alike changes nothing between them
        coupling[np.diag_indices(len(ends))] = [sum(together[k] for k in one) for one in ends]
        point = np.array([sum(alone[k] for k in one) for one in ends], dtype=float)
        return Sharing(coupling, point + MIN_INVERSE_MASS)

    return StabilityLimits(sharing(0), sharing(1))


def _own(model: Model, moves: Mobility, shape: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Along the normal of a shape's side and across it: of the whole side, and of one of its points; the largest."""
    info, X_BG = model.geometry.infos[shape], model.geometry.placement
    R, p = np.asarray(X_BG.R)[shape], np.asarray(X_BG.p)[shape]
    axes = np.asarray(moves.poses[info.body].R) @ R
    found = []
    for axis, points in bounding_faces(model.geometry, shape):
        J = np.einsum("ij,nik->njk", axes, moves.jacobian(model, info.body, p + points @ R.T))
        for rows in (J[:, [axis]], np.delete(J, axis, axis=1)):
            spread = rows.reshape(-1, J.shape[2])
            found.append((_size(spread, moves) / len(points), max(_size(row, moves) for row in rows)))
    normal, slip = (np.max(found[direction::2], axis=0).tolist() for direction in (0, 1))
    return tuple(normal), tuple(slip)


def _size(J: np.ndarray, moves: Mobility) -> float:
    return float(np.linalg.norm(J @ moves.inverse @ J.T, 2))

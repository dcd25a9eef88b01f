"""Stability limits of explicit time steps for contact stiffness, damping and friction that the user does not specify.

A spring, a damper or a steep friction law at a contact is stable in explicit steps as long as the velocity change due
to all contacts within a step is small enough. That change depends on depths and loads: a box supports the boxes on it,
a foot the robot that lands on it. Depths and loads are therefore those of the current step; the coupling between
contacts is computed once, from the masses at q = 0.

    spring      k ≤ MAX_STIFFNESS_RATIO / (dt² w)           k: slope of force over depth
    damper      c ≤ 1 / (dt w)                              does not reverse the velocity within a step
    friction    v_t / s ≥ MIN_TRANSITION_RATIO · dt w μN    may reverse slow slip, to at most 2/3 of it

Steps become unstable at k dt² w = 4 (spring), c dt w = 2 (damper) and v_t / s = ½ dt w μN (friction). w is the largest
inverse effective mass of contacts at q = 0: of all points of a pair under a common load, or of a single point where
only one is loaded. v_t is the transition velocity and s the steepness of the friction law.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.apparent_mass import MIN_INVERSE_MASS, MobilityAtZero, mobility_at_zero
from hybridsim.contact.candidates import Candidates
from hybridsim.contact.collision.bounding_faces import bounding_faces
from hybridsim.core.types import AnyArray, Scalar
from hybridsim.model.model import Model
from hybridsim.model.topology import WORLD

MAX_STIFFNESS_RATIO = 0.5
"""Largest squared natural frequency of a contact, relative to the squared step rate."""
MIN_TRANSITION_RATIO = 0.6
"""Smallest transition velocity of a law of steepness 1, relative to the slip change by sliding friction within a step.
A larger one means faster creep under tangential load."""

PerContact = Float[AnyArray, " nc"]
PerPair = Float[AnyArray, " npairs"]


class ContactCoupling(eqx.Module):
    """Velocity changes of contacts per unit impulse at contacts, in one direction [1/kg]."""

    pairs: Float[AnyArray, "npairs npairs"]
    """At a pair (row) per impulse at another (column), which is distributed over the points of a face."""
    point: PerPair
    """At a single point of a pair, per impulse at that point."""

    def weighted_sum(self, strength: PerContact, candidates: Candidates) -> PerContact:
        """Σ w · strength at every contact: the sum over all pairs, or the term of the contact's own point if larger."""
        pair_index = np.array(candidates.pair_indices, dtype=int)
        belongs_to_pair = np.equal(np.arange(len(candidates.pairs))[:, None], pair_index[None]).astype(float)
        total = jnp.asarray(self.pairs) @ (belongs_to_pair @ strength)
        return jnp.maximum(total[pair_index], jnp.asarray(self.point)[pair_index] * strength)


class StabilityLimits(eqx.Module):
    """Stability limits of the contacts of a mechanism, from their coupling along normals and along slip."""

    normal: ContactCoupling
    slip: ContactCoupling

    def max_stiffness(self, candidates: Candidates, dt: Scalar) -> PerPair:
        """Largest stable stiffness of one contact [N/m]."""
        points = np.array([pair.max_points for pair in candidates.pairs], dtype=float)
        shared = points * jnp.diag(jnp.asarray(self.normal.pairs))
        return MAX_STIFFNESS_RATIO / (dt * dt * jnp.maximum(shared, jnp.asarray(self.normal.point)))

    def damping_scale(self, damping: PerContact, candidates: Candidates, dt: Scalar) -> PerContact:
        """Factor that limits the damping [N·s/m] of each contact so that it reverses no velocity within a step."""
        return 1.0 / jnp.maximum(1.0, dt * self.normal.weighted_sum(damping, candidates))

    def min_transition_velocity(self, friction: PerContact, candidates: Candidates, dt: Scalar) -> PerContact:
        """Smallest stable transition velocity [m/s] of a law of steepness 1, for sliding friction forces [N]."""
        return MIN_TRANSITION_RATIO * dt * self.slip.weighted_sum(friction, candidates)


def stability_limits(model: Model, candidates: Candidates) -> StabilityLimits:
    """Stability limits of the contacts of a mechanism.

    Raises:
        ValueError: masses or placements are traced, so they have no values yet.
    """
    mobility, geometry = mobility_at_zero(model), model.geometry
    movable = [[k for k in (pair.first, pair.second) if geometry.infos[k].body != WORLD] for pair in candidates.pairs]
    shapes = sorted({k for pair_shapes in movable for k in pair_shapes})
    centres = {
        k: mobility.jacobian(model, geometry.infos[k].body, np.asarray(geometry.placement.p)[k][None])[0]
        for k in shapes
    }
    self_coupling = {k: _self_coupling(model, mobility, k) for k in shapes}
    cross_coupling = {
        (a, b): float(np.linalg.norm(centres[a] @ mobility.mass_inverse @ centres[b].T, 2))
        for a in shapes
        for b in shapes
    }

    def coupling(direction: int) -> ContactCoupling:
        face, point = ({k: self_coupling[k][direction][index] for k in shapes} for index in (0, 1))
        pair_coupling = np.array(
            [
                [sum(face[a] if a == b else cross_coupling[a, b] for a in one for b in other) for other in movable]
                for one in movable
            ]
        ).reshape(len(movable), len(movable))
        # a common motion of both shapes of a pair does not change their relative velocity
        pair_coupling[np.diag_indices(len(movable))] = [sum(face[k] for k in one) for one in movable]
        point_coupling = np.array([sum(point[k] for k in one) for one in movable], dtype=float)
        return ContactCoupling(pair_coupling, point_coupling + MIN_INVERSE_MASS)

    return StabilityLimits(coupling(0), coupling(1))


def _self_coupling(
    model: Model, mobility: MobilityAtZero, shape: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Largest inverse effective masses of a face and of one of its points, along the normal and tangentially [1/kg]."""
    info, X_BG = model.geometry.infos[shape], model.geometry.placement
    R, p = np.asarray(X_BG.R)[shape], np.asarray(X_BG.p)[shape]
    axes = np.asarray(mobility.poses[info.body].R) @ R
    inverse_masses = []
    for axis, points in bounding_faces(model.geometry, shape):
        J = np.einsum("ij,nik->njk", axes, mobility.jacobian(model, info.body, p + points @ R.T))
        for rows in (J[:, [axis]], np.delete(J, axis, axis=1)):
            stacked = rows.reshape(-1, J.shape[2])
            face_inverse_mass = _inverse_mass(stacked, mobility) / len(points)
            inverse_masses.append((face_inverse_mass, max(_inverse_mass(row, mobility) for row in rows)))
    normal, slip = (np.max(inverse_masses[direction::2], axis=0).tolist() for direction in (0, 1))
    return tuple(normal), tuple(slip)


def _inverse_mass(J: np.ndarray, mobility: MobilityAtZero) -> float:
    """Largest eigenvalue of J M⁻¹ Jᵀ."""
    return float(np.linalg.norm(J @ mobility.mass_inverse @ J.T, 2))

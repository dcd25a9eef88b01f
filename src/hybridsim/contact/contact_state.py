"""Contact states: gaps, frames and relative velocities; the contact Jacobian and wrenches of contact forces.

Vectors at a contact have three components: along the normal, from the second body to the first, and along two
tangents. Forces and impulses act on the first body, and their opposites on the second, at the same point.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.candidates import Candidates
from hybridsim.contact.collision.contact_points import FAR, tangents
from hybridsim.contact.collision.detect import detect
from hybridsim.core.numerics import cross
from hybridsim.core.rows import take
from hybridsim.core.types import AnyArray, Mat3, Vec3
from hybridsim.dynamics.jacobian import world_subspace
from hybridsim.dynamics.kinematics import Kinematics
from hybridsim.dynamics.tree import ancestor_mask
from hybridsim.model.coordinates import coupling_matrix
from hybridsim.model.geometry import Geometry, GeomInfo, Shape
from hybridsim.model.model import Model
from hybridsim.spatial.transform import Pose
from hybridsim.taps.taps import Taps


class ContactState(eqx.Module):
    """State of all contacts, closed or open."""

    gap: Float[AnyArray, " nc"]
    """Signed distance, negative in penetration [m]."""
    frame: Float[AnyArray, "nc 3 3"]
    """Rows: normal and two tangents, in world axes."""
    point: Float[AnyArray, "nc 3"]
    """Point of application of forces: midpoint of the nearest points of the two shapes, in the world [m]."""
    velocity: Float[AnyArray, "nc 3"]
    """Velocity of the first body's point relative to the second's, in the contact's frame [m/s]."""


def contact_state(
    model: Model, candidates: Candidates, X_WB: Pose, V_WB_B: Float[AnyArray, "nb 6"], taps: Taps
) -> ContactState:
    """State of all contacts for given body poses and velocities."""
    if not candidates.nc:
        return ContactState(jnp.zeros(0), jnp.zeros((0, 3, 3)), jnp.zeros((0, 3)), jnp.zeros((0, 3)))
    points = detect(model.geometry, X_WB, candidates)
    gap = points.gap
    if taps.is_active:
        # networks do not get the sentinel gap of absent points, and cannot close them
        exists = points.gap < FAR
        gap = taps("contact.gap", jnp.where(exists, points.gap, bounding_radius_sums(model.geometry, candidates)))
        gap = jnp.where(exists, gap, points.gap)
    point = taps("contact.point", 0.5 * (points.on_first + points.on_second))
    normal = taps("contact.normal", points.normal)
    frame = jax.vmap(contact_frame)(normal)

    X, V = _with_world(X_WB, V_WB_B)

    def velocity(side: int):
        bodies = [pair[side] + 1 for pair in candidates.bodies]
        point_velocity = jax.vmap(lambda X, V, p: X.R @ (V[3:] + cross(V[:3], X.inv_point(p))))
        return point_velocity(take(X, bodies), take(V, bodies), point)

    relative = jax.vmap(lambda frame, v: frame @ v)(frame, velocity(0) - velocity(1))
    gap_velocity = taps("contact.gap_velocity", relative[:, 0])
    slip = taps("contact.slip_velocity", relative[:, 1:])
    return ContactState(gap, frame, point, jnp.concatenate([gap_velocity[:, None], slip], axis=1))


def bounding_radius_sums(geometry: Geometry, candidates: Candidates) -> Float[AnyArray, " nc"]:
    """Sum of the approximate bounding radii of both shapes of each contact [m]; zero for planes and height fields."""

    def bounding_radius(info: GeomInfo, size: Vec3):
        if info.shape in (Shape.PLANE, Shape.HEIGHTFIELD):
            return np.zeros(())
        points = jnp.asarray(geometry.data[info.data_index]) if info.data_index >= 0 else size[None]
        return jnp.sqrt(jnp.max(jnp.sum(points * points, axis=1)))

    shape_radii = [bounding_radius(info, jnp.asarray(geometry.size)[k]) for k, info in enumerate(geometry.infos)]
    pair_radii = [shape_radii[pair.first] + shape_radii[pair.second] for pair in candidates.pairs]
    return jnp.stack(pair_radii)[np.array(candidates.pair_indices, dtype=int)]


def contact_frame(normal: Vec3) -> Mat3:
    """Contact frame: normal and two tangents as rows."""
    return jnp.stack([normal, *tangents(normal)])


def _with_world(X_WB: Pose, V_WB_B: Float[AnyArray, "nb 6"]) -> tuple[Pose, Float[AnyArray, "n 6"]]:
    """Poses and velocities with those of the world prepended."""
    X = Pose(jnp.concatenate([np.eye(3)[None], X_WB.R]), jnp.concatenate([np.zeros((1, 3)), X_WB.p]))
    return X, jnp.concatenate([np.zeros((1, 6)), V_WB_B])


def body_wrenches(
    contacts: ContactState, candidates: Candidates, X_WB: Pose, forces: Float[AnyArray, "nc 3"]
) -> Float[AnyArray, "nb 6"]:
    """Wrenches of contact forces [N] (or impulses) on each body, at its origin and in its frame."""
    f_W = jax.vmap(lambda frame, f: f @ frame)(contacts.frame, forces)
    nb = X_WB.p.shape[0]
    # +1 where a body is the first one of a contact, -1 where it is the second
    signs = np.zeros((nb, candidates.nc))
    for contact, (first, second) in enumerate(candidates.bodies):
        for body, sign in ((first, 1.0), (second, -1.0)):
            if body >= 0:
                signs[body, contact] += sign

    def wrench(X: Pose, signs):
        force = signs @ f_W
        torque = signs @ jax.vmap(lambda p, f: cross(p - X.p, f))(contacts.point, f_W)
        return jnp.concatenate([torque @ X.R, force @ X.R])

    return jax.vmap(wrench)(X_WB, signs)


def contact_jacobian(
    model: Model, candidates: Candidates, kin: Kinematics, contacts: ContactState
) -> Float[AnyArray, "n nv"]:
    """Contact Jacobian J with `velocity = J qd`: three rows per contact."""
    reference = kin.X_WB.p[0]
    subspace = world_subspace(model.topology, kin, reference)
    topology = model.topology
    mask = np.concatenate([np.zeros((1, topology.tree_nv)), np.asarray(ancestor_mask(topology), dtype=float)])
    bodies = np.array(candidates.bodies, dtype=int).reshape(-1, 2) + 1
    # a degree of freedom that moves both bodies does not change their relative velocity
    signs = mask[bodies[:, 0]] - mask[bodies[:, 1]]

    def rows(frame, point, signs):
        arm = point - reference
        velocities = jax.vmap(lambda S: S[3:] + cross(S[:3], arm))(subspace)
        return (frame @ velocities.T) * signs[None]

    J = jax.vmap(rows)(contacts.frame, contacts.point, signs).reshape(-1, model.topology.tree_nv)
    return J @ coupling_matrix(model) if model.topology.has_mimic_joints else J

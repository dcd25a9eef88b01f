"""Geometric Jacobians of bodies, points and frames.

All motion subspaces are expressed once in world axes; the Jacobian of a body selects those that move it. World twists
are taken about a reference point that moves with the robot, to avoid cancellation far from the origin.
"""

import jax
import numpy as np
from jaxtyping import Float

from hybridsim.core.rows import take
from hybridsim.core.types import AnyArray, Vec3
from hybridsim.dynamics.kinematics import Kinematics
from hybridsim.dynamics.tree import ancestor_mask
from hybridsim.model.coordinates import coupling_matrix
from hybridsim.model.model import Model
from hybridsim.model.topology import Topology
from hybridsim.spatial.transform import Pose


def world_subspace(topology: Topology, kin: Kinematics, reference: Vec3) -> Float[AnyArray, "tree_nv 6"]:
    """Motion subspaces of all joints in world axes about the world point `reference`."""
    X_WB = take(kin.X_WB, topology.dof_bodies)
    about_reference = jax.vmap(lambda X, S: Pose(X.R, X.p - reference).motion(S))
    return about_reference(X_WB, kin.S)


def body_jacobian(model: Model, kin: Kinematics, body: int) -> Float[AnyArray, "6 nv"]:
    """Jacobian J of a body with `V_WB_B = J qd`, the spatial velocity in the body frame [rad/s, m/s]."""
    return _body_jacobian(model, kin, jax.tree.map(lambda x: x[body], kin.X_WB), _dof_mask(model, body))


def body_jacobians(model: Model, kin: Kinematics) -> Float[AnyArray, "nb 6 nv"]:
    """`body_jacobian` of every body."""
    masks = np.asarray(ancestor_mask(model.topology), dtype=float)
    return jax.vmap(lambda X_WB, mask: _body_jacobian(model, kin, X_WB, mask))(kin.X_WB, masks)


def point_jacobian(model: Model, kin: Kinematics, body: int, p_B: Vec3) -> Float[AnyArray, "3 nv"]:
    """Jacobian J of a point `p_B` fixed in a body with `v = J qd`, its velocity in world axes [m/s]."""
    return frame_jacobian(model, kin, body, p_B)[3:]


def frame_jacobian(model: Model, kin: Kinematics, body: int, p_B: Vec3) -> Float[AnyArray, "6 nv"]:
    """Jacobian of the angular velocity of a body and the velocity of its point `p_B`, both in world axes."""
    X_WB = jax.tree.map(lambda x: x[body], kin.X_WB)
    subspace = world_subspace(model.topology, kin, X_WB.point(p_B)) * _dof_mask(model, body)[:, None]
    return _reduce_columns(model, subspace.T)


def _body_jacobian(
    model: Model, kin: Kinematics, X_WB: Pose, mask: Float[AnyArray, " tree_nv"]
) -> Float[AnyArray, "6 nv"]:
    """Jacobian of a body at this pose, in its frame, from the mask of the degrees of freedom that move it."""
    about_body = Pose(X_WB.R, np.zeros(3))
    subspace = world_subspace(model.topology, kin, X_WB.p) * mask[:, None]
    return _reduce_columns(model, jax.vmap(about_body.inv_motion)(subspace).T)


def _dof_mask(model: Model, body: int) -> np.ndarray:
    return np.asarray(ancestor_mask(model.topology)[body], dtype=float)


def _reduce_columns(model: Model, J: Float[AnyArray, "k tree_nv"]) -> Float[AnyArray, "k nv"]:
    return J @ coupling_matrix(model) if model.topology.has_mimic_joints else J

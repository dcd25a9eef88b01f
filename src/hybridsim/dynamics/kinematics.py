"""Forward kinematics: poses and velocities of all bodies."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.numerics import cross
from hybridsim.core.types import AnyArray, ArrayLike, Q, Vec3, require_float64
from hybridsim.dynamics.tree import map_joint_types, traverse_root_to_leaves
from hybridsim.model.coordinates import expand_q, expand_v, require_q, require_v
from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.model import Model
from hybridsim.model.topology import WORLD
from hybridsim.spatial.transform import Pose


class Kinematics(eqx.Module):
    """Poses and velocities of all bodies; the leading axis runs over bodies unless noted."""

    X_PB: Pose
    """Pose in the parent body."""
    X_WB: Pose
    """Pose in the world."""
    S: Float[AnyArray, "tree_nv 6"]
    """Motion subspaces of the joints in the body frames, one row per degree of freedom of the tree."""
    V_PB_B: Float[AnyArray, "nb 6"]
    """Velocity relative to the parent body, in the body frame [rad/s, m/s]."""
    V_WB_B: Float[AnyArray, "nb 6"]
    """Velocity in the world, in the body frame [rad/s, m/s]."""


def kinematics(model: Model, q: ArrayLike, qd: ArrayLike) -> Kinematics:
    """Poses and velocities of all bodies."""
    require_float64()
    q, qd = require_q(model, q), require_v(model, "qd", qd)
    X_PB, S = parent_poses_and_subspaces(model, q)

    def step(parent, X_PB, dofs):
        (X_WP, V_WP_P, _), (S, qd) = parent, dofs
        V_PB_B = qd @ S
        return (X_WP @ X_PB, X_PB.inv_motion(V_WP_P) + V_PB_B, V_PB_B), None

    world = (Pose(np.eye(3), np.zeros(3)), np.zeros(6), np.zeros(6))
    (X_WB, V_WB_B, V_PB_B), _ = traverse_root_to_leaves(model.topology, step, world, X_PB, (S, expand_v(model, qd)))
    return Kinematics(X_PB, X_WB, S, V_PB_B, V_WB_B)


def parent_poses_and_subspaces(model: Model, q: Q) -> tuple[Pose, Float[AnyArray, "tree_nv 6"]]:
    """Pose of every body in its parent, and motion subspaces of the joints in the body frames."""

    def pose_and_subspace(kind: ElementaryJointType, joint, q):
        X_PJ, axis, anchor = joint
        return X_PJ @ kind.joint.transform(axis, anchor, q), kind.joint.motion_subspace(axis, anchor)

    rows = (model.joint.placement, model.joint.axis, model.joint.anchor)
    return map_joint_types(model.topology, pose_and_subspace, jax.tree.map(jnp.asarray, rows), expand_q(model, q))


def frame_pose(model: Model, kin: Kinematics, name: str) -> Pose:
    """Pose X_WF of a body or named frame in the world."""
    topology = model.topology
    if name in topology.frame_names:
        frame = topology.frame_names.index(name)
        X_BF = jax.tree.map(lambda x: jnp.asarray(x)[frame], model.frame_placement)
        body = topology.frame_bodies[frame]
        return X_BF if body == WORLD else jax.tree.map(lambda x: x[body], kin.X_WB) @ X_BF
    return jax.tree.map(lambda x: x[topology.body_index(name)], kin.X_WB)


def point_velocity(kin: Kinematics, body: int, p_B: Vec3) -> Vec3:
    """Velocity of a point of a body in world axes [m/s]."""
    V_WB_B = kin.V_WB_B[body]
    return kin.X_WB.R[body] @ (V_WB_B[3:] + cross(V_WB_B[:3], p_B))

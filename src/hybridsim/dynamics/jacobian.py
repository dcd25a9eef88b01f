"""Jacobians: how the bodies move when the joints do.

All directions are expressed once in world axes; a Jacobian is then a mask over them. World twists are taken about a
reference point that moves with the robot, so that nothing cancels far from the origin.
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


def world_subspace(topology: Topology, kin: Kinematics, reference: Vec3) -> Float[AnyArray, "mv 6"]:
    """Joint directions in world axes about the point `reference` of the world."""
    X_WB = take(kin.X_WB, topology.dof_bodies)
    about = jax.vmap(lambda X, S: Pose(X.R, X.p - reference).motion(S))
    return about(X_WB, kin.S)


def body_jacobian(model: Model, kin: Kinematics, body: int) -> Float[AnyArray, "6 nv"]:
    """J with `V_WB_B = J qd`: the body's velocity in its own frame [rad/s, m/s]."""
    return _in_body(model, kin, jax.tree.map(lambda x: x[body], kin.X_WB), _moves(model, body))


def body_jacobians(model: Model, kin: Kinematics) -> Float[AnyArray, "nb 6 nv"]:
    """`body_jacobian` of every body."""
    moves = np.asarray(ancestor_mask(model.topology), dtype=float)
    return jax.vmap(lambda X_WB, moves: _in_body(model, kin, X_WB, moves))(kin.X_WB, moves)


def point_jacobian(model: Model, kin: Kinematics, body: int, p_B: Vec3) -> Float[AnyArray, "3 nv"]:
    """J with `v = J qd`: the velocity in world axes of a point given in the body frame [m/s]."""
    return frame_jacobian(model, kin, body, p_B)[3:]


def frame_jacobian(model: Model, kin: Kinematics, body: int, p_B: Vec3) -> Float[AnyArray, "6 nv"]:
    """Angular velocity of the body and velocity of its point `p_B`, both in world axes, per unit `qd`."""
    X_WB = jax.tree.map(lambda x: x[body], kin.X_WB)
    directions = world_subspace(model.topology, kin, X_WB.point(p_B)) * _moves(model, body)[:, None]
    return _reduced(model, directions.T)


def _in_body(model: Model, kin: Kinematics, X_WB: Pose, moves: Float[AnyArray, " mv"]) -> Float[AnyArray, "6 nv"]:
    """Jacobian of a body at this pose, in its own frame, from the degrees of freedom that move it."""
    about_body = Pose(X_WB.R, np.zeros(3))
    directions = world_subspace(model.topology, kin, X_WB.p) * moves[:, None]
    return _reduced(model, jax.vmap(about_body.inv_motion)(directions).T)


def _moves(model: Model, body: int) -> np.ndarray:
    return np.asarray(ancestor_mask(model.topology)[body], dtype=float)


def _reduced(model: Model, J: Float[AnyArray, "k mv"]) -> Float[AnyArray, "k nv"]:
    return J @ coupling_matrix(model) if model.topology.has_mimic_joints else J

"""Inertia that a joint shows to a force on it, in plain NumPy: the scale of default stops and of soft contacts."""

from collections.abc import Sequence

import numpy as np

from hybridsim.model.joints import JointType
from hybridsim.model.specs import BodySpec
from hybridsim.model.topology import WORLD, Topology
from hybridsim.spatial.transform import Pose


def apparent_inertias(bodies: Sequence[BodySpec], topology: Topology) -> np.ndarray:
    """Inertia that each degree of freedom shows to a force on it alone, all others free, at q = 0: 1/(M⁻¹)ᵢᵢ.

    A chain gives way at its other joints, so this can be a hundred times less than the inertia that a joint carries.
    """
    if topology.mv == 0:
        return np.zeros(0)
    M, *_ = mass_matrix_at_zero(bodies, topology)
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(M))
        compliance = np.sum(inverse**2, axis=0)
    except np.linalg.LinAlgError:  # a joint without inertia
        compliance = np.diag(np.linalg.pinv(M, hermitian=True))
    return 1.0 / compliance.clip(min=1e-12)


def mass_matrix_at_zero(bodies: Sequence[BodySpec], topology: Topology) -> tuple[np.ndarray, np.ndarray, list[Pose]]:
    """Joint-space mass matrix by composite inertias about the world's origin, mimic joints as if independent.

    With it come the joints' directions in the world, one column each, and the poses of the bodies.
    """
    M = np.diag(np.repeat([float(body.joint.armature) for body in bodies], [k.nv for k in topology.joint_types]))
    directions = np.zeros((6, topology.mv))
    poses: list[Pose] = []
    for i, body in enumerate(bodies):
        parent = topology.parents[i]
        poses.append(body.placement if parent == WORLD else poses[parent] @ body.placement)
        directions[:, slice(*topology.tree_v_slices[i])] = _world_directions(body, topology.joint_types[i], poses[i])
    composite = [body.inertial.moved(X).spatial() for body, X in zip(bodies, poses, strict=True)]
    for i in reversed(range(len(bodies))):
        own = range(*topology.tree_v_slices[i])
        force = composite[i] @ directions[:, own]
        above = [dof for body in topology.ancestors[i] for dof in range(*topology.tree_v_slices[body])]
        M[np.ix_(above, own)] += directions[:, above].T @ force
        M[np.ix_(own, above)] = M[np.ix_(above, own)].T
        if topology.parents[i] != WORLD:
            composite[topology.parents[i]] = composite[topology.parents[i]] + composite[i]
    return M, directions, poses


def _world_directions(body: BodySpec, kind: JointType, X_WB: Pose) -> np.ndarray:
    """Columns: motion of the world's origin, carried along with the body, for each velocity of its joint."""
    R, axis = np.asarray(X_WB.R), unit(body.joint.axis)
    if kind is JointType.PRISMATIC:
        return np.concatenate([np.zeros(3), R @ axis])[:, None]
    if kind is JointType.FIXED:
        return np.zeros((6, 0))
    turns = (R @ axis)[:, None] if kind is JointType.REVOLUTE else R
    centre = np.asarray(X_WB.p) if kind is JointType.FREE else X_WB.point(np.asarray(body.joint.anchor, dtype=float))
    turning = np.concatenate([turns, np.cross(centre, turns, axisa=0, axisb=0, axisc=0)])
    if kind is JointType.FREE:
        return np.concatenate([turning, np.concatenate([np.zeros((3, 3)), R])], axis=1)
    return turning


def unit(axis) -> np.ndarray:
    """The axis with length one."""
    axis = np.asarray(axis, dtype=float)
    return axis / np.linalg.norm(axis)

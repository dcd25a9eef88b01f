"""Which joints have nothing to accelerate: their equation of motion would be 0/0.

One pass of Featherstone's articulated-body inertias at the zero configuration, in plain 6×6 NumPy, because it
runs once while a model is read. A joint is singular exactly if SᵀIA S is.
"""

import numpy as np

from hybridsim.model.assemble import plane_axes
from hybridsim.model.inertial import skew
from hybridsim.model.specs import WORLD_NAME, BodySpec, JointKind, JointSpec, ModelSpec
from hybridsim.spatial.transform import Pose

SINGULAR = 1e-14
"""Smallest share of the articulated inertia, along some direction of a joint, that is more than rounding."""
SMALLEST = 1e-60
"""Inertia [kg or kg·m²] below which nothing can be divided by it safely."""


def singular_joints(spec: ModelSpec) -> list[BodySpec]:
    """Bodies whose joint accelerates without inertia resisting; the description must be free of errors."""
    IA = {body.name: body.inertial.spatial() for body in spec.bodies}
    singular = []
    for body in reversed(spec.bodies):
        S = _directions(body.joint)
        I_carried = IA[body.name]
        if S.shape[1]:
            U = I_carried @ S
            D = S.T @ U + body.joint.armature * np.eye(S.shape[1])
            if np.linalg.eigvalsh(D)[0] <= max(SINGULAR * np.abs(I_carried).max(), SMALLEST):
                singular.append(body)
            else:
                I_carried = I_carried - U @ np.linalg.inv(D) @ U.T
        if body.parent != WORLD_NAME:
            X = _motion_matrix(body.placement)
            IA[body.parent] = IA[body.parent] + X.T @ I_carried @ X
    return singular[::-1]


def _directions(joint: JointSpec) -> np.ndarray:
    """Directions of motion in the body frame at q = 0 as columns; none for a joint that follows another."""
    if joint.kind is JointKind.FIXED or joint.mimic:
        return np.zeros((6, 0))
    turn = np.vstack([np.eye(3), skew(np.asarray(joint.anchor, dtype=float))])
    slide = np.vstack([np.zeros((3, 3)), np.eye(3)])
    axis = np.asarray(joint.axis, dtype=float)
    axis = axis / (np.linalg.norm(axis) or 1.0)
    match joint.kind:
        case JointKind.PRISMATIC:
            return slide @ axis[:, None]
        case JointKind.REVOLUTE | JointKind.CONTINUOUS:
            return turn @ axis[:, None]
        case JointKind.UNIVERSAL:
            return turn @ np.column_stack([axis, joint.axis2 / np.linalg.norm(joint.axis2)])
        case JointKind.PLANAR:
            e1, e2 = plane_axes(axis)
            return np.column_stack([slide @ e1, slide @ e2, turn @ axis])
        case JointKind.SPHERICAL:
            return turn
        case _:
            return np.eye(6)


def _motion_matrix(X_PB: Pose) -> np.ndarray:
    """6×6 matrix that takes motion vectors from P to B."""
    R_BP = np.asarray(X_PB.R).T
    return np.block([[R_BP, np.zeros((3, 3))], [-R_BP @ skew(np.asarray(X_PB.p)), R_BP]])

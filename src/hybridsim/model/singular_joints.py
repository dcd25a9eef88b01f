"""Joints without inertia, whose acceleration would be 0/0.

The articulated inertias of Featherstone's backward pass at the zero configuration, in plain 6×6 NumPy, because they are
computed only once, when a model is built. A joint is singular if and only if S IA Sᵀ (plus armature) is.
"""

import numpy as np

from hybridsim.model.compound_joints import elementary_chain
from hybridsim.model.inertial import skew
from hybridsim.model.specs import WORLD_NAME, BodySpec, JointSpec, ModelSpec
from hybridsim.spatial.transform import Pose

SINGULAR_TOLERANCE = 1e-14
"""Eigenvalue of S IA Sᵀ, relative to the largest entry of IA, up to which it is attributed to rounding."""
SINGULAR_INERTIA = 1e-60
"""Inertia [kg or kg·m²] up to which a joint counts as singular in any case: dividing by it could overflow."""


def bodies_with_singular_joints(spec: ModelSpec) -> list[BodySpec]:
    """Bodies whose joint is singular; the description must be free of errors."""
    IA = {body.name: body.inertial.spatial_inertia() for body in spec.bodies}
    singular = []
    for body in reversed(spec.bodies):
        S_columns = _motion_subspace_columns(body.joint)
        IA_body = IA[body.name]
        if S_columns.shape[1]:
            U = IA_body @ S_columns
            D = S_columns.T @ U + body.joint.armature * np.eye(S_columns.shape[1])
            if np.linalg.eigvalsh(D)[0] <= max(SINGULAR_TOLERANCE * np.abs(IA_body).max(), SINGULAR_INERTIA):
                singular.append(body)
            else:
                IA_body = IA_body - U @ np.linalg.inv(D) @ U.T
        if body.parent != WORLD_NAME:
            X = _motion_matrix(body.placement)
            IA[body.parent] = IA[body.parent] + X.T @ IA_body @ X
    return singular[::-1]


def _motion_subspace_columns(spec: JointSpec) -> np.ndarray:
    """Motion subspace in the body frame at q = 0, one column per degree of freedom; none for a mimic joint."""
    columns = [np.zeros((6, 0))]
    for part in () if spec.mimic else elementary_chain(spec):
        joint, axis = part.kind.elementary_type.joint, np.asarray(part.axis, dtype=float)
        centre = np.asarray(part.anchor, dtype=float) if joint.turns_about_anchor else np.zeros(3)
        columns.append(joint.numpy_subspace_columns(np.eye(3), axis / (np.linalg.norm(axis) or 1.0), centre))
    return np.concatenate(columns, axis=1)


def _motion_matrix(X_PB: Pose) -> np.ndarray:
    """6×6 matrix that transforms motion vectors from P to B."""
    R_BP = np.asarray(X_PB.R).T
    return np.block([[R_BP, np.zeros((3, 3))], [-R_BP @ skew(np.asarray(X_PB.p)), R_BP]])

"""Apparent inertia of joints and mass matrix at q = 0, in plain NumPy.

They scale the default limit stops, the default regularization of dry friction and soft contacts.
"""

from collections.abc import Sequence

import numpy as np

from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.specs import BodySpec
from hybridsim.model.topology import WORLD, Topology
from hybridsim.spatial.transform import Pose


def apparent_inertias(bodies: Sequence[BodySpec], topology: Topology) -> np.ndarray:
    """Apparent inertia of each degree of freedom at q = 0, with all others free: 1/(M⁻¹)ᵢᵢ.

    Because the other joints move freely, it can be a hundred times smaller than the inertia with those joints locked.
    """
    if topology.tree_nv == 0:
        return np.zeros(0)
    M, *_ = mass_matrix_at_zero(bodies, topology)
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(M))
        inverse_inertia = np.sum(inverse**2, axis=0)
    except np.linalg.LinAlgError:  # a joint without inertia
        inverse_inertia = np.diag(np.linalg.pinv(M, hermitian=True))
    return 1.0 / inverse_inertia.clip(min=1e-12)


def mass_matrix_at_zero(bodies: Sequence[BodySpec], topology: Topology) -> tuple[np.ndarray, np.ndarray, list[Pose]]:
    """Joint-space mass matrix at q = 0, motion subspaces in the world (6, tree_nv) and poses of the bodies.

    Composite rigid-body algorithm about the world origin; mimic joints are treated as independent. The motion subspaces
    have one column per degree of freedom.
    """
    M = np.diag(np.repeat([float(body.joint.armature) for body in bodies], [k.nv for k in topology.joint_types]))
    S_W_columns = np.zeros((6, topology.tree_nv))
    poses: list[Pose] = []
    for i, body in enumerate(bodies):
        parent = topology.parents[i]
        poses.append(body.placement if parent == WORLD else poses[parent] @ body.placement)
        dofs = slice(*topology.tree_v_slices[i])
        S_W_columns[:, dofs] = _world_subspace_columns(body, topology.joint_types[i], poses[i])
    composite = [body.inertial.transform(X).spatial_inertia() for body, X in zip(bodies, poses, strict=True)]
    for i in reversed(range(len(bodies))):
        dofs = range(*topology.tree_v_slices[i])
        force = composite[i] @ S_W_columns[:, dofs]
        path_dofs = [dof for body in topology.root_paths[i] for dof in range(*topology.tree_v_slices[body])]
        M[np.ix_(path_dofs, dofs)] += S_W_columns[:, path_dofs].T @ force
        M[np.ix_(dofs, path_dofs)] = M[np.ix_(path_dofs, dofs)].T
        if topology.parents[i] != WORLD:
            composite[topology.parents[i]] = composite[topology.parents[i]] + composite[i]
    return M, S_W_columns, poses


def _world_subspace_columns(body: BodySpec, kind: ElementaryJointType, X_WB: Pose) -> np.ndarray:
    """Motion subspace of the body's joint in world axes about the world origin, one column per degree of freedom."""
    R, joint = np.asarray(X_WB.R), kind.joint
    anchor = np.asarray(body.joint.anchor, dtype=float)
    centre = X_WB.point(anchor) if joint.turns_about_anchor else np.asarray(X_WB.p)
    return joint.numpy_subspace_columns(R, R @ unit_vector(body.joint.axis), centre)


def unit_vector(axis) -> np.ndarray:
    """Unit vector along `axis`."""
    axis = np.asarray(axis, dtype=float)
    return axis / np.linalg.norm(axis)

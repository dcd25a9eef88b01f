"""Apparent inverse masses of shapes and joints, which scale contact softness. Plain NumPy, once per simulator."""

from typing import NamedTuple

import numpy as np
from jax.core import Tracer

from hybridsim.model.apparent_inertia import mass_matrix_at_zero
from hybridsim.model.inertial import Inertial, inertia_matrix
from hybridsim.model.model import Model
from hybridsim.model.specs import WORLD_NAME, BodySpec, JointSpec
from hybridsim.model.topology import WORLD
from hybridsim.spatial.transform import Pose

MIN_RELATIVE_INVERSE_MASS = 1e-3
"""Lower bound on the inverse effective mass along a direction relative to the largest; joints block some directions."""
MIN_INVERSE_MASS = 1e-12
"""Added to inverse masses [1/kg], so that those of immovable shapes are positive."""


class MobilityAtZero(NamedTuple):
    """Inverse mass matrix and kinematics of a mechanism at q = 0, for velocities due to impulses."""

    mass_inverse: np.ndarray
    """M⁻¹ of the tree before mimic joints are eliminated."""
    subspace: np.ndarray
    """Motion subspace in world axes, about the world's origin: one column per degree of freedom."""
    poses: list[Pose]
    """Poses of the bodies in the world."""

    def jacobian(self, model: Model, body: int, points: np.ndarray) -> np.ndarray:
        """Translational Jacobian (n, 3, tree_nv), in the world, of points (n, 3) fixed in a body, in the body frame."""
        topology = model.topology
        J = np.zeros((len(points), 3, topology.tree_nv))
        if body == WORLD:
            return J
        dofs = [dof for b in topology.root_paths[body] for dof in range(*topology.tree_v_slices[b])]
        for k, p in enumerate(points):
            angular, linear = self.subspace[:3, dofs], self.subspace[3:, dofs]
            J[k][:, dofs] = linear + np.cross(angular, self.poses[body].point(p), axisa=0, axisb=0, axisc=0)
        return J


def mobility_at_zero(model: Model) -> MobilityAtZero:
    """Inverse mass matrix and kinematics of a model at q = 0.

    Raises:
        ValueError: masses or placements are traced, so they have no values yet.
    """
    joint, body, geometry, topology = model.joint, model.body, model.geometry, model.topology
    parts = (body.mass, body.com, body.inertia, joint.placement.p, joint.axis, joint.armature, geometry.placement.p)
    if any(isinstance(part, Tracer) for part in parts):
        raise ValueError(
            "a simulator with contact scales softness and stiffness by masses and placements, so they must be concrete "
            "when it is built: build it first, then insert traced values with `equinox.tree_at`"
        )
    if topology.tree_nv == 0:
        return MobilityAtZero(np.zeros((0, 0)), np.zeros((6, 0)), [Pose(np.eye(3), np.zeros(3))] * topology.nb)
    M, subspace, poses = mass_matrix_at_zero(_bodies(model), topology)
    M = M + np.diag(np.asarray(joint.armature))
    return MobilityAtZero(np.linalg.pinv(M, hermitian=True), subspace, poses)


def apparent_inverse_masses(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Apparent inverse masses of shapes [1/kg] and inverse apparent inertias of joints [1/kg or 1/(kg·m²)] at q = 0.

    For a shape it is the geometric mean of the eigenvalues of J M⁻¹ Jᵀ, with J the translational Jacobian of the
    shape's origin.

    Raises:
        ValueError: masses or placements are traced, so they have no values yet.
    """
    mobility, shapes = mobility_at_zero(model), []
    for info, p in zip(model.geometry.infos, np.asarray(model.geometry.placement.p), strict=True):
        if info.body == WORLD or not model.topology.tree_nv:
            shapes.append(0.0)
            continue
        (J,) = mobility.jacobian(model, info.body, p[None])
        eigenvalues = np.linalg.eigvalsh(J @ mobility.mass_inverse @ J.T)
        eigenvalues = np.maximum(eigenvalues, MIN_RELATIVE_INVERSE_MASS * eigenvalues.max() + MIN_INVERSE_MASS)
        shapes.append(float(np.exp(np.mean(np.log(eigenvalues)))))
    return np.array(shapes), np.diag(mobility.mass_inverse).copy()


def _bodies(model: Model) -> list[BodySpec]:
    """The model's bodies as specs with inertia and placement only; the caller adds armature."""
    joint, body, topology = model.joint, model.body, model.topology
    return [
        BodySpec(
            name,
            WORLD_NAME if topology.parents[k] == WORLD else topology.body_names[topology.parents[k]],
            JointSpec(topology.joint_names[k], axis=np.asarray(joint.axis)[k], anchor=np.asarray(joint.anchor)[k]),
            Pose(np.asarray(joint.placement.R)[k], np.asarray(joint.placement.p)[k]),
            Inertial(
                float(np.asarray(body.mass)[k]), np.asarray(body.com)[k], inertia_matrix(np.asarray(body.inertia)[k])
            ),
        )
        for k, name in enumerate(topology.body_names)
    ]

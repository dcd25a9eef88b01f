"""How easily shapes and joints are moved: the scale of what contacts give way. Plain NumPy, once per simulator."""

from typing import NamedTuple

import numpy as np
from jax.core import Tracer

from hybridsim.model.apparent_inertia import mass_matrix_at_zero
from hybridsim.model.inertial import Inertial, inertia_matrix
from hybridsim.model.model import Model
from hybridsim.model.specs import WORLD_NAME, BodySpec, JointSpec
from hybridsim.model.topology import WORLD
from hybridsim.spatial.transform import Pose

MIN_RELATIVE_MOBILITY = 1e-3
"""Least that a direction counts, by the one in which a shape moves most easily: in some, joints hold it."""
MIN_INVERSE_MASS = 1e-12
"""What is added to it [1/kg], for shapes that nothing can move: a mean of logarithms cannot take zeros."""


class Mobility(NamedTuple):
    """How a mechanism gives way to impulses at q = 0."""

    inverse: np.ndarray
    """M⁻¹, of the tree before mimic joints are removed."""
    directions: np.ndarray
    """Motion of the world's origin for each velocity, one column each."""
    poses: list[Pose]
    """Of the bodies."""

    def jacobian(self, model: Model, body: int, points: np.ndarray) -> np.ndarray:
        """Velocities of points (n, 3) of a body, in its frame, by those of the mechanism: n × 3 × mv."""
        topology = model.topology
        J = np.zeros((len(points), 3, topology.mv))
        if body == WORLD:
            return J
        above = [dof for b in topology.ancestors[body] for dof in range(*topology.tree_v_slices[b])]
        for k, p in enumerate(points):
            turning, moving = self.directions[:3, above], self.directions[3:, above]
            J[k][:, above] = moving + np.cross(turning, self.poses[body].point(p), axisa=0, axisb=0, axisc=0)
        return J


def mobility(model: Model) -> Mobility:
    """What masses and placements say about it.

    Raises:
        ValueError: they are traced, so that they are no numbers yet.
    """
    joint, body, geometry, topology = model.joint, model.body, model.geometry, model.topology
    parts = (body.mass, body.com, body.inertia, joint.placement.p, joint.axis, joint.armature, geometry.placement.p)
    if any(isinstance(part, Tracer) for part in parts):
        raise ValueError(
            "a simulator with contact finds from masses and placements how hard contacts are, so these must be numbers "
            "when it is made: make it first, and put traced ones in with `equinox.tree_at`"
        )
    if topology.mv == 0:
        return Mobility(np.zeros((0, 0)), np.zeros((6, 0)), [Pose(np.eye(3), np.zeros(3))] * topology.nb)
    M, directions, poses = mass_matrix_at_zero(_bodies(model), topology)
    M = M + np.diag(np.asarray(joint.armature))
    return Mobility(np.linalg.pinv(M, hermitian=True), directions, poses)


def apparent_inverse_masses(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """What one newton-second changes a shape's and each joint's velocity by, at q = 0 [1/kg, and 1/(kg·m²) for hinges].

    For a shape it is the geometric mean over the directions of space, at its centre.

    Raises:
        ValueError: masses or placements are traced, so that they are no numbers yet.
    """
    moves, shapes = mobility(model), []
    for info, p in zip(model.geometry.infos, np.asarray(model.geometry.placement.p), strict=True):
        if info.body == WORLD or not model.topology.mv:
            shapes.append(0.0)
            continue
        (J,) = moves.jacobian(model, info.body, p[None])
        sizes = np.linalg.eigvalsh(J @ moves.inverse @ J.T)
        sizes = np.maximum(sizes, MIN_RELATIVE_MOBILITY * sizes.max() + MIN_INVERSE_MASS)
        shapes.append(float(np.exp(np.mean(np.log(sizes)))))
    return np.array(shapes), np.diag(moves.inverse).copy()


def _bodies(model: Model) -> list[BodySpec]:
    """The model's bodies as descriptions, without what does not matter here; armature is added by the caller."""
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

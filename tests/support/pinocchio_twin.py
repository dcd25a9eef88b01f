"""Pinocchio twin of a model, and conversion between the conventions of both."""

import numpy as np
import pinocchio as pin

from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.model import Model


class PinocchioTwin:
    """A model in Pinocchio's conventions: quaternions xyzw, linear part first."""

    def __init__(self, model: Model):
        topology, joint = model.topology, model.joint
        self.pin = pin.Model()
        self.pin.gravity = pin.Motion(np.asarray(model.gravity), np.zeros(3))
        self.frames: dict[int, int] = {}
        q_order, v_order = [], []
        placements = {-1: (0, pin.SE3.Identity())}
        for body in _depth_first(topology.parents):
            kind = topology.joint_types[body]
            parent_joint, X_jP = placements[topology.parents[body]]
            has_anchor = kind in (ElementaryJointType.REVOLUTE, ElementaryJointType.SPHERICAL)
            X_PJ = pin.SE3(np.asarray(joint.placement.R[body]), np.asarray(joint.placement.p[body]))
            # Pinocchio's joint frame is at the anchor, ours at the body's origin
            X_JA = pin.SE3(np.eye(3), np.asarray(joint.anchor[body]) if has_anchor else np.zeros(3))
            if kind is ElementaryJointType.FIXED:
                joint_id, X_jB = parent_joint, X_jP * X_PJ
            else:
                placement = X_jP * X_PJ * X_JA
                joint_id = self.pin.addJoint(
                    parent_joint, _joint(kind, joint.axis[body]), placement, topology.joint_names[body]
                )
                X_jB = X_JA.inverse()
                q_order += _quaternion_last(kind, range(*topology.tree_q_slices[body]))
                v_order += _linear_first(kind, range(*topology.tree_v_slices[body]))
            placements[body] = (joint_id, X_jB)
            self.pin.appendBodyToJoint(joint_id, _inertia(model, body), X_jB)
            frame = pin.Frame(topology.body_names[body], joint_id, 0, X_jB, pin.FrameType.BODY)
            self.frames[body] = self.pin.addFrame(frame, False)
        self._q_order, self._v_order = np.array(q_order), np.array(v_order)
        self.pin.armature = np.asarray(joint.armature)[self._v_order]
        self.data = self.pin.createData()

    def to_pinocchio_q(self, q):
        """Our coordinates in Pinocchio's order."""
        return np.asarray(q)[self._q_order]

    def to_pinocchio_v(self, v):
        """Our velocities, accelerations or torques in Pinocchio's order."""
        return np.asarray(v)[self._v_order]

    def from_pinocchio_order(self, x, axis=0):
        """Reorder a vector or matrix of Pinocchio along an axis."""
        return np.take(x, np.argsort(self._v_order), axis=axis)


def _depth_first(parents) -> list[int]:
    """Bodies in depth-first order, as Pinocchio requires contiguous subtrees."""

    def descendants(body: int) -> list[int]:
        children = [child for child, parent in enumerate(parents) if parent == body]
        return [b for child in children for b in [child, *descendants(child)]]

    return descendants(-1)


def _quaternion_last(kind: ElementaryJointType, indices) -> list[int]:
    """Reorder quaternions from w x y z to x y z w."""
    indices = list(indices)
    if kind in (ElementaryJointType.SPHERICAL, ElementaryJointType.FREE):
        *before, w, x, y, z = indices
        return [*before, x, y, z, w]
    return indices


def _linear_first(kind: ElementaryJointType, indices) -> list[int]:
    indices = list(indices)
    return indices[3:] + indices[:3] if kind is ElementaryJointType.FREE else indices


def _joint(kind: ElementaryJointType, axis):
    axis = np.asarray(axis)
    return {
        ElementaryJointType.REVOLUTE: lambda: pin.JointModelRevoluteUnaligned(axis),
        ElementaryJointType.PRISMATIC: lambda: pin.JointModelPrismaticUnaligned(axis),
        ElementaryJointType.SPHERICAL: pin.JointModelSpherical,
        ElementaryJointType.FREE: pin.JointModelFreeFlyer,
    }[kind]()


def _inertia(model: Model, body: int) -> pin.Inertia:
    xx, yy, zz, xy, xz, yz = np.asarray(model.body.inertia[body])
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return pin.Inertia(float(model.body.mass[body]), np.asarray(model.body.com[body]), matrix)

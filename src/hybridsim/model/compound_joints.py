"""Compound joints: the chain of elementary joints that each becomes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.specs import JointKind, JointSpec


@dataclass(frozen=True)
class CompoundJoint:
    """A compound joint; its chain is listed from the parent to the body."""

    suffixes: tuple[str, ...]
    """Suffixes of the names of the elementary joints: `hinge.1`, `hinge.2`."""
    kinds: tuple[JointKind, ...]
    """Types of the elementary joints."""
    axes: Callable[[JointSpec], tuple[np.ndarray, ...]]
    """Axes of the elementary joints."""
    axis_count: Literal[1, 2]
    """Number of axes that the user specifies: 1 for `axis`, 2 for `axis` and `axis2`."""


def plane_axes(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal basis of the plane with this normal; x and y if the normal is z."""
    n = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
    helper = np.array([1.0, 0.0, 0.0]) if abs(n[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    e1 = helper - (helper @ n) * n
    e1 /= np.linalg.norm(e1)
    return e1, np.cross(n, e1)


COMPOUND_JOINTS = {
    JointKind.UNIVERSAL: CompoundJoint(
        ("1", "2"), (JointKind.REVOLUTE, JointKind.REVOLUTE), lambda joint: (joint.axis, joint.axis2), axis_count=2
    ),
    JointKind.PLANAR: CompoundJoint(
        ("x", "y", "yaw"),
        (JointKind.PRISMATIC, JointKind.PRISMATIC, JointKind.REVOLUTE),
        lambda joint: (*plane_axes(joint.axis), joint.axis),
        axis_count=1,
    ),
}
"""All compound joints."""


def elementary_types(kind: JointKind) -> tuple[ElementaryJointType, ...]:
    """Types of the elementary joints that a joint consists of."""
    compound = COMPOUND_JOINTS.get(kind)
    return tuple(part.elementary_type for part in (compound.kinds if compound else (kind,)))


def elementary_chain(joint: JointSpec) -> list[JointSpec]:
    """The joint itself, or the elementary joints of a compound one."""
    compound = COMPOUND_JOINTS.get(joint.kind)
    if compound is None:
        return [joint]
    return [
        replace(joint, name=f"{joint.name}.{suffix}", kind=kind, axis=axis)
        for suffix, kind, axis in zip(compound.suffixes, compound.kinds, compound.axes(joint), strict=True)
    ]


def axes_of(joint: JointSpec) -> tuple[np.ndarray, ...]:
    """Axes of a joint that the user specifies, and that must therefore have a direction."""
    compound = COMPOUND_JOINTS.get(joint.kind)
    count = compound.axis_count if compound else int(joint.kind.elementary_type.joint.has_axis)
    return (joint.axis, joint.axis2)[:count]

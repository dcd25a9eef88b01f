"""Parsing of individual URDF elements: origins, inertials, links and joints."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hybridsim.core.messages import spelling_suggestion
from hybridsim.io.attributes import MAX_NUMBER, Reader
from hybridsim.io.urdf.dof_attributes import DOF_ATTRIBUTES
from hybridsim.io.urdf.read_lint import INERTIA_ENTRIES, lint
from hybridsim.io.xml import Element
from hybridsim.model.builder import pose
from hybridsim.model.inertial import Inertial, inertia_matrix
from hybridsim.model.specs import GeomSpec, JointKind, JointSpec, Source
from hybridsim.spatial.transform import Pose

KINDS = {
    "revolute": JointKind.REVOLUTE,
    "continuous": JointKind.CONTINUOUS,
    "prismatic": JointKind.PRISMATIC,
    "fixed": JointKind.FIXED,
    "floating": JointKind.FREE,
    "planar": JointKind.PLANAR,
    "spherical": JointKind.SPHERICAL,
    "universal": JointKind.UNIVERSAL,
}
"""Joint types by their URDF name, for reading and writing; the last two are extensions of the standard."""


@dataclass
class Link:
    """A link as specified in the file."""

    name: str
    element: Element
    inertial: Inertial | None = None
    """Mass properties in the link frame; None if the file specifies none."""
    is_inertial_valid: bool = True
    """False if the `<inertial>` has invalid values; `inertial` is then a placeholder."""
    shapes: list[GeomSpec] = field(default_factory=list)

    @property
    def source(self) -> Source:
        """Location of the link."""
        return Source(self.element.file, self.element.line)

    @property
    def inertial_source(self) -> Source:
        """Location of the `<inertial>`, or of the link if it has none."""
        element = self.element.child("inertial") or self.element
        return Source(element.file, element.line)


@dataclass
class Joint:
    """A joint as specified in the file."""

    name: str
    element: Element
    spec: JointSpec
    placement: Pose
    """X_PJ: joint frame in the parent link."""
    parent: str
    child: str


def read_origin(reader: Reader, owner: Element) -> Pose:
    """Pose specified by the `<origin>` of an element; identity if it has none."""
    origin = owner.child("origin")
    return pose(reader.vector(origin, "xyz", 3, (0, 0, 0)), reader.vector(origin, "rpy", 3, (0, 0, 0)))


def roll_pitch_yaw(R) -> np.ndarray:
    """Roll, pitch and yaw [rad] of a rotation matrix; at gimbal lock the roll is 0."""
    R = np.asarray(R, dtype=float)
    cos_pitch = math.hypot(R[0, 0], R[1, 0])
    pitch = math.atan2(-R[2, 0], cos_pitch)
    roll = math.atan2(R[2, 1], R[2, 2]) if cos_pitch > 1e-15 else 0.0
    # yaw after undoing the roll: as accurate as R itself at any pitch
    s, c = math.sin(roll), math.cos(roll)
    return np.array([roll, pitch, math.atan2(s * R[0, 2] - c * R[0, 1], c * R[1, 1] - s * R[1, 2])])


def read_link(reader: Reader, element: Element) -> Link:
    """Link with its mass properties, without its shapes."""
    link = Link(_name(reader, element), element)
    inertial = element.child("inertial")
    lint(reader, element)
    if inertial is None:
        return link
    lint(reader, inertial)
    before = len(reader.problems)
    X_LI = read_origin(reader, inertial)
    mass = reader.number(inertial.child("mass"), "value")
    inertia = inertial.child("inertia")
    entries = [reader.number(inertia, name, None if k < 3 else 0.0) for k, name in enumerate(INERTIA_ENTRIES)]
    link.is_inertial_valid = len(reader.problems) == before
    link.inertial = Inertial(mass, np.zeros(3), inertia_matrix(entries)).transform(X_LI)
    if not link.is_inertial_valid:
        # valid placeholder, so that unreadable values are not also reported as physically inconsistent
        link.inertial = Inertial(1.0, np.zeros(3), 1e-6 * np.eye(3))
    return link


def read_joint(reader: Reader, element: Element) -> Joint:
    """Joint with all its parameters; parent and child are link names, empty if the file specifies none."""
    lint(reader, element)
    kind = _kind(reader, element)
    lower, upper = _limits(reader, element, kind)
    axis, axis2 = element.child("axis"), element.child("axis2")
    mimic = element.child("mimic")
    spec = JointSpec(
        name=_name(reader, element),
        kind=kind,
        axis=reader.vector(axis, "xyz", 3, (1, 0, 0)),
        axis2=reader.vector(axis2, "xyz", 3, (0, 1, 0)),
        lower=lower,
        upper=upper,
        mimic=reader.required_text(mimic, "joint") if mimic is not None else "",
        mimic_ratio=reader.number(mimic, "multiplier", 1.0),
        mimic_offset=reader.number(mimic, "offset", 0.0),
        source=Source(element.file, element.line),
        **_dof_parameters(reader, element),
    )
    return Joint(
        spec.name,
        element,
        spec,
        read_origin(reader, element),
        _connected_link(reader, element, "parent"),
        _connected_link(reader, element, "child"),
    )


def _name(reader: Reader, element: Element) -> str:
    return reader.required_text(element, "name") or f"{element.tag}@{element.line}"


def _kind(reader: Reader, element: Element) -> JointKind:
    text = reader.required_text(element, "type")
    if text and text not in KINDS:
        reader.report(
            element,
            "joint.type",
            f"joint {element.get('name')!r} has unknown type {text!r}",
            spelling_suggestion(text.lower(), KINDS) or f"the types are {', '.join(KINDS)}",
        )
    return KINDS.get(text, JointKind.REVOLUTE)


def _dof_parameters(reader: Reader, element: Element) -> dict[str, Any]:
    parameters = {}
    for parameter, (tag, attribute) in DOF_ATTRIBUTES.items():
        default = getattr(JointSpec, parameter)
        read = _bound if np.isinf(default) else Reader.number
        parameters[parameter] = read(reader, element.child(tag), attribute, default)
    return parameters


def _limits(reader: Reader, element: Element, kind: JointKind) -> tuple[float, float]:
    limit, name = element.child("limit"), element.get("name")
    if reader.number(limit, "velocity", 0.0, allow_infinite=True) < 0.0:
        assert limit is not None
        reader.report(
            limit,
            "limit.velocity",
            f"velocity limit of joint {name!r} is negative",
            "it must be positive",
        )
    if kind not in (JointKind.REVOLUTE, JointKind.PRISMATIC):
        return -np.inf, np.inf
    if limit is None or not {"lower", "upper"} & limit.attributes.keys():
        fix = "add lower and upper to <limit>"
        if kind is JointKind.REVOLUTE:
            fix += ', or make it type="continuous"'
        reader.warn(
            limit or element,
            "limit.missing",
            f"{kind} joint {name!r} has no position limits and is treated as unlimited",
            fix,
        )
        return -np.inf, np.inf
    # an absent limit is 0 by the standard; an unreadable one must not also be reported as swapped
    lower = _bound(reader, limit, "lower", -np.inf if "lower" in limit.attributes else 0.0)
    upper = _bound(reader, limit, "upper", np.inf if "upper" in limit.attributes else 0.0)
    if lower == upper:
        reader.warn(
            limit,
            "limit.locked",
            f"joint {name!r} is locked: its lower and upper limits are both {lower:g}",
            'specify its range, or make it type="fixed"',
        )
    return lower, upper


def _bound(reader: Reader, limit: Element | None, attribute: str, default: float) -> float:
    """A limit; magnitudes of `MAX_NUMBER` or more are read as infinite, since not every URDF parser accepts `inf`."""
    value = reader.number(limit, attribute, default, allow_infinite=True)
    return float(np.copysign(np.inf, value)) if abs(value) >= MAX_NUMBER else value


def _connected_link(reader: Reader, element: Element, tag: str) -> str:
    child = element.child(tag)
    if child is None:
        reader.report(
            element,
            "joint.no_link",
            f"joint {element.get('name')!r} has no <{tag}>",
            f'add <{tag} link="..."/>',
        )
        return ""
    return reader.required_text(child, "link")

"""Warnings about URDF settings that the simulation ignores, and about effort limits that disable actuation.

There is one per kind, with the names of the affected elements.
"""

from collections.abc import Iterable, Sequence

from hybridsim.core.errors import ModelError, Problem, Severity
from hybridsim.core.messages import name_list, pluralize
from hybridsim.io.attributes import MAX_NUMBER, Reader
from hybridsim.io.urdf.read_contact import ignored_settings
from hybridsim.io.urdf.read_elements import Joint
from hybridsim.io.xml import Element
from hybridsim.model.specs import JointKind

GAZEBO_PHYSICS = (
    *("mu1", "mu2", "kp", "kd", "fdir1", "maxVel", "minDepth", "maxContacts", "selfCollide", "gravity"),
    *("turnGravityOff", "dampingFactor", "springStiffness", "springReference", "stopCfm", "stopErp"),
)
"""Children of `<gazebo>` that affect the dynamics; the others concern appearance, sensors and plugins."""

_LIMITED = (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.FIXED)


def reject_xacro(robot: Element) -> None:
    """Reject files with unexpanded xacro.

    Raises:
        ModelError: the file contains a xacro element or expression; further problems would be meaningless.
    """
    occurrences = [occurrence for element in _elements_outside_gazebo(robot) if (occurrence := _xacro_in(element))]
    if occurrences:
        element, message = occurrences[0]
        more = f" (and {pluralize(len(occurrences) - 1, 'more occurrence')})" if len(occurrences) > 1 else ""
        fix = "expand the file first: xacro robot.xacro > robot.urdf"
        raise ModelError([Problem(f"{message}{more}", fix, element.file, element.line, code="urdf.xacro")])


def report_ignored(reader: Reader, robot: Element, joints: Sequence[Joint]) -> None:
    """Report settings that are ignored, and effort limits that disable actuation."""
    moving = [joint for joint in joints if joint.spec.kind is not JointKind.FIXED]

    def report(items: Iterable[tuple[Element, str]], code: str, text: str, fix: str, severity=Severity.WARNING) -> None:
        elements = list(items)
        if elements:
            names = list(dict.fromkeys(name for _, name in elements))
            reader.report(elements[0][0], code, f"{text}: {name_list(names)}", fix, severity)

    report(
        _limits(joint for joint in moving if joint.spec.kind not in _LIMITED and _has_range(joint)),
        "urdf.ignored",
        "position limits of joints whose type has none are ignored",
        'use type="revolute" for a rotating joint with limits',
    )
    report(
        _limits(joint for joint in moving if joint.spec.effort_limit == 0.0 and not joint.spec.mimic),
        "limit.effort",
        'joints with effort="0" cannot be actuated',
        "specify the maximum torque or force, or omit effort",
    )
    report(
        _limits(joint for joint in moving if _has_velocity(joint)),
        "urdf.ignored",
        "velocity limits of joints are not simulated",
        "enforce them in the controller",
        Severity.NOTE,
    )
    report(
        ((element, joint.name) for joint in moving if (element := joint.element.child("safety_controller"))),
        "urdf.ignored",
        "<safety_controller> of joints is not simulated",
        "only <limit> is used; specify the soft limits there if they apply",
        Severity.NOTE,
    )
    report(
        _reductions(robot),
        "urdf.ignored",
        "<mechanicalReduction> of transmissions is ignored",
        "commands are joint torques and forces; multiply motor torques by the reduction",
    )
    report(
        (
            (setting, gazebo.get("reference") or "the whole robot")
            for gazebo in robot.children_with_tag("gazebo")
            for setting in gazebo.children
            if setting.tag in GAZEBO_PHYSICS
        ),
        "urdf.ignored",
        "Gazebo physics settings are ignored",
        'add <contact><lateral_friction value="..."/></contact> to the link, or damping to <dynamics> of the joint',
    )
    report(
        ignored_settings(robot),
        "urdf.ignored",
        "unsupported settings in <contact> are ignored",
        "lateral_friction, restitution, stiffness and damping are supported",
    )


def _limits(joints: Iterable[Joint]) -> Iterable[tuple[Element, str]]:
    return ((joint.element.child("limit") or joint.element, joint.name) for joint in joints)


def _has_range(joint: Joint) -> bool:
    """Whether a joint has a non-empty range; many files specify zeros for joint types without limits."""
    limit = joint.element.child("limit")
    return limit is not None and _number(limit.get("lower")) < _number(limit.get("upper"))


def _has_velocity(joint: Joint) -> bool:
    limit = joint.element.child("limit")
    return limit is not None and 0.0 < _number(limit.get("velocity")) < MAX_NUMBER


def _reductions(robot: Element) -> Iterable[tuple[Element, str]]:
    for transmission in robot.children_with_tag("transmission"):
        for element in transmission.walk():
            if element.tag == "mechanicalReduction" and _number(element.text, 1.0) != 1.0:
                yield element, transmission.get("name")


def _number(text: str, default: float = 0.0) -> float:
    """Numeric value of a text that has been validated elsewhere; the default if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return default


def _elements_outside_gazebo(robot: Element) -> Iterable[Element]:
    yield robot
    for child in robot.children:
        if child.tag != "gazebo":
            yield from child.walk()


def _xacro_in(element: Element) -> tuple[Element, str] | None:
    if element.tag.startswith("xacro:"):
        return element, f"<{element.tag}> is an unexpanded xacro element"
    for name, text in element.attributes.items():
        if "${" in text or "$(" in text:
            return element, f"attribute {name!r} of {element.title} is {text[:60]!r}, an unexpanded xacro expression"
    return None

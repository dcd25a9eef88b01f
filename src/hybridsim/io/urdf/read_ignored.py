"""What a URDF file says and the simulation does not follow: told once per kind, with the names that it concerns."""

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
"""Children of `<gazebo>` that would change the motion; the others are about looks, sensors and plugins."""

_LIMITED = (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.FIXED)


def refuse_xacro(robot: Element) -> None:
    """Make sure that nothing in the file waits to be expanded.

    Raises:
        ModelError: something does; nothing else that could be said about the file would mean much.
    """
    places = [place for element in _outside_gazebo(robot) if (place := _xacro_in(element))]
    if places:
        element, what = places[0]
        more = f" (and {pluralize(len(places) - 1, 'more place')} like this)" if len(places) > 1 else ""
        fix = "expand the file first: xacro robot.xacro > robot.urdf"
        raise ModelError([Problem(f"{what}{more}", fix, element.file, element.line, code="urdf.xacro")])


def report_ignored(reader: Reader, robot: Element, joints: Sequence[Joint]) -> None:
    """Report what has no effect."""
    moving = [joint for joint in joints if joint.spec.kind is not JointKind.FIXED]

    def report(at: Iterable[tuple[Element, str]], code: str, what: str, fix: str, severity=Severity.WARNING) -> None:
        found = list(at)
        if found:
            names = list(dict.fromkeys(name for _, name in found))
            reader.report(found[0][0], code, f"{what}: {name_list(names)}", fix, severity)

    report(
        _limits(joint for joint in moving if joint.spec.kind not in _LIMITED and _has_range(joint)),
        "urdf.ignored",
        "joints have position limits, which their type does not have, so they are ignored",
        'a joint that turns between limits is type="revolute"',
    )
    report(
        _limits(joint for joint in moving if joint.spec.effort_limit == 0.0 and not joint.spec.mimic),
        "limit.effort",
        'joints have effort="0", so their actuators can do nothing',
        "write the largest torque or force, or leave effort out",
    )
    report(
        _limits(joint for joint in moving if _has_velocity(joint)),
        "urdf.ignored",
        "joints have velocity limits, which are not simulated",
        "keep to them in the commands",
        Severity.NOTE,
    )
    report(
        ((element, joint.name) for joint in moving if (element := joint.element.child("safety_controller"))),
        "urdf.ignored",
        "joints have a <safety_controller>, which is not simulated",
        "only the limits in <limit> act; narrow those if the soft ones count",
        Severity.NOTE,
    )
    report(
        _reductions(robot),
        "urdf.ignored",
        "transmissions have a <mechanicalReduction>, which is ignored",
        "commands are torques and forces of the joints themselves; multiply those of the motors by the reduction",
    )
    report(
        (
            (setting, gazebo.get("reference") or "the whole robot")
            for gazebo in robot.all("gazebo")
            for setting in gazebo.children
            if setting.tag in GAZEBO_PHYSICS
        ),
        "urdf.ignored",
        "friction, stiffness and other settings for Gazebo are ignored",
        'write <contact><lateral_friction value="..."/></contact> into the link, damping into the joint\'s <dynamics>',
    )
    report(
        ignored_settings(robot),
        "urdf.ignored",
        "settings in <contact> are ignored",
        "contacts follow lateral_friction, restitution, stiffness and damping",
    )


def _limits(joints: Iterable[Joint]) -> Iterable[tuple[Element, str]]:
    return ((joint.element.child("limit") or joint.element, joint.name) for joint in joints)


def _has_range(joint: Joint) -> bool:
    """Whether a joint has limits that mean something; many files write zeros where the type needs none."""
    limit = joint.element.child("limit")
    return limit is not None and _number(limit.get("lower")) < _number(limit.get("upper"))


def _has_velocity(joint: Joint) -> bool:
    limit = joint.element.child("limit")
    return limit is not None and 0.0 < _number(limit.get("velocity")) < MAX_NUMBER


def _reductions(robot: Element) -> Iterable[tuple[Element, str]]:
    for transmission in robot.all("transmission"):
        for element in transmission.walk():
            if element.tag == "mechanicalReduction" and _number(element.text, 1.0) != 1.0:
                yield element, transmission.get("name")


def _number(text: str, default: float = 0.0) -> float:
    """A number that has been checked, or need not be, wherever it stands."""
    try:
        return float(text)
    except ValueError:
        return default


def _outside_gazebo(robot: Element) -> Iterable[Element]:
    yield robot
    for child in robot.children:
        if child.tag != "gazebo":
            yield from child.walk()


def _xacro_in(element: Element) -> tuple[Element, str] | None:
    if element.tag.startswith("xacro:"):
        return element, f"<{element.tag}> is a xacro command, which a URDF file cannot have"
    for name, text in element.attributes.items():
        if "${" in text or "$(" in text:
            return element, f"attribute {name!r} of {element.title} is {text[:60]!r}, a xacro expression"
    return None

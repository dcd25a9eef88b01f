"""The catalogue of parameters: every number of a model, its simulator and its sensors that has a name of its own.

What users plug in themselves (contact, stages of actuation, networks) is not listed here but found: `open_parts.py`.
"""

from dataclasses import dataclass
from enum import StrEnum


class Rows(StrEnum):
    """What the rows of a parameter stand for."""

    NONE = "-"
    BODY = "body"
    JOINT = "joint"
    AXIS = "joint with an axis"
    MIMIC = "mimic joint"
    DOF = "degree of freedom"
    COORDINATE = "coordinate"
    FRAME = "frame"
    ACTUATOR = "actuator"
    SHAPE = "shape"
    SHAPE_PAIR = "pair of shapes with a friction of its own"
    CHANNEL = "sensor channel"


class Form(StrEnum):
    """How a parameter is part of the setup."""

    NUMBER = "number"
    """It is stored as it is."""
    POSE = "pose"
    """Its position is stored as it is; `rx, ry, rz` turn it away from where it was when the space was made."""
    AXIS = "axis"
    """A direction, which is brought to unit length: one of its three numbers, kept, makes the others unique."""
    MAGNITUDE = "magnitude"
    """The length of a vector that keeps its direction."""
    MASS = "mass"
    """A mass with which the inertia of its body grows."""
    RELATIVE = "relative"
    """A change of what the setup has, without a unit."""


class Floor(StrEnum):
    """Which values make no sense."""

    NONE = "none"
    ZERO = "negative ones"
    ABOVE_ZERO = "negative ones and zero"


@dataclass(frozen=True)
class Parameter:
    """One entry of the catalogue."""

    name: str
    rows: Rows
    unit: str
    """With two units, the first is that of a joint that turns and the second that of one that slides."""
    text: str
    """One sentence for a table."""
    path: str = ""
    """Where the numbers are in a `Setup`."""
    components: tuple[str, ...] = ()
    """Names of the numbers in one row; none for a single number."""
    floor: Floor = Floor.NONE
    why: str = ""
    """Why there is a floor or a largest value."""
    most: float = float("inf")
    """Largest value that makes sense."""
    typical: float = 1.0
    """Magnitude of a usual change, where neither value nor bounds tell."""
    form: Form = Form.NUMBER
    default_map: str = "identity"
    is_weight: bool = False
    """Is it one of the many numbers of a network?"""


XYZ = ("x", "y", "z")
TURNS = ("rx", "ry", "rz")
SYMMETRIC = ("xx", "yy", "zz", "xy", "xz", "yz")
_FORCE = "N·m, N"
_STIFFNESS = "N·m/rad, N/m"
_DAMPING = "N·m·s/rad, N·s/m"
_SPEED = "rad/s, m/s"
_POSITION = "rad, m"
_ADDS_ENERGY = "a negative one would add energy"
_PULLS = "a negative one would push away from where the joint belongs"
_DIVIDES = "it is divided by"


def _joint(name: str, unit: str, text: str, rows: Rows = Rows.DOF, **more) -> Parameter:
    return Parameter(f"joint.{name}", rows, unit, text, f"sim.model.joint.{name}", **more)


def _actuator(name: str, unit: str, text: str, **more) -> Parameter:
    return Parameter(f"actuator.{name}", Rows.ACTUATOR, unit, text, f"sim.model.actuator.{name}", **more)


def _surface(name: str, unit: str, text: str, floor: Floor = Floor.ZERO, **more) -> Parameter:
    return Parameter(f"geometry.{name}", Rows.SHAPE, unit, text, f"sim.model.geometry.{name}", floor=floor, **more)


def _pose(name: str, rows: Rows, text: str, path: str) -> Parameter:
    return Parameter(name, rows, "m", text, path, (*XYZ, *TURNS), typical=0.1, form=Form.POSE)


CATALOG: tuple[Parameter, ...] = (
    Parameter(
        "body.mass",
        Rows.BODY,
        "kg",
        "Mass; the inertia about the centre of mass stays.",
        "sim.model.body.mass",
        floor=Floor.ABOVE_ZERO,
        why="a body without mass may have no answer to a force",
    ),
    Parameter(
        "body.com",
        Rows.BODY,
        "m",
        "Centre of mass in the body frame.",
        "sim.model.body.com",
        XYZ,
        typical=0.1,
    ),
    Parameter(
        "body.inertia",
        Rows.BODY,
        "kg·m²",
        "Inertia about the centre of mass in body axes; nothing keeps it possible, unlike that of inertial[BODY].",
        "sim.model.body.inertia",
        SYMMETRIC,
        typical=0.01,
    ),
    _joint("armature", "kg·m², kg", "Rotor inertia.", floor=Floor.ZERO, why="it is an inertia", typical=0.01),
    _joint("stiffness", _STIFFNESS, "Stiffness of the joint's spring.", floor=Floor.ZERO, why=_PULLS),
    _joint("rest", _POSITION, "Coordinate at which the spring is relaxed.", Rows.COORDINATE),
    _joint("damping", _DAMPING, "Viscous friction.", floor=Floor.ZERO, why=_ADDS_ENERGY, typical=0.1),
    _joint("friction", _FORCE, "Dry (Coulomb) friction.", floor=Floor.ZERO, why=_ADDS_ENERGY, typical=0.1),
    _joint("breakaway", _FORCE, "Dry friction at rest beyond that in motion.", floor=Floor.ZERO, why=_ADDS_ENERGY),
    _joint("stribeck_velocity", _SPEED, "Speed at which breakaway has decayed.", floor=Floor.ABOVE_ZERO, why=_DIVIDES),
    _joint("friction_width", _SPEED, "Speed below which dry friction is a line.", floor=Floor.ABOVE_ZERO, why=_DIVIDES),
    _joint("lower", _POSITION, "Lower position limit."),
    _joint("upper", _POSITION, "Upper position limit."),
    _joint("limit_stiffness", _STIFFNESS, "Stiffness of the limit stops.", floor=Floor.ZERO, why=_PULLS, typical=100.0),
    _joint("limit_damping", _DAMPING, "Damping of the limit stops.", floor=Floor.ZERO, why=_ADDS_ENERGY),
    _joint("effort_limit", _FORCE, "Largest actuation.", floor=Floor.ZERO, why="it limits both directions"),
    _pose(
        "joint.placement", Rows.JOINT, "Frame of the joint in its parent: link lengths.", "sim.model.joint.placement"
    ),
    _joint("axis", "-", "Axis in the body frame, brought to unit length.", Rows.AXIS, components=XYZ, form=Form.AXIS),
    _joint("anchor", "m", "Point about which the body turns.", Rows.JOINT, components=XYZ, typical=0.1),
    _joint("mimic_ratio", "-", "Coordinate by that of the joint it follows.", Rows.MIMIC),
    _joint("mimic_offset", _POSITION, "Coordinate where that of the joint it follows is zero.", Rows.MIMIC),
    _pose("frame.placement", Rows.FRAME, "Named frame in its body.", "sim.model.frame_placement"),
    _actuator("gear", "-", "Transmission ratio from joint to actuator."),
    _actuator("gain", _FORCE, "Force per unit of control."),
    _actuator("bias", _FORCE, "Constant, per length and per speed part.", components=("constant", "length", "speed")),
    _actuator("control_lower", "as the control", "Least control."),
    _actuator("control_upper", "as the control", "Largest control."),
    _actuator("force_lower", _FORCE, "Least force."),
    _actuator("force_upper", _FORCE, "Largest force."),
    _pose("geometry.placement", Rows.SHAPE, "Shape in its body.", "sim.model.geometry.placement"),
    _surface(
        "size",
        "m",
        "Size, as the kind of shape defines it.",
        components=("0", "1", "2"),
        typical=0.1,
        why="it is a length",
    ),
    _surface("friction", "-", "Coulomb friction coefficient.", why=_ADDS_ENERGY),
    _surface("restitution", "-", "Speed after an impact by that before.", most=1.0, why="more would add energy"),
    _surface("recovery_time", "s", "Time in which a penetration is undone.", typical=0.01, why="it is a time"),
    _surface("softness", "-", "By how much a contact gives way.", why="a contact that hardens has no answer"),
    _surface(
        "stiffness",
        "N/m",
        "Stiffness of compliant contact at a depth of 1 mm.",
        Floor.ABOVE_ZERO,
        why="nothing rests on a surface without it",
        typical=1e4,
    ),
    _surface("damping", "N·s/m", "Damping of compliant contact at a depth of 1 mm.", why=_ADDS_ENERGY, typical=100.0),
    Parameter(
        "geometry.pair_friction",
        Rows.SHAPE_PAIR,
        "-",
        "Coulomb friction coefficient of a pair of shapes.",
        "sim.model.geometry.pair_friction",
        floor=Floor.ZERO,
        why=_ADDS_ENERGY,
    ),
    Parameter("gravity", Rows.NONE, "m/s²", "Acceleration of a falling body.", "sim.model.gravity", XYZ),
    Parameter(
        "gravity.magnitude",
        Rows.NONE,
        "m/s²",
        "Acceleration of a falling body, in the direction that it has.",
        "sim.model.gravity",
        floor=Floor.ZERO,
        why="its direction stays",
        form=Form.MAGNITUDE,
    ),
    Parameter(
        "dt",
        Rows.NONE,
        "s",
        "Time step.",
        "sim.dt",
        floor=Floor.ABOVE_ZERO,
        why="time goes on",
        typical=0.001,
    ),
    Parameter("sensor.gain", Rows.CHANNEL, "reading per unit", "Reading per unit of the quantity.", "sensors.gain"),
    Parameter("sensor.bias", Rows.CHANNEL, "reading", "Reading where the quantity is zero.", "sensors.bias"),
    Parameter(
        "sensor.delay",
        Rows.CHANNEL,
        "s",
        "How much later than the motion a reading is.",
        "sensors.delay",
        floor=Floor.ZERO,
        why="a reading does not come before the motion",
        typical=0.01,
    ),
)

BY_NAME = {parameter.name: parameter for parameter in CATALOG}

INERTIAL = Parameter(
    "inertial",
    Rows.BODY,
    "-",
    "Mass, centre of mass and inertia by ten numbers for which they are always possible (log-Cholesky).",
    form=Form.RELATIVE,
)
INERTIAL_MASS = Parameter(
    "inertial.mass",
    Rows.BODY,
    "kg",
    "Mass; the inertia about the centre of mass grows with it.",
    floor=Floor.ABOVE_ZERO,
    why="a body without mass has no inertia",
    form=Form.MASS,
    default_map="log",
)

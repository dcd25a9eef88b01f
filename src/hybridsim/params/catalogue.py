"""The parameter catalogue: every named parameter of a model, its simulator and its sensors.

Parameters of user-pluggable components (contact, actuation stages, networks) are not listed here but discovered:
`plugin_parameters.py`.
"""

from dataclasses import dataclass
from enum import StrEnum

from hybridsim.core.parameter_field import ADDS_ENERGY, DIVIDES, NOT_RESTORING, Sign


class RowKind(StrEnum):
    """Kind of the elements of a setup that the rows of a parameter array belong to."""

    NONE = "-"
    BODY = "body"
    JOINT = "joint"
    SINGLE_AXIS_JOINT = "joint with an axis"
    MIMIC = "mimic joint"
    DOF = "degree of freedom"
    COORDINATE = "coordinate"
    FRAME = "frame"
    ACTUATOR = "actuator"
    SHAPE = "shape"
    SHAPE_PAIR = "pair of shapes with its own friction"
    CHANNEL = "sensor channel"


class ParameterForm(StrEnum):
    """How a parameter is represented in the setup."""

    SCALAR = "scalar"
    """Stored directly."""
    POSE = "pose"
    """Position stored directly; `rx, ry, rz` is a rotation vector from the orientation when the space was built."""
    AXIS = "axis"
    """A direction, normalized to unit length; fixing one of its three components makes the other two unique."""
    MAGNITUDE = "magnitude"
    """Length of a vector of fixed direction."""
    PROPORTIONAL_MASS = "mass"
    """A mass to which the inertia of its body is proportional."""
    RELATIVE = "relative"
    """Dimensionless deviation from the value in the setup."""


@dataclass(frozen=True)
class ParameterKind:
    """A kind of parameter: an entry of the catalogue, or an array discovered in a component."""

    name: str
    row_kind: RowKind
    unit: str
    """Unit. If two are given, separated by a comma, the first is for rotation and the second for translation;
    semicolons separate components."""
    description: str
    """One sentence, for tables."""
    path: str = ""
    """Path of the array in a `Setup`."""
    components: tuple[str, ...] = ()
    """Names of the components of one row; empty for a scalar."""
    sign: Sign = Sign.NONE
    reason: str = ""
    """Why the sign is constrained or there is an upper limit."""
    upper_limit: float = float("inf")
    """Largest physically meaningful value."""
    typical: float = 1.0
    """Magnitude of a typical change, used where neither value nor bounds provide a scale."""
    form: ParameterForm = ParameterForm.SCALAR
    default_map: str = "linear"
    is_weight: bool = False
    """Whether the parameters are network weights."""


XYZ = ("x", "y", "z")
ROTATION_VECTOR = ("rx", "ry", "rz")
SYMMETRIC = ("xx", "yy", "zz", "xy", "xz", "yz")
_FORCE = "N·m, N"
_STIFFNESS = "N·m/rad, N/m"
_DAMPING = "N·m·s/rad, N·s/m"
_SPEED = "rad/s, m/s"
_POSITION = "rad, m"


def _joint(name: str, unit: str, description: str, row_kind: RowKind = RowKind.DOF, **options) -> ParameterKind:
    return ParameterKind(f"joint.{name}", row_kind, unit, description, f"sim.model.joint.{name}", **options)


def _actuator(name: str, unit: str, description: str, **options) -> ParameterKind:
    return ParameterKind(
        f"actuator.{name}", RowKind.ACTUATOR, unit, description, f"sim.model.actuator.{name}", **options
    )


def _surface(name: str, unit: str, description: str, sign: Sign = Sign.NONNEGATIVE, **options) -> ParameterKind:
    return ParameterKind(
        f"geometry.{name}", RowKind.SHAPE, unit, description, f"sim.model.geometry.{name}", sign=sign, **options
    )


def _pose(name: str, row_kind: RowKind, description: str, path: str) -> ParameterKind:
    return ParameterKind(
        name, row_kind, "m", description, path, (*XYZ, *ROTATION_VECTOR), typical=0.1, form=ParameterForm.POSE
    )


CATALOGUE: tuple[ParameterKind, ...] = (
    ParameterKind(
        "body.mass",
        RowKind.BODY,
        "kg",
        "Mass; the inertia about the centre of mass is unchanged.",
        "sim.model.body.mass",
        sign=Sign.POSITIVE,
        reason="without mass the acceleration under a force may be undefined",
    ),
    ParameterKind(
        "body.com",
        RowKind.BODY,
        "m",
        "Centre of mass in the body frame.",
        "sim.model.body.com",
        XYZ,
        typical=0.1,
    ),
    ParameterKind(
        "body.inertia",
        RowKind.BODY,
        "kg·m²",
        "Inertia about the centre of mass in body axes; physical consistency is not enforced (see inertial[BODY]).",
        "sim.model.body.inertia",
        SYMMETRIC,
        typical=0.01,
    ),
    _joint(
        "armature",
        "kg·m², kg",
        "Rotor inertia, reflected through the gear.",
        sign=Sign.NONNEGATIVE,
        reason="it is an inertia",
        typical=0.01,
    ),
    _joint("stiffness", _STIFFNESS, "Joint spring stiffness.", sign=Sign.NONNEGATIVE, reason=NOT_RESTORING),
    _joint("rest", _POSITION, "Coordinate at which the spring is relaxed.", RowKind.COORDINATE),
    _joint("damping", _DAMPING, "Viscous damping.", sign=Sign.NONNEGATIVE, reason=ADDS_ENERGY, typical=0.1),
    _joint("friction", _FORCE, "Dry (Coulomb) friction.", sign=Sign.NONNEGATIVE, reason=ADDS_ENERGY, typical=0.1),
    _joint(
        "stribeck_friction",
        _FORCE,
        "Static friction in excess of Coulomb friction.",
        sign=Sign.NONNEGATIVE,
        reason=ADDS_ENERGY,
    ),
    _joint(
        "stribeck_velocity",
        _SPEED,
        "Stribeck velocity: velocity over which Stribeck friction decays.",
        sign=Sign.POSITIVE,
        reason=DIVIDES,
    ),
    _joint(
        "friction_width",
        _SPEED,
        "Velocity scale of the regularization of dry friction, tanh(qd/friction_width).",
        sign=Sign.POSITIVE,
        reason=DIVIDES,
    ),
    _joint("lower", _POSITION, "Lower position limit."),
    _joint("upper", _POSITION, "Upper position limit."),
    _joint(
        "limit_stiffness",
        _STIFFNESS,
        "Joint limit stiffness.",
        sign=Sign.NONNEGATIVE,
        reason=NOT_RESTORING,
        typical=100.0,
    ),
    _joint("limit_damping", _DAMPING, "Joint limit damping.", sign=Sign.NONNEGATIVE, reason=ADDS_ENERGY),
    _joint(
        "effort_limit",
        _FORCE,
        "Limit of the actuation torque or force.",
        sign=Sign.NONNEGATIVE,
        reason="it is a symmetric limit",
    ),
    _pose(
        "joint.placement",
        RowKind.JOINT,
        "Joint frame in the parent body, including link lengths.",
        "sim.model.joint.placement",
    ),
    _joint(
        "axis", "-", "Unit axis in the body frame.", RowKind.SINGLE_AXIS_JOINT, components=XYZ, form=ParameterForm.AXIS
    ),
    _joint("anchor", "m", "Joint anchor in the body frame.", RowKind.JOINT, components=XYZ, typical=0.1),
    _joint("mimic_ratio", "-", "Factor on the coordinate of the master joint.", RowKind.MIMIC),
    _joint("mimic_offset", _POSITION, "Offset: coordinate when the master joint is at zero.", RowKind.MIMIC),
    _pose("frame.placement", RowKind.FRAME, "Pose of a named frame in its body.", "sim.model.frame_placement"),
    _actuator("gear", "-", "Transmission ratio from joint to actuator."),
    _actuator("gain", _FORCE, "Force per unit of command."),
    _actuator(
        "bias",
        f"{_FORCE}; {_STIFFNESS}; {_DAMPING}",
        "Constant force, force per length and force per velocity.",
        components=("constant", "length", "velocity"),
    ),
    _actuator("command_lower", "command unit", "Lower command limit."),
    _actuator("command_upper", "command unit", "Upper command limit."),
    _actuator("force_lower", _FORCE, "Lower force limit."),
    _actuator("force_upper", _FORCE, "Upper force limit."),
    _pose("geometry.placement", RowKind.SHAPE, "Pose of a shape in its body.", "sim.model.geometry.placement"),
    _surface(
        "size",
        "m",
        "Size, as defined by the shape type.",
        components=("0", "1", "2"),
        typical=0.1,
        reason="it is a length",
    ),
    _surface("friction", "-", "Coulomb friction coefficient.", reason=ADDS_ENERGY),
    _surface(
        "restitution",
        "-",
        "Coefficient of restitution.",
        upper_limit=1.0,
        reason="a coefficient of restitution is between zero and one",
    ),
    _surface(
        "recovery_time", "s", "Time constant of the correction of penetration.", typical=0.01, reason="it is a time"
    ),
    _surface(
        "softness",
        "-",
        "Contact softness, relative to the apparent inverse mass.",
        reason="a negative softness makes the contact problem ill-posed",
    ),
    _surface(
        "stiffness",
        "N/m",
        "Secant stiffness of compliant contact (force per penetration) at 1 mm.",
        Sign.POSITIVE,
        reason="a surface without stiffness supports nothing",
        typical=1e4,
    ),
    _surface(
        "damping", "N·s/m", "Damping of compliant contact at a penetration of 1 mm.", reason=ADDS_ENERGY, typical=100.0
    ),
    ParameterKind(
        "geometry.pair_friction",
        RowKind.SHAPE_PAIR,
        "-",
        "Coulomb friction coefficient of a pair of shapes.",
        "sim.model.geometry.pair_friction",
        sign=Sign.NONNEGATIVE,
        reason=ADDS_ENERGY,
    ),
    ParameterKind("gravity", RowKind.NONE, "m/s²", "Gravitational acceleration.", "sim.model.gravity", XYZ),
    ParameterKind(
        "gravity.magnitude",
        RowKind.NONE,
        "m/s²",
        "Magnitude of gravity; its direction is fixed.",
        "sim.model.gravity",
        sign=Sign.NONNEGATIVE,
        reason="its direction is fixed",
        form=ParameterForm.MAGNITUDE,
    ),
    ParameterKind(
        "dt",
        RowKind.NONE,
        "s",
        "Time step.",
        "sim.dt",
        sign=Sign.POSITIVE,
        reason="it is a time",
        typical=0.001,
    ),
    ParameterKind(
        "sensor.gain",
        RowKind.CHANNEL,
        "reading per unit",
        "Sensor gain: reading per unit of the quantity.",
        "sensors.gain",
    ),
    ParameterKind(
        "sensor.bias", RowKind.CHANNEL, "reading", "Sensor bias: reading where the quantity is zero.", "sensors.bias"
    ),
    ParameterKind(
        "sensor.delay",
        RowKind.CHANNEL,
        "s",
        "Latency of the reading.",
        "sensors.delay",
        sign=Sign.NONNEGATIVE,
        reason="a reading cannot precede the motion",
        typical=0.01,
    ),
)

BY_NAME = {kind.name: kind for kind in CATALOGUE}

INERTIAL = ParameterKind(
    "inertial",
    RowKind.BODY,
    "-",
    "Mass, centre of mass and inertia, always physically consistent (log-Cholesky parametrization).",
    form=ParameterForm.RELATIVE,
)
INERTIAL_MASS = ParameterKind(
    "inertial.mass",
    RowKind.BODY,
    "kg",
    "Mass; the inertia about the centre of mass scales with it.",
    sign=Sign.POSITIVE,
    reason="a body without mass has no inertia",
    form=ParameterForm.PROPORTIONAL_MASS,
    default_map="log",
)

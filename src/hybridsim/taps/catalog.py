"""The catalogue of quantities that a network can read or change, in the order in which a step computes them.

A line here and a line `x = taps("group.quantity", x)` in the owner file are one and the same thing; a test checks that
neither exists without the other. A graft may read everything above its output, and its output's own earlier value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


class Axis(StrEnum):
    """What the rows of a quantity stand for."""

    NONE = "-"
    COORDINATE = "coordinate"
    DOF = "dof"
    BODY = "body"
    ACTUATOR = "actuator"
    CONTACT = "contact"


class Form(StrEnum):
    """How a quantity is stored in the engine, and what adding to it means."""

    VECTOR = "vector"
    """An array; adding adds."""
    CONFIGURATION = "configuration"
    """Coordinates `q`; adding moves along the degrees of freedom, so quaternions stay unit."""
    POSE = "pose"
    """Read as position and rotation vector; adding moves the position and turns the body about its own axes."""
    INERTIA = "inertia"
    """Read as mass, first moment and inertia about the body's origin; adding adds."""
    INPUT = "input"
    """Can be read but not changed."""


_XYZ = ("x", "y", "z")
_TANGENTS = ("t1", "t2")


def _vectors(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}.{axis}" for name in names for axis in _XYZ)


@dataclass(frozen=True)
class Quantity:
    """One entry of the catalogue."""

    name: str
    axis: Axis
    unit: str
    text: str
    """One sentence for the table of `hybridsim taps`."""
    owner: str
    """File whose line publishes the quantity."""
    components: tuple[str, ...] = ()
    """Names of the numbers in one row; none for a single number."""
    form: Form = Form.VECTOR
    columns: Axis = Axis.NONE
    """What the numbers in one row stand for, where the model has their names."""

    def of(self, names: Mapping[Axis, tuple[str, ...]]) -> "Quantity":
        """The quantity of a model with these names along its axes."""
        return self if self.columns is Axis.NONE else replace(self, components=names[self.columns])

    @property
    def write_axis(self) -> Axis:
        """What the rows of a change to the quantity stand for: a change of `q` has one per degree of freedom."""
        return Axis.DOF if self.form is Form.CONFIGURATION else self.axis


CATALOG: tuple[Quantity, ...] = (
    Quantity(
        "step.time",
        Axis.NONE,
        "s",
        "Time of the evaluation (RK4 makes four per step).",
        "sim/forward.py",
        form=Form.INPUT,
    ),
    Quantity("joint.q", Axis.COORDINATE, "rad, m", "Joint coordinates.", "sim/forward.py", form=Form.CONFIGURATION),
    Quantity("joint.qd", Axis.DOF, "rad/s, m/s", "Joint velocities.", "sim/forward.py"),
    Quantity(
        "body.inertia",
        Axis.BODY,
        "kg, kg·m, kg·m²",
        "Mass, first moment and inertia about the body frame's origin.",
        "sim/forward.py",
        ("mass", *_vectors("h"), "I.xx", "I.yy", "I.zz", "I.xy", "I.xz", "I.yz"),
        Form.INERTIA,
    ),
    Quantity(
        "body.pose",
        Axis.BODY,
        "m, rad",
        "Position and rotation vector of the body in the world, as contact and external wrenches see it.",
        "sim/forward.py",
        _vectors("p", "r"),
        Form.POSE,
    ),
    Quantity(
        "body.twist",
        Axis.BODY,
        "rad/s, m/s",
        "Velocity of the body in the world, in its own frame; no motion depends on its linear part but through forces.",
        "sim/forward.py",
        _vectors("omega", "v"),
    ),
    Quantity("contact.gap", Axis.CONTACT, "m", "Distance, negative for a penetration.", "contact/contact_state.py"),
    Quantity(
        "contact.point",
        Axis.CONTACT,
        "m",
        "Point in the world where the bodies touch, or are nearest.",
        "contact/contact_state.py",
        _XYZ,
    ),
    Quantity(
        "contact.normal",
        Axis.CONTACT,
        "-",
        "Unit vector in the world from the second body to the first.",
        "contact/contact_state.py",
        _XYZ,
    ),
    Quantity(
        "contact.gap_velocity", Axis.CONTACT, "m/s", "Velocity at which the bodies part.", "contact/contact_state.py"
    ),
    Quantity(
        "contact.slip_velocity",
        Axis.CONTACT,
        "m/s",
        "Velocity of the first body along the second, along both tangents.",
        "contact/contact_state.py",
        _TANGENTS,
    ),
    Quantity("joint.passive", Axis.DOF, "N·m, N", "Torque of springs, friction and limit stops.", "sim/forward.py"),
    Quantity("actuator.command", Axis.ACTUATOR, "as the actuator", "Commands as they arrive.", "sim/forward.py"),
    Quantity("joint.actuation", Axis.DOF, "N·m, N", "Torque of the actuators.", "sim/forward.py"),
    Quantity("joint.tau", Axis.DOF, "N·m, N", "Total joint torque.", "sim/forward.py"),
    Quantity(
        "body.external_force",
        Axis.BODY,
        "N·m, N",
        "Wrench from outside on the body at its origin, in its own frame.",
        "sim/forward.py",
        _vectors("torque", "force"),
    ),
    Quantity(
        "body.bias_force",
        Axis.BODY,
        "N·m, N",
        "Force that keeps the body turning about its origin: ω × I ω, ω × (ω × h).",
        "sim/forward.py",
        _vectors("torque", "force"),
    ),
    Quantity(
        "joint.mass_matrix",
        Axis.DOF,
        "kg·m², kg·m, kg",
        "Joint-space inertia: torque of each joint by the acceleration of each.",
        "sim/forward.py",
        form=Form.INPUT,
        columns=Axis.DOF,
    ),
    Quantity(
        "contact.normal_force", Axis.CONTACT, "N", "Force that pushes the bodies apart.", "contact/tapped_forces.py"
    ),
    Quantity(
        "contact.friction_force",
        Axis.CONTACT,
        "N",
        "Friction on the first body, along both tangents.",
        "contact/tapped_forces.py",
        _TANGENTS,
    ),
    Quantity(
        "contact.impulse",
        Axis.CONTACT,
        "N·s",
        "What acts on the first body in a step, along the normal and both tangents.",
        "contact/tapped_forces.py",
        ("n", *_TANGENTS),
    ),
    Quantity("joint.qdd", Axis.DOF, "rad/s², m/s²", "Joint accelerations.", "sim/forward.py"),
    Quantity("step.qd_next", Axis.DOF, "rad/s, m/s", "Joint velocities after the step.", "sim/integrate.py"),
    Quantity(
        "step.q_next",
        Axis.COORDINATE,
        "rad, m",
        "Joint coordinates after the step.",
        "sim/integrate.py",
        form=Form.CONFIGURATION,
    ),
)

USER_INPUT = "input"
"""Group of the inputs that a user adds: `input.wind` is the entry `wind` of the step's user inputs."""

BY_NAME = {quantity.name: quantity for quantity in CATALOG}
ORDER = {quantity.name: place for place, quantity in enumerate(CATALOG)}

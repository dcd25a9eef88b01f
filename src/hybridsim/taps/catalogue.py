"""The catalogue of quantities that a network can read or change, in the order in which a step computes them.

Every entry corresponds to one line `x = taps("group.quantity", x)` in its owner file; a test checks that neither exists
without the other. A graft may read all quantities above its output, and the value of its output before the graft.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


class Axis(StrEnum):
    """Elements of the model that the rows of a quantity belong to."""

    NONE = "-"
    COORDINATE = "coordinate"
    DOF = "dof"
    BODY = "body"
    ACTUATOR = "actuator"
    CONTACT = "contact"


class Form(StrEnum):
    """Representation of a quantity in the engine, which determines how a graft adds to it."""

    VECTOR = "vector"
    """Array; added componentwise."""
    CONFIGURATION = "configuration"
    """Coordinates `q`; addition is a retraction along the degrees of freedom, so that quaternions remain normalized."""
    POSE = "pose"
    """Read as position and rotation vector; addition translates the body and rotates it about its own axes."""
    INERTIA = "inertia"
    """Read as mass, first moment and inertia about the body's origin; added componentwise."""
    READ_ONLY = "read-only"
    """Cannot be an output of a graft."""


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
    description: str
    """One sentence for the table of `hybridsim taps`."""
    owner: str
    """File that publishes the quantity."""
    components: tuple[str, ...] = ()
    """Names of the components of one row; empty for a scalar."""
    form: Form = Form.VECTOR
    component_axis: Axis = Axis.NONE
    """Axis of the components, if the model names them."""

    def with_names(self, names: Mapping[Axis, tuple[str, ...]]) -> "Quantity":
        """The quantity with components named after a model."""
        return self if self.component_axis is Axis.NONE else replace(self, components=names[self.component_axis])

    @property
    def write_axis(self) -> Axis:
        """Axis of a change to the quantity: a change of `q` has one row per degree of freedom."""
        return Axis.DOF if self.form is Form.CONFIGURATION else self.axis


CATALOGUE: tuple[Quantity, ...] = (
    Quantity(
        "step.time",
        Axis.NONE,
        "s",
        "Time at which the dynamics are evaluated (four evaluations per step with RK4).",
        "sim/forward.py",
        form=Form.READ_ONLY,
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
        "Position and rotation vector of the body in the world, as used by contact and external wrenches.",
        "sim/forward.py",
        _vectors("p", "r"),
        Form.POSE,
    ),
    Quantity(
        "body.twist",
        Axis.BODY,
        "rad/s, m/s",
        "Velocity of the body in the world, in the body frame; its linear part affects the motion only through forces.",
        "sim/forward.py",
        _vectors("omega", "v"),
    ),
    Quantity("contact.gap", Axis.CONTACT, "m", "Signed distance, negative in penetration.", "contact/contact_state.py"),
    Quantity(
        "contact.point",
        Axis.CONTACT,
        "m",
        "Contact point, or point of closest approach, in the world.",
        "contact/contact_state.py",
        _XYZ,
    ),
    Quantity(
        "contact.normal",
        Axis.CONTACT,
        "-",
        "Contact normal: unit vector in the world from the second body to the first.",
        "contact/contact_state.py",
        _XYZ,
    ),
    Quantity(
        "contact.gap_velocity",
        Axis.CONTACT,
        "m/s",
        "Rate of change of the gap, positive in separation.",
        "contact/contact_state.py",
    ),
    Quantity(
        "contact.slip_velocity",
        Axis.CONTACT,
        "m/s",
        "Tangential velocity of the first body relative to the second, along both tangents.",
        "contact/contact_state.py",
        _TANGENTS,
    ),
    Quantity(
        "joint.passive",
        Axis.DOF,
        "N·m, N",
        "Torque of springs and dampers and, except with impulse contact, of dry friction and limit stops.",
        "sim/forward.py",
    ),
    Quantity("actuator.command", Axis.ACTUATOR, "unit of the actuator", "Commands to the actuators.", "sim/forward.py"),
    Quantity("joint.actuation", Axis.DOF, "N·m, N", "Torque of the actuators.", "sim/forward.py"),
    Quantity("joint.tau", Axis.DOF, "N·m, N", "Total joint torque.", "sim/forward.py"),
    Quantity(
        "body.external_wrench",
        Axis.BODY,
        "N·m, N",
        "External wrench on the body at its origin, in the body frame.",
        "sim/forward.py",
        _vectors("torque", "force"),
    ),
    Quantity(
        "body.bias_wrench",
        Axis.BODY,
        "N·m, N",
        "Bias wrench at zero acceleration of the body's origin: ω × I ω, ω × (ω × h).",
        "sim/forward.py",
        _vectors("torque", "force"),
    ),
    Quantity(
        "joint.mass_matrix",
        Axis.DOF,
        "kg·m², kg·m, kg",
        "Mass matrix: torque of each joint per acceleration of each joint.",
        "sim/forward.py",
        form=Form.READ_ONLY,
        component_axis=Axis.DOF,
    ),
    Quantity(
        "contact.normal_force", Axis.CONTACT, "N", "Normal force, positive in repulsion.", "contact/tapped_forces.py"
    ),
    Quantity(
        "contact.friction_force",
        Axis.CONTACT,
        "N",
        "Friction force on the first body, along both tangents.",
        "contact/tapped_forces.py",
        _TANGENTS,
    ),
    Quantity(
        "contact.impulse",
        Axis.CONTACT,
        "N·s",
        "Impulse on the first body during a step, along the normal and both tangents.",
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
"""Group of the user inputs: `input.wind` is the entry `wind` of the step's user inputs."""

BY_NAME = {quantity.name: quantity for quantity in CATALOGUE}
ORDER = {quantity.name: index for index, quantity in enumerate(CATALOGUE)}

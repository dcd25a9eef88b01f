"""The table `[graft.network]`: what kind of network is grafted, and how large it is; `networks.py` makes it.

`reads` says in words what a network of a kind reads and returns.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from hybridsim.project.schema.section import NotNegative, Positive, Section, Seed, conflict

Triple = tuple[float, float, float]


class Layers(Section):
    """Of kinds with layers."""

    hidden: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = (8, 8)
    """Units of the hidden layers."""
    activation: Literal["identity", "tanh", "sin", "relu", "softplus", "elu", "sigmoid", "softsign"] = "tanh"
    """Of the hidden layers."""
    seed: Seed | None = None
    """Of the first weights; by default from the seed of the run."""


class ScaledLayers(Layers):
    """Of kinds whose inputs may have any size."""

    input_shift: float | tuple[float, ...] = 0.0
    """Subtracted from the inputs, in their units; one number or one each."""
    input_scale: Positive | tuple[Positive, ...] | Literal["data"] = 1.0
    """The inputs are divided by it; `"data"`: shift and scale are mean and standard deviation in the recordings."""

    @model_validator(mode="after")
    def _is_shifted_once(self):
        if self.input_scale == "data" and "input_shift" in self.model_fields_set:
            raise conflict("input_shift", 'is taken from the data, too, by input_scale = "data"', "leave one out")
        return self


class MLPSection(ScaledLayers):
    """A multilayer perceptron: any function, and no promise."""

    reads: ClassVar[str] = "reads and returns any numbers"
    kind: Literal["mlp"] = "mlp"
    output_scale: Positive | tuple[Positive, ...] | Literal["data"] = 1.0
    """The outputs are multiplied by it; `"data"`: by the usual size of what they change in the recordings."""
    input_bias: bool = False
    """Is there a free number that is added to every input, as the original system has it?"""


class DissipativeSection(ScaledLayers):
    """Torques −D v that never add energy."""

    reads: ClassVar[str] = "reads what D depends on, then as many velocities as it returns torques"
    kind: Literal["dissipative"]
    damping_scale: Positive = 1.0
    """Damping of usual size."""


class ConservativeSection(ScaledLayers):
    """Torques −∂V/∂q that give back what they take."""

    reads: ClassVar[str] = "reads as many coordinates as it returns torques"
    kind: Literal["conservative"]
    potential_scale: Positive = 1.0
    """Potential of usual size [J]."""


class PortHamiltonianSection(ScaledLayers):
    """Torques (J − D) v − ∂V/∂q + G u."""

    reads: ClassVar[str] = (
        "reads as many coordinates and velocities as it returns torques, then what comes through its port"
    )
    kind: Literal["port_hamiltonian"]
    damping_scale: Positive = 1.0
    """Damping of usual size."""
    potential_scale: Positive = 1.0
    """Potential of usual size [J]."""


class LagrangianSection(ScaledLayers):
    """Accelerations with inertia and a potential that the model lacks."""

    reads: ClassVar[str] = (
        "reads coordinates, velocities, accelerations and the mass matrix of as many joints as it has outputs"
    )
    kind: Literal["lagrangian"]
    inertia_scale: Positive = 1.0
    """Inertia of usual size [kg·m² or kg]."""
    potential_scale: Positive = 1.0
    """Potential of usual size [J]."""


class JointFrictionSection(ScaledLayers):
    """Friction of a joint, the same forwards and backwards."""

    reads: ClassVar[str] = (
        "reads what friction depends on, then the velocity, and returns one torque (use per = 'element')"
    )
    kind: Literal["joint_friction"]
    width: Positive = 0.1
    """Velocity at which friction has 0.7 of its strength [rad/s or m/s]."""
    speed_scale: Positive = 1.0
    """Velocity of usual size."""
    friction_scale: Positive = 1.0
    """Friction of usual size [N·m or N]."""


class ConeFrictionSection(ScaledLayers):
    """Friction of a contact within Coulomb's cone."""

    reads: ClassVar[str] = (
        "reads the normal force, two slip velocities and what else it depends on, and returns two forces"
    )
    kind: Literal["cone_friction"]
    friction: Positive = 1.0
    """Coefficient of the cone."""
    width: Positive = 0.01
    """Slip at which friction has 0.7 of its strength [m/s]."""
    speed_scale: Positive = 1.0
    """Slip of usual size [m/s]."""


class InternalForceSection(Layers):
    """A force between two bodies that conserves momentum."""

    reads: ClassVar[str] = "reads poses and twists of two bodies, 24 numbers, and returns the wrench on each, 12"
    kind: Literal["internal_force"]
    first_point: Triple = (0.0, 0.0, 0.0)
    second_point: Triple = (0.0, 0.0, 0.0)
    """Points of the bodies between which it acts, in their frames [m]."""
    force_scale: Positive = 1.0
    """Force of usual size [N]."""
    distance_scale: Positive = 1.0
    """Distance of usual size [m]."""
    damping_scale: NotNegative = 0.0
    """Damping of usual size [N·s/m]; zero leaves it out."""


class RodDragSection(Section):
    """Drag of a rod, which is a law and no network."""

    reads: ClassVar[str] = "reads the twist of a body, 6 numbers, and returns a wrench, 6"
    kind: Literal["rod_drag"]
    start: Triple
    end: Triple
    """Ends of the rod in the body's frame [m]."""
    quadratic: NotNegative = 0.0
    """Force per length and squared speed [N·s²/m³]."""
    linear: NotNegative = 0.0
    """Force per length and speed [N·s/m²]."""


def _by_kind(value: Any) -> Any:
    return {"kind": "mlp", **value} if isinstance(value, dict) else value


Kind = (
    MLPSection
    | DissipativeSection
    | ConservativeSection
    | PortHamiltonianSection
    | LagrangianSection
    | JointFrictionSection
    | ConeFrictionSection
    | InternalForceSection
    | RodDragSection
)
Network = Annotated[Annotated[Kind, Field(discriminator="kind")], BeforeValidator(_by_kind)]
"""One of the kinds; a multilayer perceptron where none is told."""

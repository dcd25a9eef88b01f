"""Table `[graft.network]`: kind and size of a grafted network; `build/networks.py` builds it.

`signature` describes the inputs and outputs of a kind, for messages.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from hybridsim.project.schema.strict_table import Nonnegative, Positive, Seed, StrictTable, key_error

Triple = tuple[float, float, float]


class LayersTable(StrictTable):
    """Keys of kinds with hidden layers."""

    hidden: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = (8, 8)
    """Units of the hidden layers."""
    activation: Literal["identity", "tanh", "sin", "relu", "softplus", "elu", "sigmoid", "softsign"] = "tanh"
    """Activation function of the hidden layers."""
    seed: Seed | None = None
    """Random seed of the initial weights; by default derived from that of `[run]`."""


class ScaledLayersTable(LayersTable):
    """Keys of kinds that normalize their inputs."""

    input_shift: float | tuple[float, ...] = 0.0
    """Offset subtracted from the inputs, in their units; a scalar or one value per input."""
    input_scale: Positive | tuple[Positive, ...] | Literal["data"] = 1.0
    """Divisor of the inputs; `"data"` takes shift and scale from mean and standard deviation of the recordings."""

    @model_validator(mode="after")
    def _check_input_shift(self):
        if self.input_scale == "data" and "input_shift" in self.model_fields_set:
            raise key_error("input_shift", 'conflicts with input_scale = "data", which sets it as well', "remove one")
        return self


class MLPTable(ScaledLayersTable):
    """A multilayer perceptron: an arbitrary function without guarantees."""

    signature: ClassVar[str] = "reads and returns any number of values"
    kind: Literal["mlp"] = "mlp"
    output_scale: Positive | tuple[Positive, ...] | Literal["data"] = 1.0
    """Factor of the outputs; `"data"` takes it from the typical magnitude of the modified quantities."""
    input_bias: bool = False
    """Whether a free bias is added to every input, as in the original NeuralSim."""


class DissipativeTable(ScaledLayersTable):
    """Torques −D v that never add energy."""

    signature: ClassVar[str] = "reads any number of context inputs, then as many velocities as it returns torques"
    kind: Literal["dissipative"]
    damping_scale: Positive = 1.0
    """Typical damping."""


class ConservativeTable(ScaledLayersTable):
    """Torques −∂V/∂q of a potential."""

    signature: ClassVar[str] = "reads as many coordinates as it returns torques"
    kind: Literal["conservative"]
    potential_scale: Positive = 1.0
    """Typical potential [J]."""


class PortHamiltonianTable(ScaledLayersTable):
    """Torques (J − D) v − ∂V/∂q + G u."""

    signature: ClassVar[str] = (
        "reads as many coordinates and velocities as it returns torques, then the inputs of its port"
    )
    kind: Literal["port_hamiltonian"]
    damping_scale: Positive = 1.0
    """Typical damping."""
    potential_scale: Positive = 1.0
    """Typical potential [J]."""


class LagrangianTable(ScaledLayersTable):
    """Accelerations with additional inertia and an additional potential."""

    signature: ClassVar[str] = (
        "reads coordinates, velocities, accelerations and the mass matrix of as many joints as it has outputs"
    )
    kind: Literal["lagrangian"]
    inertia_scale: Positive = 1.0
    """Typical inertia [kg·m² or kg]."""
    potential_scale: Positive = 1.0
    """Typical potential [J]."""


class JointFrictionTable(ScaledLayersTable):
    """Friction of a joint, symmetric in the direction of motion."""

    signature: ClassVar[str] = (
        "reads any number of context inputs, then the velocity, and returns one torque (use per = 'element')"
    )
    kind: Literal["joint_friction"]
    width: Positive = 0.1
    """Velocity at which friction reaches 0.7 of its magnitude [rad/s or m/s]."""
    speed_scale: Positive = 1.0
    """Typical velocity [rad/s or m/s]."""
    friction_scale: Positive = 1.0
    """Typical friction [N·m or N]."""


class ConeFrictionTable(ScaledLayersTable):
    """Friction of a contact within Coulomb's cone."""

    signature: ClassVar[str] = (
        "reads the normal force, two slip velocities, then any number of context inputs, and returns two forces"
    )
    kind: Literal["cone_friction"]
    friction: Positive = 1.0
    """Friction coefficient of the cone."""
    width: Positive = 0.01
    """Slip velocity at which friction reaches 0.7 of its magnitude [m/s]."""
    speed_scale: Positive = 1.0
    """Typical slip velocity [m/s]."""


class InternalForceTable(LayersTable):
    """A force between two bodies that conserves momentum."""

    signature: ClassVar[str] = (
        "reads poses and twists of two bodies (24 values) and returns the wrench on each (12 values)"
    )
    kind: Literal["internal_force"]
    first_point: Triple = (0.0, 0.0, 0.0)
    second_point: Triple = (0.0, 0.0, 0.0)
    """Points of application on the bodies, in their frames [m]."""
    force_scale: Positive = 1.0
    """Typical force [N]."""
    distance_scale: Positive = 1.0
    """Typical distance [m]."""
    damping_scale: Nonnegative = 0.0
    """Typical damping [N·s/m]; zero disables damping."""


class RodDragTable(StrictTable):
    """Drag of a rod: a parametric law without a network."""

    signature: ClassVar[str] = "reads the twist of a body (6 values) and returns a wrench (6 values)"
    kind: Literal["rod_drag"]
    start: Triple
    end: Triple
    """Ends of the rod in the body frame [m]."""
    quadratic: Nonnegative = 0.0
    """Force per length and squared speed [N·s²/m³]."""
    linear: Nonnegative = 0.0
    """Force per length and speed [N·s/m²]."""


def _expand_kind(value: Any) -> Any:
    return {"kind": "mlp", **value} if isinstance(value, dict) else value


NetworkTable = Annotated[
    Annotated[
        MLPTable
        | DissipativeTable
        | ConservativeTable
        | PortHamiltonianTable
        | LagrangianTable
        | JointFrictionTable
        | ConeFrictionTable
        | InternalForceTable
        | RodDragTable,
        Field(discriminator="kind"),
    ],
    BeforeValidator(_expand_kind),
]
"""One of the kinds; by default an MLP."""

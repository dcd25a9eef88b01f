"""Passive friction networks: for joints, and for contacts within Coulomb's friction cone.

Graft("joint.tau", ["joint.q", "joint.qd"], JointFriction(1), per="element")
Graft("contact.friction_force", ["contact.normal_force", "contact.slip_velocity"], ConeFriction(friction=0.6),
      mode="replace", per="element")
"""

from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hybridsim.core.errors import TapError
from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.networks.frozen_fields import FROZEN, as_scale
from hybridsim.networks.mlp import MLP, Activation, Units
from hybridsim.networks.passive import SQUAREPLUS_ZERO, squareplus
from hybridsim.taps.passivity import GraftWiring


class JointFriction(eqx.Module):
    """Joint friction torque that opposes the velocity v, of equal magnitude in both directions.

    Reads a context, then v. The torque is −v/√(v² + w²) · F(context, v²) with F > 0: odd in v and passive.
    """

    net: MLP
    """Maps the context and the squared velocity to F."""
    width: Float[AnyArray, ""] = eqx.field(metadata=FROZEN)
    """Velocity w at which friction reaches 0.7 of its magnitude [rad/s or m/s]; frozen, because it determines the
    stiffness of a sticking joint and thus the admissible time step."""
    speed_scale: Float[AnyArray, ""] = eqx.field(metadata=FROZEN)
    """Typical velocity."""
    friction_scale: Float[AnyArray, ""] = eqx.field(metadata=FROZEN)
    """Typical friction [N·m or N]."""
    wiring: ClassVar[str] = (
        "reads any number of context inputs, then the velocity, and returns one torque (use per = 'element')"
    )

    def __init__(
        self,
        context_size: int = 0,
        *,
        hidden: Sequence[Units] = (8, 8),
        activation: Activation = "tanh",
        seed: int = 0,
        input_shift: ArrayLike = 0.0,
        input_scale: ArrayLike = 1.0,
        width: float = 0.1,
        speed_scale: float = 1.0,
        friction_scale: float = 1.0,
    ):
        """Initialize the network.

        Args:
            context_size: number of inputs other than the velocity; they come first.
            hidden: units of the hidden layers.
            activation: activation of the hidden layers.
            seed: seed of the initial weights.
            input_shift: subtracted from the context, in its units.
            input_scale: divisor of the context.
            width: velocity at which friction reaches 0.7 of its magnitude.
            speed_scale: typical velocity.
            friction_scale: typical friction; the initial friction is a thousandth of it.
        """
        shift, divisor = (
            np.broadcast_to(np.asarray(x, dtype=float), (context_size,)) for x in (input_shift, input_scale)
        )
        self.net = MLP(
            context_size + 1,
            1,
            hidden=hidden,
            activation=activation,
            seed=seed,
            input_shift=np.append(shift, 0.0),
            input_scale=np.append(divisor, 1.0),
        )
        self.width, self.speed_scale = as_scale("width", width), as_scale("speed_scale", speed_scale)
        self.friction_scale = as_scale("friction_scale", friction_scale)

    @classmethod
    def sizes(cls, inputs: int, outputs: int) -> dict[str, int] | None:
        """Size arguments for these numbers of inputs and outputs; None if they are not supported."""
        return {"context_size": inputs - 1} if outputs == 1 and inputs else None

    def __call__(self, x: Float[AnyArray, " _"]) -> Float[Array, " 1"]:
        """Friction torque."""
        context, v = x[:-1], x[-1:]
        # the squared speed is mapped to [0, 1), so that the input stays bounded beyond the speeds in the training data
        square = jnp.square(v / self.speed_scale)
        magnitude = self.net(jnp.concatenate([context, square / (1.0 + square)]))
        return -self.friction_scale * squareplus(magnitude) * v / jnp.sqrt(jnp.square(v) + jnp.square(self.width))

    def check_wiring(self, wiring: GraftWiring) -> None:
        """Raise unless the last input is the velocity of the output."""
        wiring.require_mode("add")
        wiring.require_velocities(wiring.inputs[-1:])

    def normalize_inputs(self, mean: Float[AnyArray, " _"], std: Float[AnyArray, " _"]) -> "JointFriction":
        """The network with inputs normalized by mean and standard deviation of context and velocity."""
        net = self.net.normalize_inputs(np.append(mean[:-1], 0.0), np.append(std[:-1], 1.0))
        return eqx.tree_at(lambda f: (f.net, f.speed_scale), self, (net, np.hypot(mean[-1], std[-1])))

    def ablate(self) -> "JointFriction":
        """The network with zero friction."""
        return eqx.tree_at(lambda f: f.net, self, self.net.ablate(SQUAREPLUS_ZERO))


class ConeFriction(eqx.Module):
    """Contact friction that opposes slip, within the friction cone: at most μ times the normal force.

    Reads the normal force, both components of the slip velocity, then a context. The force is
    −μ N σ(context, speed) s/√(|s|² + w²) with 0 < σ < 1; it replaces the friction force of the engine.
    """

    net: MLP
    """Maps the squared speed and the context to σ, the fraction of the cone that is used."""
    friction_coefficient: Float[AnyArray, ""] = eqx.field(metadata=FROZEN)
    """Friction coefficient μ, the tangent of the cone's half-angle; frozen, as only its product with σ matters."""
    width: Float[AnyArray, ""] = eqx.field(metadata=FROZEN)
    """Slip velocity w at which friction reaches 0.7 of its magnitude [m/s]; frozen."""
    speed_scale: Float[AnyArray, ""] = eqx.field(metadata=FROZEN)
    """Typical slip velocity [m/s]."""
    wiring: ClassVar[str] = (
        "reads the normal force, two slip velocities, then any number of context inputs, and returns two forces"
    )

    def __init__(
        self,
        context_size: int = 0,
        *,
        friction: float = 1.0,
        hidden: Sequence[Units] = (8, 8),
        activation: Activation = "tanh",
        seed: int = 0,
        input_shift: ArrayLike = 0.0,
        input_scale: ArrayLike = 1.0,
        width: float = 0.01,
        speed_scale: float = 1.0,
    ):
        """Initialize the network at σ = 1/2.

        Args:
            context_size: number of inputs other than normal force and slip; they come last.
            friction: friction coefficient of the cone.
            hidden: units of the hidden layers.
            activation: activation of the hidden layers.
            seed: seed of the initial weights.
            input_shift: subtracted from the context, in its units.
            input_scale: divisor of the context.
            width: slip velocity at which friction reaches 0.7 of its magnitude [m/s].
            speed_scale: typical slip velocity [m/s].
        """
        shift, divisor = (
            np.broadcast_to(np.asarray(x, dtype=float), (context_size,)) for x in (input_shift, input_scale)
        )
        self.net = MLP(
            context_size + 1,
            1,
            hidden=hidden,
            activation=activation,
            seed=seed,
            input_shift=np.insert(shift, 0, 0.0),
            input_scale=np.insert(divisor, 0, 1.0),
        )
        self.width, self.speed_scale = as_scale("width", width), as_scale("speed_scale", speed_scale)
        self.friction_coefficient = as_scale("friction", friction)

    @classmethod
    def sizes(cls, inputs: int, outputs: int) -> dict[str, int] | None:
        """Size arguments for these numbers of inputs and outputs; None if they are not supported."""
        return {"context_size": inputs - 3} if outputs == 2 and inputs >= 3 else None

    def __call__(self, x: Float[AnyArray, " _"]) -> Float[Array, " 2"]:
        """Components of the friction force along both tangents [N]."""
        normal, slip, context = jax.nn.relu(x[0]), x[1:3], x[3:]
        square = slip @ slip
        scaled = square / jnp.square(self.speed_scale)
        fraction = jax.nn.sigmoid(self.net(jnp.concatenate([(scaled / (1.0 + scaled))[None], context])))[0]
        return (
            -jnp.abs(self.friction_coefficient) * normal * fraction * slip / jnp.sqrt(square + jnp.square(self.width))
        )

    def check_wiring(self, wiring: GraftWiring) -> None:
        """Raise unless the inputs are normal force and slip of the contact whose friction is replaced."""
        wiring.require_mode("replace")
        wiring.require_velocities(wiring.inputs[1:3])
        normal = wiring.inputs[0]
        if (normal.quantity, normal.row, normal.lag) != ("contact.normal_force", wiring.outputs[0].row, 0):
            raise TapError(f"{wiring.kind} must read contact.normal_force first")

    def normalize_inputs(self, mean: Float[AnyArray, " _"], std: Float[AnyArray, " _"]) -> "ConeFriction":
        """The network with inputs normalized by statistics of slip and context, not of the normal force."""
        net = self.net.normalize_inputs(np.insert(mean[3:], 0, 0.0), np.insert(std[3:], 0, 1.0))
        speed = np.sqrt(np.square([mean[1:3], std[1:3]]).sum())
        return eqx.tree_at(lambda f: (f.net, f.speed_scale), self, (net, speed))

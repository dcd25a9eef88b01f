"""Friction by networks that cannot push: of joints, and of contacts within Coulomb's cone.

Graft("joint.tau", ["joint.q", "joint.qd"], JointFriction(1), per="element")
Graft("contact.friction_force", ["contact.normal_force", "contact.slip_velocity"], ConeFriction(friction=0.6),
      mode="replace", per="element")
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hybridsim.core.errors import TapError
from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.networks.frozen_fields import GIVEN, usual_size
from hybridsim.networks.mlp import MLP, Activation
from hybridsim.networks.passive import NONE_AT_ALL, not_negative
from hybridsim.taps.passivity import Wired


class JointFriction(eqx.Module):
    """Torque of a joint against its velocity v, of the same size forwards and backwards.

    Reads a context, then v. It is −v/√(v² + w²) · F(context, v²) with F > 0: odd in v, and never adds energy.
    """

    net: MLP
    """From the context and the squared velocity to F."""
    width_scale: Float[AnyArray, ""] = eqx.field(metadata=GIVEN)
    """Velocity w at which friction has 0.7 of its strength [rad/s or m/s]; not learned, because it decides how stiff a
    motion is where the joint sticks, and with that which time step is needed."""
    speed_scale: Float[AnyArray, ""] = eqx.field(metadata=GIVEN)
    """Velocity of usual size."""
    friction_scale: Float[AnyArray, ""] = eqx.field(metadata=GIVEN)
    """Friction of usual size [N·m or N]."""

    def __init__(
        self,
        context: int = 0,
        *,
        hidden: Sequence[int] = (16, 16),
        activation: Activation = "tanh",
        seed: int = 0,
        input_shift: ArrayLike = 0.0,
        input_scale: ArrayLike = 1.0,
        width: float = 0.1,
        speed_scale: float = 1.0,
        friction_scale: float = 1.0,
    ):
        """Make a fresh one.

        Args:
            context: numbers beside the velocity that friction depends on; they come first.
            hidden: units of the hidden layers.
            activation: of these.
            seed: of the first weights.
            input_shift: subtracted from the context, in its units.
            input_scale: the context is divided by it.
            width: velocity at which friction has 0.7 of its strength.
            speed_scale: velocity of usual size.
            friction_scale: friction of usual size; before a fit there is a thousandth of it.
        """
        shift, divisor = (np.broadcast_to(np.asarray(x, dtype=float), (context,)) for x in (input_shift, input_scale))
        self.net = MLP(
            context + 1,
            1,
            hidden=hidden,
            activation=activation,
            seed=seed,
            input_shift=np.append(shift, 0.0),
            input_scale=np.append(divisor, 1.0),
        )
        self.width_scale, self.speed_scale = usual_size("width", width), usual_size("speed_scale", speed_scale)
        self.friction_scale = usual_size("friction_scale", friction_scale)

    def __call__(self, x: Float[AnyArray, " _"]) -> Float[Array, " 1"]:
        """The torque."""
        context, v = x[:-1], x[-1:]
        # a speed from zero to about one, however fast: the square itself would leave what a network knows
        square = jnp.square(v / self.speed_scale)
        strength = self.net(jnp.concatenate([context, square / (1.0 + square)]))
        return (
            -self.friction_scale * not_negative(strength) * v / jnp.sqrt(jnp.square(v) + jnp.square(self.width_scale))
        )

    def check_wiring(self, wired: Wired) -> None:
        """Raise unless the last input is the velocity of the output."""
        wired.needs_mode("add")
        wired.needs_velocities(wired.inputs[-1:])

    def normalised(self, mean: Float[AnyArray, " _"], deviation: Float[AnyArray, " _"]) -> "JointFriction":
        """The same for a context of this mean and standard deviation, then a velocity."""
        net = self.net.normalised(np.append(mean[:-1], 0.0), np.append(deviation[:-1], 1.0))
        return eqx.tree_at(lambda f: (f.net, f.speed_scale), self, (net, np.hypot(mean[-1], deviation[-1])))

    def silenced(self) -> "JointFriction":
        """One that does nothing at all."""
        return eqx.tree_at(lambda f: f.net, self, self.net.silenced(NONE_AT_ALL))


class ConeFriction(eqx.Module):
    """Friction of a contact against its slip, within Coulomb's cone: never more than μ times the normal force.

    Reads the normal force, both slip velocities, then a context. It is −μ N σ(context, speed) s/√(|s|² + w²) with
    0 < σ < 1, to replace the engine's own.
    """

    net: MLP
    """From the squared speed and the context to the share σ of the cone that is used."""
    cone_scale: Float[AnyArray, ""] = eqx.field(metadata=GIVEN)
    """Coefficient μ: half the angle of the cone as a slope; not learned, as only its product with σ shows."""
    width_scale: Float[AnyArray, ""] = eqx.field(metadata=GIVEN)
    """Slip w at which friction has 0.7 of its strength [m/s]; not learned, either."""
    speed_scale: Float[AnyArray, ""] = eqx.field(metadata=GIVEN)
    """Slip of usual size [m/s]."""

    def __init__(
        self,
        context: int = 0,
        *,
        friction: float = 1.0,
        hidden: Sequence[int] = (16, 16),
        activation: Activation = "tanh",
        seed: int = 0,
        input_shift: ArrayLike = 0.0,
        input_scale: ArrayLike = 1.0,
        width: float = 0.01,
        speed_scale: float = 1.0,
    ):
        """Make a fresh one, which uses half of the cone; arguments as for `JointFriction`, and the cone's μ."""
        shift, divisor = (np.broadcast_to(np.asarray(x, dtype=float), (context,)) for x in (input_shift, input_scale))
        self.net = MLP(
            context + 1,
            1,
            hidden=hidden,
            activation=activation,
            seed=seed,
            input_shift=np.insert(shift, 0, 0.0),
            input_scale=np.insert(divisor, 0, 1.0),
        )
        self.width_scale, self.speed_scale = usual_size("width", width), usual_size("speed_scale", speed_scale)
        self.cone_scale = usual_size("friction", friction)

    def __call__(self, x: Float[AnyArray, " _"]) -> Float[Array, " 2"]:
        """Friction along both tangents [N]."""
        normal, slip, context = jax.nn.relu(x[0]), x[1:3], x[3:]
        square = slip @ slip
        reach = square / jnp.square(self.speed_scale)
        share = jax.nn.sigmoid(self.net(jnp.concatenate([(reach / (1.0 + reach))[None], context])))[0]
        return -jnp.abs(self.cone_scale) * normal * share * slip / jnp.sqrt(square + jnp.square(self.width_scale))

    def check_wiring(self, wired: Wired) -> None:
        """Raise unless the inputs are normal force and slip of the contact, in place of whose friction it is."""
        wired.needs_mode("replace")
        wired.needs_velocities(wired.inputs[1:3])
        normal = wired.inputs[0]
        if (normal.quantity, normal.row, normal.past) != ("contact.normal_force", wired.outputs[0].row, 0):
            raise TapError(f"{wired.kind} must read contact.normal_force first")

    def normalised(self, mean: Float[AnyArray, " _"], deviation: Float[AnyArray, " _"]) -> "ConeFriction":
        """The same for a normal force, two slip velocities and a context of this mean and standard deviation."""
        net = self.net.normalised(np.insert(mean[3:], 0, 0.0), np.insert(deviation[3:], 0, 1.0))
        speed = np.sqrt(np.square([mean[1:3], deviation[1:3]]).sum())
        return eqx.tree_at(lambda f: (f.net, f.speed_scale), self, (net, speed))

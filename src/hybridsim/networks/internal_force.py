"""Internal force between two bodies: equal and opposite, along the line between two points, conserving momentum.

    Graft("body.external_wrench[hand,cup]", ["body.pose[hand,cup]", "body.twist[hand,cup]"], InternalForce())

The two bodies must be listed in the same order everywhere. For any weights, total linear and angular momentum are
conserved and the force is passive: it consists of a potential force and nonnegative damping.
"""

from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hybridsim.core.errors import TapError
from hybridsim.core.numerics import cross, direction_and_length
from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.networks.frozen_fields import FROZEN, as_scale
from hybridsim.networks.mlp import MLP, Activation, Units
from hybridsim.networks.passive import SQUAREPLUS_ZERO, squareplus
from hybridsim.spatial.rotation import matrix_from_rotation_vector
from hybridsim.taps.passivity import GraftWiring


class InternalForce(eqx.Module):
    """Wrenches on two bodies, at their origins and in their frames, from their poses and twists.

    The force along the line is −∂V/∂d − c(d) ḋ with potential V and damping c ≥ 0 as functions of the distance d.
    """

    net: MLP
    """Maps the distance to the potential and to the damping before `squareplus`."""
    first_point: Float[AnyArray, " 3"] = eqx.field(metadata=FROZEN)
    second_point: Float[AnyArray, " 3"] = eqx.field(metadata=FROZEN)
    """Points of the bodies between which the force acts, in their frames [m]."""
    force_scale: Float[AnyArray, ""] = eqx.field(metadata=FROZEN)
    """Typical force [N]."""
    distance_scale: Float[AnyArray, ""] = eqx.field(metadata=FROZEN)
    """Typical distance [m]."""
    damping_scale: Float[AnyArray, ""] = eqx.field(metadata=FROZEN)
    """Typical damping [N·s/m]; if zero, the force depends on the distance only."""
    wiring: ClassVar[str] = (
        "reads poses and twists of two bodies (24 values) and returns the wrench on each (12 values)"
    )

    def __init__(
        self,
        first_point: ArrayLike = (0.0, 0.0, 0.0),
        second_point: ArrayLike = (0.0, 0.0, 0.0),
        *,
        hidden: Sequence[Units] = (8, 8),
        activation: Activation = "tanh",
        seed: int = 0,
        force_scale: float = 1.0,
        distance_scale: float = 1.0,
        damping_scale: float = 0.0,
    ):
        """Initialize the network with zero potential and, if `damping_scale` is positive, small damping.

        Args:
            first_point: point of the first body, in its frame [m].
            second_point: point of the second body, in its frame [m].
            hidden: units of the hidden layers.
            activation: activation of the hidden layers.
            seed: seed of the initial weights.
            force_scale: typical force [N].
            distance_scale: typical distance [m].
            damping_scale: typical damping [N·s/m]; zero disables damping.
        """
        self.net = MLP(1, 2, hidden=hidden, activation=activation, seed=seed)
        self.first_point, self.second_point = (np.array(p, dtype=float) for p in (first_point, second_point))
        self.force_scale = as_scale("force_scale", force_scale)
        self.distance_scale = as_scale("distance_scale", distance_scale)
        self.damping_scale = as_scale("damping_scale", damping_scale, allow_zero=True)

    @classmethod
    def sizes(cls, inputs: int, outputs: int) -> dict[str, int] | None:
        """Size arguments for these numbers of inputs and outputs; None if they are not supported."""
        return {} if (inputs, outputs) == (24, 12) else None

    def __call__(self, x: Float[AnyArray, " 24"]) -> Float[Array, " 12"]:
        """Wrenches on the first and the second body [N·m, N]."""
        poses, twists = x[:12].reshape(2, 6), x[12:].reshape(2, 6)
        points = jnp.stack([jnp.asarray(self.first_point), jnp.asarray(self.second_point)])
        R = jax.vmap(matrix_from_rotation_vector)(poses[:, 3:])
        offsets = jnp.einsum("kij,kj->ki", R, points)
        velocities = jnp.einsum("kij,kj->ki", R, twists[:, 3:] + jax.vmap(cross)(twists[:, :3], points))
        line = poses[0, :3] + offsets[0] - poses[1, :3] - offsets[1]
        direction, distance = direction_and_length(line, np.zeros(3))
        force_W = self.axial_force(distance, direction @ (velocities[0] - velocities[1])) * direction
        forces = jnp.einsum("kji,j->ki", R, force_W) * np.array([[1.0], [-1.0]])
        return jnp.concatenate([jax.vmap(cross)(points, forces), forces], axis=1).reshape(-1)

    def check_wiring(self, wiring: GraftWiring) -> None:
        """Raise unless the inputs are poses and twists of the bodies on which the force acts."""
        wiring.require_mode("add")
        wiring.require_velocities(wiring.inputs[12:])
        rows = [scalar.row for scalar in wiring.inputs[:12]]
        if {scalar.quantity for scalar in wiring.inputs[:12]} != {"body.pose"} or rows != [
            o.row for o in wiring.outputs
        ]:
            raise TapError(f"{wiring.kind} must read body.pose of both bodies first, then body.twist")

    def ablate(self) -> "InternalForce":
        """The network with zero force."""
        return eqx.tree_at(lambda f: f.net, self, self.net.ablate([0.0, SQUAREPLUS_ZERO]))

    def axial_force(self, distance: Float[AnyArray, ""], distance_rate: Float[AnyArray, ""]) -> Float[Array, ""]:
        """Force along the line, positive in repulsion, from the distance between the points and its rate [N]."""
        damping = squareplus(self.net(distance[None] / self.distance_scale)[1])
        return -jax.grad(self.potential)(distance) - self.damping_scale * damping * distance_rate

    def potential(self, distance: Float[AnyArray, ""]) -> Float[Array, ""]:
        """Potential energy of the force [J]."""
        return self.force_scale * self.distance_scale * self.net(distance[None] / self.distance_scale)[0]

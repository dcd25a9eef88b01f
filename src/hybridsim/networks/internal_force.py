"""A force between two bodies that conserves momentum: equal, opposite, and along the line between two points.

    Graft("body.external_force[hand,cup]", ["body.pose[hand,cup]", "body.twist[hand,cup]"], InternalForce())

The two bodies stand in the same order everywhere. Their total momentum and angular momentum stay as they are whatever
the weights, and no energy is added either, because the force has a potential and a damping that is not negative.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hybridsim.core.errors import TapError
from hybridsim.core.numerics import cross, unit
from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.networks.frozen_fields import GIVEN, usual_size
from hybridsim.networks.mlp import MLP, Activation
from hybridsim.networks.passive import NONE_AT_ALL, not_negative
from hybridsim.spatial.rotation import matrix_exp
from hybridsim.taps.passivity import Wired


class InternalForce(eqx.Module):
    """From poses and twists of two bodies to a wrench on each, at their origins and in their frames.

    The force along the line is −∂V/∂d − c(d) ḋ with a potential V and a damping c ≥ 0 of the distance d.
    """

    net: MLP
    """From the distance to the potential and to the damping, which is then made not negative."""
    first_point: Float[AnyArray, " 3"] = eqx.field(metadata=GIVEN)
    second_point: Float[AnyArray, " 3"] = eqx.field(metadata=GIVEN)
    """Points of the bodies between which the force acts, in their frames [m]."""
    force_scale: Float[AnyArray, ""] = eqx.field(metadata=GIVEN)
    """Force of usual size [N]."""
    distance_scale: Float[AnyArray, ""] = eqx.field(metadata=GIVEN)
    """Distance of usual size [m]."""
    damping_scale: Float[AnyArray, ""] = eqx.field(metadata=GIVEN)
    """Damping of usual size [N·s/m]; without any the force depends on the distance only."""

    def __init__(
        self,
        first_point: ArrayLike = (0.0, 0.0, 0.0),
        second_point: ArrayLike = (0.0, 0.0, 0.0),
        *,
        hidden: Sequence[int] = (16, 16),
        activation: Activation = "tanh",
        seed: int = 0,
        force_scale: float = 1.0,
        distance_scale: float = 1.0,
        damping_scale: float = 0.0,
    ):
        """Make a fresh one, without a force but for a little damping, if there is any.

        Args:
            first_point: of the first body, in its frame [m].
            second_point: of the second.
            hidden: units of the hidden layers.
            activation: of these.
            seed: of the first weights.
            force_scale: force of usual size [N].
            distance_scale: distance of usual size [m].
            damping_scale: damping of usual size [N·s/m]; zero leaves it out.
        """
        self.net = MLP(1, 2, hidden=hidden, activation=activation, seed=seed)
        self.first_point, self.second_point = (np.array(p, dtype=float) for p in (first_point, second_point))
        self.force_scale = usual_size("force_scale", force_scale)
        self.distance_scale = usual_size("distance_scale", distance_scale)
        self.damping_scale = usual_size("damping_scale", damping_scale, or_zero=True)

    def __call__(self, x: Float[AnyArray, " 24"]) -> Float[Array, " 12"]:
        """Wrenches on the first body and on the second [N·m, N]."""
        poses, twists = x[:12].reshape(2, 6), x[12:].reshape(2, 6)
        points = jnp.stack([jnp.asarray(self.first_point), jnp.asarray(self.second_point)])
        R = jax.vmap(matrix_exp)(poses[:, 3:])
        arms = jnp.einsum("kij,kj->ki", R, points)
        rates = jnp.einsum("kij,kj->ki", R, twists[:, 3:] + jax.vmap(cross)(twists[:, :3], points))
        line = poses[0, :3] + arms[0] - poses[1, :3] - arms[1]
        direction, length = unit(line, np.zeros(3))
        force_W = self.along(length, direction @ (rates[0] - rates[1])) * direction
        forces = jnp.einsum("kji,j->ki", R, force_W) * np.array([[1.0], [-1.0]])
        return jnp.concatenate([jax.vmap(cross)(points, forces), forces], axis=1).reshape(-1)

    def check_wiring(self, wired: Wired) -> None:
        """Raise unless poses and twists are those of the bodies on which the force acts."""
        wired.needs_mode("add")
        wired.needs_velocities(wired.inputs[12:])
        rows = [read.row for read in wired.inputs[:12]]
        if {read.quantity for read in wired.inputs[:12]} != {"body.pose"} or rows != [o.row for o in wired.outputs]:
            raise TapError(f"{wired.kind} must read body.pose of both bodies first, then body.twist")

    def silenced(self) -> "InternalForce":
        """One that does nothing at all."""
        return eqx.tree_at(lambda f: f.net, self, self.net.silenced([0.0, NONE_AT_ALL]))

    def along(self, length: Float[AnyArray, ""], rate: Float[AnyArray, ""]) -> Float[Array, ""]:
        """Force that drives the points apart, of their distance and its rate [N]."""
        damping = not_negative(self.net(length[None] / self.distance_scale)[1])
        return -jax.grad(self.potential)(length) - self.damping_scale * damping * rate

    def potential(self, length: Float[AnyArray, ""]) -> Float[Array, ""]:
        """Potential of the force [J]."""
        return self.force_scale * self.distance_scale * self.net(length[None] / self.distance_scale)[0]

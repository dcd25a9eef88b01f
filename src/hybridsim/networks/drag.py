"""Drag of a rod in still air or water, as a law to be grafted: no network, but used like one.

    Graft("body.external_force[arm]", "body.twist[arm]", RodDrag((0, 0, 0), (0, 0, -0.3), quadratic=0.02))

Every piece of the rod is held back across its axis, by linear + quadratic · speed, per length. A force along the rod is
left out, being far smaller. It never adds energy: each piece's force is against its own velocity, and a coefficient
that is negative counts as zero.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hybridsim.core.errors import TapError
from hybridsim.core.numerics import cross, safe_norm
from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.networks.frozen_fields import GIVEN
from hybridsim.taps.passivity import Wired

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(4)
"""Places along the rod, between −1 and 1: speeds are linear along it, so that four give the integral of v|v| to a
hundredth where the rod turns about a point within it, and exactly elsewhere."""


class RodDrag(eqx.Module):
    """From the twist of a body to the wrench of the drag of a rod that is fixed to it, both in the body's frame."""

    start_point: Float[AnyArray, " 3"] = eqx.field(metadata=GIVEN)
    end_point: Float[AnyArray, " 3"] = eqx.field(metadata=GIVEN)
    """Ends of the rod in the body's frame [m]; no part of what is learned."""
    linear: Float[AnyArray, ""]
    """Force per length and speed [N·s/m²]."""
    quadratic: Float[AnyArray, ""]
    """Force per length and squared speed [N·s²/m³]: half the density times the width times the drag coefficient."""

    def __init__(self, start: ArrayLike, end: ArrayLike, *, quadratic: float = 0.0, linear: float = 0.0):
        self.start_point, self.end_point = (np.array(x, dtype=float) for x in (start, end))
        if (
            self.start_point.shape != (3,)
            or self.end_point.shape != (3,)
            or not np.any(self.start_point != self.end_point)
        ):
            raise TapError(f"a rod has two different ends of three numbers each, not {start!r} and {end!r}")
        self.linear, self.quadratic = np.asarray(linear, dtype=float), np.asarray(quadratic, dtype=float)

    def __call__(self, twist: Float[AnyArray, " 6"]) -> Float[Array, " 6"]:
        """Torque about the body's origin and force [N·m, N]."""
        along = jnp.asarray(self.end_point) - self.start_point
        length = jnp.sqrt(along @ along)
        axis = along / length
        omega, v = twist[:3], twist[3:]
        linear, quadratic = jnp.maximum(self.linear, 0.0), jnp.maximum(self.quadratic, 0.0)

        def piece(x, weight):
            p = self.start_point + 0.5 * (1.0 + x) * along
            moving = v + cross(omega, p)
            across = moving - (moving @ axis) * axis
            force = -0.5 * length * weight * (linear + quadratic * safe_norm(across)) * across
            return jnp.concatenate([cross(p, force), force])

        return jax.vmap(piece)(POINTS, WEIGHTS).sum(axis=0)

    def check_wiring(self, wired: Wired) -> None:
        """Raise unless the twist is that of the body on which the drag acts."""
        wired.needs_mode("add")
        wired.needs_velocities(wired.inputs)

    def silenced(self) -> "RodDrag":
        """One without drag."""
        return eqx.tree_at(lambda d: (d.linear, d.quadratic), self, (np.zeros(()), np.zeros(())))

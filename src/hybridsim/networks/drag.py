"""Drag of a rod in still air or water: a parametric law that is grafted like a network.

    Graft("body.external_wrench[arm]", "body.twist[arm]", RodDrag((0, 0, 0), (0, 0, -0.3), quadratic=0.02))

Every element of the rod experiences a drag force normal to its axis, (linear + quadratic · speed) · speed per length;
the much smaller axial drag is neglected. The law is passive: the force on each element opposes its velocity, and
negative coefficients are treated as zero.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hybridsim.core.errors import TapError
from hybridsim.core.numerics import cross, safe_norm
from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.networks.frozen_fields import FROZEN
from hybridsim.taps.passivity import GraftWiring

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(4)
"""Gauss–Legendre quadrature along the rod, on [−1, 1]. The velocity is linear along the rod, so that four points give
the drag exactly if the normal velocities of all elements have the same direction, and within 5 % otherwise."""


class RodDrag(eqx.Module):
    """Drag wrench of a rod attached to a body, from the twist of the body; both in the body frame."""

    start_point: Float[AnyArray, " 3"] = eqx.field(metadata=FROZEN)
    end_point: Float[AnyArray, " 3"] = eqx.field(metadata=FROZEN)
    """Ends of the rod in the body frame [m]; frozen."""
    linear: Float[AnyArray, ""]
    """Force per length and speed [N·s/m²]."""
    quadratic: Float[AnyArray, ""]
    """Force per length and squared speed [N·s²/m³]: half the product of fluid density, width and drag coefficient."""
    wiring: ClassVar[str] = "reads the twist of a body (6 values) and returns a wrench (6 values)"

    def __init__(self, start: ArrayLike, end: ArrayLike, *, quadratic: float = 0.0, linear: float = 0.0):
        """Define a rod.

        Args:
            start: first end of the rod in the body frame [m].
            end: second end of the rod in the body frame [m].
            quadratic: force per length and squared speed [N·s²/m³].
            linear: force per length and speed [N·s/m²].
        """
        self.start_point, self.end_point = (np.array(x, dtype=float) for x in (start, end))
        if (
            self.start_point.shape != (3,)
            or self.end_point.shape != (3,)
            or not np.any(self.start_point != self.end_point)
        ):
            raise TapError(f"a rod needs two distinct end points with 3 components each, not {start!r} and {end!r}")
        self.linear, self.quadratic = np.asarray(linear, dtype=float), np.asarray(quadratic, dtype=float)

    def settings(self) -> dict[str, Any]:
        """Arguments that determine the rod."""
        return {name: tuple(np.asarray(getattr(self, f"{name}_point")).tolist()) for name in ("start", "end")}

    @classmethod
    def sizes(cls, inputs: int, outputs: int) -> dict[str, int] | None:
        """Size arguments for these numbers of inputs and outputs; None if they are not supported."""
        return {} if (inputs, outputs) == (6, 6) else None

    def __call__(self, twist: Float[AnyArray, " 6"]) -> Float[Array, " 6"]:
        """Torque about the body's origin and force [N·m, N]."""
        rod = jnp.asarray(self.end_point) - self.start_point
        length = jnp.sqrt(rod @ rod)
        axis = rod / length
        omega, v = twist[:3], twist[3:]
        linear, quadratic = jnp.maximum(self.linear, 0.0), jnp.maximum(self.quadratic, 0.0)

        def element_wrench(x, weight):
            p = self.start_point + 0.5 * (1.0 + x) * rod
            velocity = v + cross(omega, p)
            normal_velocity = velocity - (velocity @ axis) * axis
            force = -0.5 * length * weight * (linear + quadratic * safe_norm(normal_velocity)) * normal_velocity
            return jnp.concatenate([cross(p, force), force])

        return jax.vmap(element_wrench)(POINTS, WEIGHTS).sum(axis=0)

    def check_wiring(self, wiring: GraftWiring) -> None:
        """Raise unless the input is the twist of the body on which the drag acts."""
        wiring.require_mode("add")
        wiring.require_velocities(wiring.inputs)

    def ablate(self) -> "RodDrag":
        """A rod without drag."""
        return eqx.tree_at(lambda d: (d.linear, d.quadratic), self, (np.zeros(()), np.zeros(())))

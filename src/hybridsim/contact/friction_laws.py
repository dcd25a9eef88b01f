"""Friction laws of compliant contact: friction force from normal force and slip velocity.

Each gives the force by the normal force N at a slip of speed v; the force is directed against the slip. All are zero
without slip and smooth there, so a body under a steady side load creeps: at a speed of about `transition` times the
load's share of the friction force.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from hybridsim.core.numerics import safe_norm
from hybridsim.core.types import AnyArray, Scalar

Vec2 = Float[AnyArray, "2"]


class FrictionLaw(eqx.Module):
    """Friction by slip speed; numbers are one for all contacts or one per contact."""

    @abc.abstractmethod
    def coefficient(self, speed: Scalar, mu: Scalar) -> Scalar:
        """Friction force by normal force at a slip speed [m/s], for a coefficient of sliding friction."""

    def force(self, normal_force: Scalar, slip: Vec2, mu: Scalar) -> Vec2:
        """Force on the first body [N]."""
        speed = safe_norm(slip)
        # c(v)/v is smooth at v = 0, where the direction is not
        small = speed < SMALL_SLIP
        at = jnp.where(small, SMALL_SLIP, speed)
        return -normal_force * (self.coefficient(at, mu) / at) * slip


SMALL_SLIP = 1e-9
"""Slip [m/s] below which friction is proportional to it."""


class Coulomb(FrictionLaw):
    """μ tanh(v / v_t): Coulomb's law, smoothed over a transition velocity."""

    transition: AnyArray | float = 0.01
    """v_t [m/s]."""

    def coefficient(self, speed, mu):
        return mu * jnp.tanh(speed / self.transition)


class Andersson(FrictionLaw):
    """(μ + (μ_s − μ) exp(−(v/v_s)^p)) tanh(k v) (Andersson, Söderberg & Björklund 2007)."""

    static: AnyArray | float = 1.2
    """μ_s by μ."""
    stribeck: AnyArray | float = 0.05
    """v_s [m/s]."""
    exponent: AnyArray | float = 1.0
    """p."""
    slope: AnyArray | float = 200.0
    """k [s/m]."""

    def coefficient(self, speed, mu):
        rise = (self.static - 1.0) * jnp.exp(-((speed / self.stribeck) ** self.exponent))
        return mu * (1.0 + rise) * jnp.tanh(self.slope * speed)


class Hollars(FrictionLaw):
    """min(v/v_t, 1) (μ + 2 (μ_s − μ) / (1 + (v/v_t)²)) (Sherman, Seth & Delp 2011, after Hollars)."""

    static: AnyArray | float = 1.2
    """μ_s by μ."""
    transition: AnyArray | float = 0.01
    """v_t [m/s]."""

    def coefficient(self, speed, mu):
        s = speed / self.transition
        return mu * jnp.minimum(s, 1.0) * (1.0 + 2.0 * (self.static - 1.0) / (1.0 + s * s))


class Brown(FrictionLaw):
    """μ tanh(4 v/v_t) + (μ_s − μ) (v/v_t) / ((v/v_t)²/4 + 3/4)² (Brown & McPhee 2018)."""

    static: AnyArray | float = 1.2
    """μ_s by μ."""
    transition: AnyArray | float = 0.01
    """v_t [m/s]."""

    def coefficient(self, speed, mu):
        s = speed / self.transition
        return mu * (jnp.tanh(4.0 * s) + (self.static - 1.0) * s / (0.25 * s * s + 0.75) ** 2)


LAWS = {"coulomb": Coulomb, "andersson": Andersson, "hollars": Hollars, "brown": Brown}
"""Laws by name."""


def friction_forces(
    law: FrictionLaw, normal_force: Float[AnyArray, " nc"], slip: Float[AnyArray, "nc 2"], mu: Float[AnyArray, " nc"]
) -> Float[AnyArray, "nc 2"]:
    """Friction of every contact [N]."""
    axes = jax.tree.map(lambda x: 0 if jnp.ndim(x) else None, law)
    return jax.vmap(lambda law, *args: law.force(*args), in_axes=(axes, 0, 0, 0))(law, normal_force, slip, mu)

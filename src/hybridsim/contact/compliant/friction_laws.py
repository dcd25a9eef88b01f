"""Friction laws of compliant contact: friction force from normal force and slip velocity.

Each gives the force by the normal force N at a slip of speed v; the force is directed against the slip. All are zero
without slip and smooth there, so a body under a steady side load creeps: at a speed of about `transition` times the
load's share of the friction force.
"""

import abc
from collections.abc import Mapping
from dataclasses import fields, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.candidates import Candidates
from hybridsim.contact.pair_parameters import PairParameters, per_pair
from hybridsim.core.numerics import safe_norm
from hybridsim.core.types import AnyArray, Scalar

Vec2 = Float[AnyArray, "2"]


class FrictionLaw(eqx.Module):
    """Friction by slip speed; numbers are one for all pairs, one each, or by name, as those of `CompliantContact`.

    The velocity over which friction rises from zero is by default as small as the time step can follow under the load:
    where friction could reverse a contact's slip within a step, bodies at rest would chatter and wander.
    """

    transition: eqx.AbstractVar[PairParameters]
    """Velocity v_t [m/s]; those that are left open are 0.01 m/s at a slope of μ/v_t, or what the load calls for."""
    positive = ("transition",)
    """Numbers that are divided by."""

    @abc.abstractmethod
    def coefficient(self, speed: Scalar, mu: Scalar) -> Scalar:
        """Friction force by normal force at a slip speed [m/s], for a coefficient of sliding friction."""

    def bind(self, candidates: Candidates) -> "FrictionLaw":
        """With one number per pair; raises `ValueError` for those that do not fit or make no sense."""

        def told(name: str, given: PairParameters, **more) -> AnyArray:
            what = f"{name} of the friction law"
            return per_pair(what, given, candidates, is_positive=name in self.positive, **more)

        names = [field.name for field in fields(self) if field.name != "transition"]
        law = replace(self, **{name: told(name, getattr(self, name)) for name in names})
        least = LEAST_TRANSITION * law.steepness + np.zeros(len(candidates.pairs))
        transition = told("transition", least if law.transition is None else law.transition, otherwise=least)
        return replace(law, transition=transition)

    @property
    def steepness(self) -> AnyArray | float:
        """Slope of the law at rest, by μ / v_t."""
        return 1.0

    def widened(self, least: AnyArray) -> "FrictionLaw":
        """The law with a slope at rest of no more than μ by this velocity [m/s]."""
        assert self.transition is not None and not isinstance(self.transition, Mapping)
        return replace(self, transition=jnp.maximum(self.transition, least * self.steepness))

    def force(self, normal_force: Scalar, slip: Vec2, mu: Scalar) -> Vec2:
        """Force on the first body [N]."""
        speed = safe_norm(slip)
        # c(v)/v is smooth at v = 0, where the direction is not
        at = jnp.where(speed < SMALL_SLIP, SMALL_SLIP, speed)
        return -normal_force * (self.coefficient(at, mu) / at) * slip


SMALL_SLIP = 1e-9
"""Slip [m/s] below which friction is proportional to it."""
LEAST_TRANSITION = 0.01
"""Velocity [m/s] over which friction rises by default, or more than that under a high load."""


def _excess(static: PairParameters) -> AnyArray | float:
    """By how much of the sliding friction the static one is larger, in a law with plain numbers."""
    assert static is not None and not isinstance(static, Mapping)
    return static - 1.0


class Coulomb(FrictionLaw):
    """μ tanh(v / v_t): Coulomb's law, smoothed over a transition velocity."""

    transition: PairParameters = None
    """v_t [m/s]."""

    def coefficient(self, speed, mu):
        return mu * jnp.tanh(speed / self.transition)


class Andersson(FrictionLaw):
    """(μ + (μ_s − μ) exp(−(v/v_s)^p)) tanh(v/v_t) (Andersson, Söderberg & Björklund 2007, with k = 1/v_t)."""

    transition: PairParameters = None
    """v_t [m/s]."""
    static: PairParameters = 1.2
    """μ_s by μ."""
    stribeck: PairParameters = 0.05
    """v_s [m/s]."""
    exponent: PairParameters = 1.0
    """p."""
    positive = ("transition", "stribeck")

    @property
    def steepness(self):
        return 1.0 + _excess(self.static)

    def coefficient(self, speed, mu):
        rise = _excess(self.static) * jnp.exp(-((speed / self.stribeck) ** self.exponent))
        return mu * (1.0 + rise) * jnp.tanh(speed / self.transition)


class Hollars(FrictionLaw):
    """min(v/v_t, 1) (μ + 2 (μ_s − μ) / (1 + (v/v_t)²)) (Sherman, Seth & Delp 2011, after Hollars)."""

    transition: PairParameters = None
    """v_t [m/s]."""
    static: PairParameters = 1.2
    """μ_s by μ."""

    @property
    def steepness(self):
        return 1.0 + 2.0 * _excess(self.static)

    def coefficient(self, speed, mu):
        s = speed / self.transition
        return mu * jnp.minimum(s, 1.0) * (1.0 + 2.0 * _excess(self.static) / (1.0 + s * s))


class Brown(FrictionLaw):
    """μ tanh(4 v/v_t) + (μ_s − μ) (v/v_t) / ((v/v_t)²/4 + 3/4)² (Brown & McPhee 2016)."""

    transition: PairParameters = None
    """v_t [m/s]; friction rises four times as fast as for the other laws."""
    static: PairParameters = 1.2
    """μ_s by μ."""

    @property
    def steepness(self):
        return 4.0 + _excess(self.static) / 0.75**2

    def coefficient(self, speed, mu):
        s = speed / self.transition
        return mu * (jnp.tanh(4.0 * s) + _excess(self.static) * s / (0.25 * s * s + 0.75) ** 2)


LAWS = {"coulomb": Coulomb, "andersson": Andersson, "hollars": Hollars, "brown": Brown}
"""Laws by name."""


def friction_forces(
    law: FrictionLaw, normal_force: Float[AnyArray, " nc"], slip: Float[AnyArray, "nc 2"], mu: Float[AnyArray, " nc"]
) -> Float[AnyArray, "nc 2"]:
    """Friction of every contact [N]."""
    axes = jax.tree.map(lambda x: 0 if jnp.ndim(x) else None, law)
    return jax.vmap(lambda law, *args: law.force(*args), in_axes=(axes, 0, 0, 0))(law, normal_force, slip, mu)

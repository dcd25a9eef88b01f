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
from jaxtyping import Float

from hybridsim.contact.candidates import Candidates
from hybridsim.contact.pair_numbers import PairNumbers, per_pair
from hybridsim.core.numerics import safe_norm
from hybridsim.core.types import AnyArray, Scalar

Vec2 = Float[AnyArray, "2"]


class FrictionLaw(eqx.Module):
    """Friction by slip speed; numbers are one for all pairs, one each, or by name, as those of `CompliantContact`.

    The velocity over which friction rises from zero is by default as small as the time step can follow: where friction
    could reverse a contact's slip within a step, bodies at rest would chatter and wander.
    """

    transition: eqx.AbstractVar[PairNumbers]
    positive = ("transition",)
    """Numbers that are divided by."""

    @abc.abstractmethod
    def coefficient(self, speed: Scalar, mu: Scalar) -> Scalar:
        """Friction force by normal force at a slip speed [m/s], for a coefficient of sliding friction."""

    def bound(self, candidates: Candidates) -> "FrictionLaw":
        """With one number per pair; raises `ValueError` for those that do not fit or make no sense."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.wants_transition:
            del given["transition"]
        told = {
            name: per_pair(f"{name} of the friction law", number, candidates, is_positive=name in self.positive)
            for name, number in given.items()
        }
        return replace(self, **told)

    @property
    def wants_transition(self) -> bool:
        """Is the velocity over which friction rises left to be chosen?"""
        return self.transition is None

    def with_transition(self, transition: AnyArray) -> "FrictionLaw":
        """The law with this velocity [m/s], if it was left to be chosen."""
        return replace(self, transition=transition) if self.wants_transition else self

    def force(self, normal_force: Scalar, slip: Vec2, mu: Scalar) -> Vec2:
        """Force on the first body [N]."""
        speed = safe_norm(slip)
        # c(v)/v is smooth at v = 0, where the direction is not
        at = jnp.where(speed < SMALL_SLIP, SMALL_SLIP, speed)
        return -normal_force * (self.coefficient(at, mu) / at) * slip


SMALL_SLIP = 1e-9
"""Slip [m/s] below which friction is proportional to it."""


def _excess(static: PairNumbers) -> AnyArray | float:
    """By how much of the sliding friction the static one is larger, in a law with plain numbers."""
    assert static is not None and not isinstance(static, Mapping)
    return static - 1.0


class Coulomb(FrictionLaw):
    """μ tanh(v / v_t): Coulomb's law, smoothed over a transition velocity."""

    transition: PairNumbers = None
    """v_t [m/s]."""

    def coefficient(self, speed, mu):
        return mu * jnp.tanh(speed / self.transition)


class Andersson(FrictionLaw):
    """(μ + (μ_s − μ) exp(−(v/v_s)^p)) tanh(v/v_t) (Andersson, Söderberg & Björklund 2007, with k = 1/v_t)."""

    transition: PairNumbers = None
    """v_t [m/s]."""
    static: PairNumbers = 1.2
    """μ_s by μ."""
    stribeck: PairNumbers = 0.05
    """v_s [m/s]."""
    exponent: PairNumbers = 1.0
    """p."""
    positive = ("transition", "stribeck")

    def coefficient(self, speed, mu):
        rise = _excess(self.static) * jnp.exp(-((speed / self.stribeck) ** self.exponent))
        return mu * (1.0 + rise) * jnp.tanh(speed / self.transition)


class Hollars(FrictionLaw):
    """min(v/v_t, 1) (μ + 2 (μ_s − μ) / (1 + (v/v_t)²)) (Sherman, Seth & Delp 2011, after Hollars)."""

    transition: PairNumbers = None
    """v_t [m/s]."""
    static: PairNumbers = 1.2
    """μ_s by μ."""

    def with_transition(self, transition):
        return super().with_transition((1.0 + 2.0 * _excess(self.static)) * transition)

    def coefficient(self, speed, mu):
        s = speed / self.transition
        return mu * jnp.minimum(s, 1.0) * (1.0 + 2.0 * _excess(self.static) / (1.0 + s * s))


class Brown(FrictionLaw):
    """μ tanh(4 v/v_t) + (μ_s − μ) (v/v_t) / ((v/v_t)²/4 + 3/4)² (Brown & McPhee 2018)."""

    transition: PairNumbers = None
    """v_t [m/s]; friction rises four times as fast as for the other laws."""
    static: PairNumbers = 1.2
    """μ_s by μ."""

    def with_transition(self, transition):
        return super().with_transition(4.0 * transition)

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

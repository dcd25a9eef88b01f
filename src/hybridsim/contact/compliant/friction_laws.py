"""Friction laws of compliant contact: friction force from normal force and slip velocity.

Each law is a friction coefficient as a function of slip speed v; the force opposes the slip. All are zero and smooth at
zero slip, so a body under a steady tangential load creeps, at about `transition_velocity / steepness` times the
ratio of the load to the sliding friction force.

`contact/choices.py` registers the laws.
"""

import abc
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.candidates import Candidates
from hybridsim.contact.pair_parameters import PairParameters, pair_parameter, pair_values
from hybridsim.core.numerics import safe_norm
from hybridsim.core.parameter_field import ADDS_ENERGY, DIVIDES, Sign, parameter_field
from hybridsim.core.types import AnyArray, Scalar

Vec2 = Float[AnyArray, "2"]


class FrictionLaw(eqx.Module):
    """Friction coefficient as a function of slip speed. Parameters are specified as for `CompliantContact`.

    The default transition velocity increases with load and time step as stability requires: if friction changed a
    contact's slip by more than twice its value within a step, bodies at rest would chatter and drift.
    """

    transition_velocity: eqx.AbstractVar[PairParameters]
    """v_t [m/s]; by default 0.01 m/s times `steepness`, or more as the load requires."""

    @abc.abstractmethod
    def coefficient(self, speed: Scalar, mu: Scalar) -> Scalar:
        """Friction coefficient at a slip speed [m/s], from the coefficient μ of sliding friction."""

    def bind(self, candidates: Candidates) -> "FrictionLaw":
        """Return a copy with one value of each parameter per pair; raises `ValueError` for invalid ones."""

        def values(name: str, specified: PairParameters, **options) -> AnyArray:
            declared = parameter_field(type(self), name)
            is_positive = name == "transition_velocity" or bool(declared and declared.sign is Sign.POSITIVE)
            owner = "the friction law"
            return pair_values(name, specified, candidates, must_be_positive=is_positive, owner=owner, **options)

        names = [field.name for field in fields(self) if field.name != "transition_velocity"]
        law = replace(self, **{name: values(name, getattr(self, name)) for name in names})
        default = DEFAULT_TRANSITION_VELOCITY * law.steepness + np.zeros(len(candidates.pairs))
        specified = default if law.transition_velocity is None else law.transition_velocity
        return replace(law, transition_velocity=values("transition_velocity", specified, default=default))

    @property
    def steepness(self) -> AnyArray | float:
        """Slope of the law at zero slip, relative to μ / v_t."""
        return 1.0

    def with_min_transition_velocity(self, velocity: AnyArray) -> "FrictionLaw":
        """Return a copy whose slope at zero slip is at most μ / velocity [m/s]."""
        assert self.transition_velocity is not None and not isinstance(self.transition_velocity, Mapping)
        min_velocity = velocity * self.steepness
        return replace(self, transition_velocity=jnp.maximum(self.transition_velocity, min_velocity))

    def force(self, normal_force: Scalar, slip: Vec2, mu: Scalar) -> Vec2:
        """Friction force on the first body [N]."""
        speed = safe_norm(slip)
        # c(v)/v is smooth at v = 0, the direction of slip is not
        speed = jnp.where(speed < SMALL_SLIP, SMALL_SLIP, speed)
        return -normal_force * (self.coefficient(speed, mu) / speed) * slip


SMALL_SLIP = 1e-9
"""Slip [m/s] below which friction is proportional to it."""
DEFAULT_TRANSITION_VELOCITY = 0.01
"""Default transition velocity of a law of steepness 1 [m/s]; larger under a high load."""


def transition_velocity_field() -> Any:
    """Field of a law's transition velocity."""
    description = "Sliding speed over which friction builds up."
    return pair_parameter(None, "m/s", description, Sign.POSITIVE, DIVIDES, typical=0.01)


def _static_ratio() -> Any:
    return pair_parameter(1.2, "-", "Ratio of static to sliding friction.", reason=ADDS_ENERGY)


def _excess(static_ratio: PairParameters) -> AnyArray | float:
    """Excess of static over sliding friction, relative to sliding friction; the law must be bound."""
    assert static_ratio is not None and not isinstance(static_ratio, Mapping)
    return static_ratio - 1.0


class Coulomb(FrictionLaw):
    """μ tanh(v / v_t): Coulomb's law, smoothed over a transition velocity."""

    transition_velocity: PairParameters = transition_velocity_field()
    """v_t [m/s]."""

    def coefficient(self, speed, mu):
        return mu * jnp.tanh(speed / self.transition_velocity)


class Andersson(FrictionLaw):
    """(μ + (μ_s − μ) exp(−(v/v_s)^p)) tanh(v/v_t) (Andersson, Söderberg & Björklund 2007, with k = 1/v_t)."""

    transition_velocity: PairParameters = transition_velocity_field()
    """v_t [m/s]."""
    static_ratio: PairParameters = _static_ratio()
    """μ_s / μ."""
    stribeck_velocity: PairParameters = pair_parameter(0.05, "m/s", "Stribeck velocity.", Sign.POSITIVE, DIVIDES)
    """v_s [m/s]."""
    exponent: PairParameters = pair_parameter(
        1.0, "-", "Exponent of the Stribeck curve.", reason="static friction decays with speed"
    )
    """Exponent p of the Stribeck curve."""

    @property
    def steepness(self):
        return 1.0 + _excess(self.static_ratio)

    def coefficient(self, speed, mu):
        rise = _excess(self.static_ratio) * jnp.exp(-((speed / self.stribeck_velocity) ** self.exponent))
        return mu * (1.0 + rise) * jnp.tanh(speed / self.transition_velocity)


class Hollars(FrictionLaw):
    """min(v/v_t, 1) (μ + 2 (μ_s − μ) / (1 + (v/v_t)²)) (Sherman, Seth & Delp 2011, after Hollars)."""

    transition_velocity: PairParameters = transition_velocity_field()
    """v_t [m/s]."""
    static_ratio: PairParameters = _static_ratio()
    """μ_s / μ."""

    @property
    def steepness(self):
        return 1.0 + 2.0 * _excess(self.static_ratio)

    def coefficient(self, speed, mu):
        s = speed / self.transition_velocity
        return mu * jnp.minimum(s, 1.0) * (1.0 + 2.0 * _excess(self.static_ratio) / (1.0 + s * s))


class Brown(FrictionLaw):
    """μ tanh(4 v/v_t) + (μ_s − μ) (v/v_t) / ((v/v_t)²/4 + 3/4)² (Brown & McPhee 2016)."""

    transition_velocity: PairParameters = transition_velocity_field()
    """v_t [m/s]; the slope at zero slip is at least 4 μ / v_t."""
    static_ratio: PairParameters = _static_ratio()
    """μ_s / μ."""

    @property
    def steepness(self):
        return 4.0 + _excess(self.static_ratio) / 0.75**2

    def coefficient(self, speed, mu):
        s = speed / self.transition_velocity
        return mu * (jnp.tanh(4.0 * s) + _excess(self.static_ratio) * s / (0.25 * s * s + 0.75) ** 2)


def friction_forces(
    law: FrictionLaw, normal_force: Float[AnyArray, " nc"], slip: Float[AnyArray, "nc 2"], mu: Float[AnyArray, " nc"]
) -> Float[AnyArray, "nc 2"]:
    """Friction forces of all contacts [N]."""
    axes = jax.tree.map(lambda x: 0 if jnp.ndim(x) else None, law)
    return jax.vmap(lambda law, *args: law.force(*args), in_axes=(axes, 0, 0, 0))(law, normal_force, slip, mu)

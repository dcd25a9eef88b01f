"""Constraint stabilization: target velocity of a penetrating contact.

| class        | target velocity for a gap g < 0 with velocity v                               |
|--------------|-------------------------------------------------------------------------------|
| RecoveryTime | −g / max(recovery_time, dt)                                                   |
| ERP          | −erp · g / dt: the fraction `erp` of the penetration is removed in every step |
| Baumgarte    | (1 − 2 α dt) v − β² dt g: one step of g̈ + 2 α ġ + β² g = 0 (Baumgarte 1972)   |

`RecoveryTime(dt / erp)` is `ERP(erp)`, and so is `Baumgarte(1 / (2 dt), sqrt(erp) / dt)`.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Float

from hybridsim.contact.candidates import Candidates
from hybridsim.contact.pair_parameters import PairParameters, pair_mean, pair_parameter, pair_values
from hybridsim.core.parameter_field import ADDS_ENERGY, IS_TIME, NO_ADHESION
from hybridsim.core.types import AnyArray, Scalar
from hybridsim.model.geometry import Geometry

PerContact = Float[AnyArray, " nc"]
DEFAULT_ERP = 0.05
"""Fraction of a penetration that is removed in a step."""


class Stabilization(eqx.Module):
    """Constraint stabilization: target velocity of penetrating contacts."""

    @abc.abstractmethod
    def bind(self, candidates: Candidates) -> "Stabilization":
        """Return a copy with one value of each parameter per pair."""

    @abc.abstractmethod
    def target_velocity(
        self, gap: PerContact, velocity: PerContact, dt: Scalar, geometry: Geometry, candidates: Candidates
    ) -> PerContact:
        """Target velocity of penetrating contacts [m/s]."""


def _contact_values(values: Float[AnyArray, " npairs"], candidates: Candidates) -> PerContact:
    return jnp.asarray(values)[jnp.asarray(candidates.pair_indices, dtype=int)]


class RecoveryTime(Stabilization):
    """Penetrations decay exponentially with a time constant, the recovery time, that does not depend on the step."""

    recovery_time: PairParameters = pair_parameter(
        None, "s", "Time constant of the correction of penetration.", reason=IS_TIME, typical=0.01
    )
    """Recovery time [s] per pair; by default the mean `recovery_time` of the two surfaces."""

    def bind(self, candidates: Candidates) -> "RecoveryTime":
        if self.recovery_time is None:
            return self
        return RecoveryTime(pair_values("recovery_time", self.recovery_time, candidates))

    def target_velocity(self, gap, velocity, dt, geometry, candidates):
        specified = self.recovery_time
        recovery_time = pair_mean(geometry.recovery_time, candidates) if specified is None else specified
        return -gap / jnp.maximum(_contact_values(recovery_time, candidates), dt)


class ERP(Stabilization):
    """A fraction of the penetration is removed in every step."""

    erp: PairParameters = pair_parameter(
        DEFAULT_ERP, "-", "Fraction of the penetration corrected per step.", reason="it is a fraction", upper_limit=1.0
    )
    """Error reduction parameter, per pair."""

    def bind(self, candidates: Candidates) -> "ERP":
        return ERP(pair_values("erp", self.erp, candidates, max_value=1.0))

    def target_velocity(self, gap, velocity, dt, geometry, candidates):
        return -_contact_values(self.erp, candidates) * gap / dt


class Baumgarte(Stabilization):
    """Penetrations decay as in a damped oscillator."""

    alpha: PairParameters = pair_parameter(None, "1/s", "Baumgarte's α.", reason=ADDS_ENERGY, typical=100.0)
    """α [1/s] per pair; by default 1/(2 dt), the smallest value that stops the approach within one step."""
    beta: PairParameters = pair_parameter(None, "1/s", "Baumgarte's β.", reason=NO_ADHESION, typical=100.0)
    """β [1/s] per pair; by default the value that removes the fraction `DEFAULT_ERP` in every step."""

    def bind(self, candidates: Candidates) -> "Baumgarte":
        alpha, beta = (
            None if specified is None else pair_values(field, specified, candidates)
            for field, specified in (("alpha", self.alpha), ("beta", self.beta))
        )
        return Baumgarte(alpha, beta)

    def target_velocity(self, gap, velocity, dt, geometry, candidates):
        remaining = 0.0 if self.alpha is None else 1.0 - 2.0 * _contact_values(self.alpha, candidates) * dt
        rate = DEFAULT_ERP / dt if self.beta is None else _contact_values(self.beta, candidates) ** 2 * dt
        return remaining * velocity - rate * gap

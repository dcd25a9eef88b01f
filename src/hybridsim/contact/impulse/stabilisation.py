"""Ways to undo a penetration: the velocity at which a contact is to open again.

| class       | velocity aimed at, for a penetration g < 0 met with velocity v               |
|-------------|------------------------------------------------------------------------------|
| Recovery    | −g / time, but within no less than a step                                    |
| ERP         | −erp · g / dt: the share `erp` of the penetration is undone in every step    |
| Baumgarte   | (1 − 2 α dt) v − β² dt g: one step of g̈ + 2 α ġ + β² g = 0 (Baumgarte 1972)  |

`Recovery(dt / erp)` is `ERP(erp)`, and so is `Baumgarte(1 / (2 dt), sqrt(erp) / dt)`.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Float

from hybridsim.contact.candidates import Candidates
from hybridsim.contact.pair_parameters import PairParameters, pair_mean, per_pair
from hybridsim.core.types import AnyArray, Scalar
from hybridsim.model.geometry import Geometry

PerContact = Float[AnyArray, " nc"]
DEFAULT_ERP = 0.05
"""Share of a penetration that is undone in a step."""


class Stabilisation(eqx.Module):
    """How penetrations are undone."""

    @abc.abstractmethod
    def bind(self, candidates: Candidates) -> "Stabilisation":
        """With one number per pair."""

    @abc.abstractmethod
    def target_velocity(
        self, gap: PerContact, velocity: PerContact, dt: Scalar, geometry: Geometry, candidates: Candidates
    ) -> PerContact:
        """Velocity at which penetrating contacts are to open [m/s]."""


def _each(numbers: Float[AnyArray, " npairs"], candidates: Candidates) -> PerContact:
    return jnp.asarray(numbers)[jnp.asarray(candidates.pair_indices, dtype=int)]


class Recovery(Stabilisation):
    """Penetrations are undone within a time, whatever the step."""

    time: PairParameters = None
    """[s] per pair; by default the surfaces' `recovery_time`."""

    def bind(self, candidates: Candidates) -> "Recovery":
        return self if self.time is None else Recovery(per_pair("the recovery time", self.time, candidates))

    def target_velocity(self, gap, velocity, dt, geometry, candidates):
        time = pair_mean(geometry.recovery_time, candidates) if self.time is None else self.time
        return -gap / jnp.maximum(_each(time, candidates), dt)


class ERP(Stabilisation):
    """A share of the penetration is undone in every step."""

    erp: PairParameters = DEFAULT_ERP
    """Error reduction parameter, per pair."""

    def bind(self, candidates: Candidates) -> "ERP":
        return ERP(per_pair("erp", self.erp, candidates, most=1.0))

    def target_velocity(self, gap, velocity, dt, geometry, candidates):
        return -_each(self.erp, candidates) * gap / dt


class Baumgarte(Stabilisation):
    """Penetrations decay like a damped oscillator."""

    alpha: PairParameters = None
    """α [1/s] per pair; by default 1/(2 dt), which stops the penetration at once; less lets it go on."""
    beta: PairParameters = None
    """β [1/s] per pair; by default as much as undoes a twentieth of the penetration in every step."""

    def bind(self, candidates: Candidates) -> "Baumgarte":
        alpha, beta = (
            None if given is None else per_pair(what, given, candidates)
            for what, given in (("alpha", self.alpha), ("beta", self.beta))
        )
        return Baumgarte(alpha, beta)

    def target_velocity(self, gap, velocity, dt, geometry, candidates):
        left = 0.0 if self.alpha is None else 1.0 - 2.0 * _each(self.alpha, candidates) * dt
        undone = DEFAULT_ERP / dt if self.beta is None else _each(self.beta, candidates) ** 2 * dt
        return left * velocity - undone * gap

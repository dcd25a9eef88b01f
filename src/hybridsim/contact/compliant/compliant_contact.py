"""Compliant contact: forces of bodies that give way (Hunt & Crossley 1975).

At a penetration x > 0 that grows with ẋ the normal force is

    F = k xⁿ + d xⁿ ẋ,    and no less than zero: a contact never pulls.

With d = 3/2 c k a body that arrives at a low speed v leaves with (1 − c v) of it. Friction follows from the normal
force and the slip by one of the laws in `friction_laws.py`.

Numbers that the user leaves open are bounded by what the time step can follow (`step_limits.py`): a spring does not get
steeper, a damper not stronger and friction does not rise faster, however deep an impact and however high a load.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from hybridsim.contact.candidates import Candidates, find_candidates
from hybridsim.contact.compliant.friction_laws import LAWS, Coulomb, FrictionLaw, friction_forces
from hybridsim.contact.compliant.stability_limits import StabilityLimits, stability_limits
from hybridsim.contact.contact import NO_CANDIDATES, AbstractContact
from hybridsim.contact.contact_state import ContactState, body_wrenches
from hybridsim.contact.pair_parameters import (
    PairParameters,
    pair_friction,
    pair_max,
    pair_series,
    per_pair,
    specified_pairs,
)
from hybridsim.contact.precontact_gradient import precontact_gradient
from hybridsim.contact.tapped_forces import tap_impulses
from hybridsim.core.messages import name_list
from hybridsim.core.types import AnyArray, Scalar, as_floats
from hybridsim.core.warnings import warn_user
from hybridsim.model.model import Model
from hybridsim.model.topology import WORLD
from hybridsim.taps.taps import Taps

WEIGHT_DEPTH = 1.1e-3
"""Depth [m] at which one contact of default stiffness bears the weight of the two mechanisms that touch."""
DAMPING_PER_STIFFNESS = 1.0
"""Default damping by stiffness [s/m]."""
SURFACE_DEPTH = 1e-3
"""Depth [m] at which stiffness [N/m] and damping [N·s/m] of surfaces are what they say, whatever the exponent."""


class Told(eqx.Module):
    """Which pairs have numbers of the user's own, and which those of their surfaces."""

    stiffness: tuple[bool, ...] = eqx.field(static=True, default=())
    damping: tuple[bool, ...] = eqx.field(static=True, default=())
    transition: tuple[bool, ...] = eqx.field(static=True, default=())
    """Given by the user; such numbers are not bounded by the time step."""
    surface_stiffness: tuple[int, ...] = eqx.field(static=True, default=())
    surface_damping: tuple[int, ...] = eqx.field(static=True, default=())
    """Pairs that take theirs from the model's surfaces."""


class CompliantContact(AbstractContact):
    """Contact by forces. Numbers per pair may be one for all, one each, or by name: `{"*": 1e5, "foot|mat": 1e4}`."""

    friction: PairParameters = None
    """Coulomb's μ per pair; by default the model's for the pair, or the larger one of the two surfaces."""
    stiffness: PairParameters = None
    """k [N/mⁿ] per pair; by default that of the surfaces, or the mechanisms that touch are borne at 1.1 mm."""
    damping: PairParameters = None
    """d [N·s/mⁿ⁺¹] per pair; by default that of the surfaces, or 1 s/m times the stiffness."""
    exponent: PairParameters = 1.5
    """n per pair: 3/2 for a ball on a plane (Hertz)."""
    law: FrictionLaw | str = Coulomb()
    """Friction law, or its name: coulomb, andersson, hollars or brown."""
    reach: float = eqx.field(static=True, default=0.0)
    """Distance [m] over which derivatives feel contacts that do not touch; values are never changed by it."""
    only: tuple[str, ...] = eqx.field(static=True, default=())
    """Pairs to watch; all that may touch by default. See `candidates`."""
    exclude: tuple[str, ...] = eqx.field(static=True, default=())
    """Pairs to leave out."""
    self_collision: bool = eqx.field(static=True, default=True)
    """Can bodies of one tree touch each other?"""
    inverse_mass: StabilityLimits | None = None
    """How easily what touches is moved, by which open numbers are bounded; found by the simulator."""
    told: Told = Told()
    """Whose the numbers of each pair are; found by the simulator."""
    candidates: Candidates = eqx.field(static=True, default=NO_CANDIDATES)
    """The contacts that are candidates; made by the simulator."""

    def __check_init__(self):
        if isinstance(self.law, type) and issubclass(self.law, FrictionLaw):
            raise TypeError(f"law is a friction law, not its class: write {self.law.__name__}()")
        if isinstance(self.law, str) and self.law not in LAWS:
            raise ValueError(f"unknown friction law {self.law!r}; choose one of {', '.join(LAWS)}")
        if not isinstance(self.law, str | FrictionLaw):
            raise TypeError(f"law is a friction law or its name, not {self.law!r}")
        if not self.reach >= 0.0:
            raise ValueError(f"the reach of derivatives must not be negative, not {self.reach} m")

    def bind(self, model: Model, dt: Scalar) -> "CompliantContact":
        del dt
        pairs = find_candidates(model, only=self.only, exclude=self.exclude, self_collision=self.self_collision)
        _warn_of_restitution(model, pairs)
        law = LAWS[self.law]() if isinstance(self.law, str) else self.law
        stiffness, damping = (specified_pairs(given, pairs) for given in (self.stiffness, self.damping))
        told = Told(
            stiffness,
            damping,
            specified_pairs(law.transition, pairs),
            surface_stiffness=_told_by_surfaces(model.geometry.stiffness, pairs, stiffness),
            surface_damping=_told_by_surfaces(model.geometry.damping, pairs, damping),
        )
        is_open = not all((*told.stiffness, *told.damping, *told.transition))
        exponent = per_pair("exponent", self.exponent, pairs, is_positive=True)
        friction = self.friction
        if friction is not None:
            friction = per_pair("friction", friction, pairs, otherwise=pair_friction(model.geometry, pairs))
        limits = stability_limits(model, pairs) if is_open else None
        default = None if all(told.stiffness) else _weights(model, pairs) / WEIGHT_DEPTH**exponent
        bound = replace(
            self,
            friction=friction,
            stiffness=_numbers("stiffness", self.stiffness, pairs, default),
            exponent=exponent,
            law=law.bind(pairs),
            inverse_mass=limits,
            told=told,
            candidates=pairs,
        )
        stiffness = as_floats(bound.pair_stiffness(model))
        damping = _numbers("damping", self.damping, pairs, DAMPING_PER_STIFFNESS * stiffness)
        bound = replace(bound, stiffness=stiffness, damping=damping)
        return replace(bound, damping=as_floats(bound.pair_damping(model)))

    def wrenches(self, model, touch, X_WB, dt, taps):
        return body_wrenches(touch, self.candidates, X_WB, self.forces(model, touch, dt, taps))

    def forces(self, model: Model, touch: ContactState, dt: Scalar, taps: Taps) -> Float[AnyArray, "nc 3"]:
        """Force on the first body of every contact, in the contact's frame [N]."""
        each = np.array(self.candidates.pair_indices, dtype=int)
        mu = pair_friction(model.geometry, self.candidates) if self.friction is None else jnp.asarray(self.friction)
        mu = mu[each]

        def friction(normal):
            return friction_forces(self._law(mu * normal, dt), normal, touch.velocity[:, 1:], mu)

        return tap_impulses(self._normal(model, touch, dt), friction, dt, taps, gap=touch.gap) / dt

    def pair_stiffness(self, model: Model) -> Float[AnyArray, " npairs"]:
        """Stiffness k [N/mⁿ] of every pair, of its surfaces where they say it."""
        return self._of_surfaces(self.stiffness, model.geometry.stiffness, self.told.surface_stiffness, 1.0)

    def pair_damping(self, model: Model) -> Float[AnyArray, " npairs"]:
        """Damping d [N·s/mⁿ⁺¹] of every pair, of its surfaces where they say it."""
        return self._of_surfaces(self.damping, model.geometry.damping, self.told.surface_damping, 0.0)

    def _of_surfaces(self, numbers, values, chosen: tuple[int, ...], power: float) -> Float[AnyArray, " npairs"]:
        """Numbers of pairs, some from surfaces [N/m, N·s/m]: those of the Hunt–Crossley law that agrees at 1 mm."""
        if not chosen:
            return numbers
        scale = SURFACE_DEPTH ** (power - jnp.asarray(self.exponent)[np.array(chosen, dtype=int)])
        told = scale * pair_series(values, self.candidates, chosen)
        place = np.arange(len(self.candidates.pairs))
        place[list(chosen)] = len(place) + np.arange(len(chosen))
        return jnp.concatenate([jnp.asarray(numbers), told])[place]

    def _normal(self, model: Model, touch: ContactState, dt: Scalar) -> Float[AnyArray, " nc"]:
        """Normal forces [N]."""
        each = np.array(self.candidates.pair_indices, dtype=int)
        k, d, n = (jnp.asarray(x)[each] for x in (self.pair_stiffness(model), self.pair_damping(model), self.exponent))
        slope = k * n * WEIGHT_DEPTH ** (n - 1.0) if self.reach else None
        if self.inverse_mass is not None:
            k, d = self._followed(self.inverse_mass, -touch.gap, k, d, n, dt)
        normal = hunt_crossley(-touch.gap, -touch.velocity[:, 0], k, d, n)
        return normal if slope is None else precontact_gradient(normal, touch.gap, slope, self.reach)

    def _followed(self, limits: StabilityLimits, depth, k, d, n, dt: Scalar) -> tuple[AnyArray, AnyArray]:
        """Stiffness and damping of contacts at their depths, those that were left open as a time step can follow them.

        From where a spring would be too steep it goes on as a straight line, and its damper with it.
        """
        each, power = np.array(self.candidates.pair_indices, dtype=int), _power(depth, n)
        slope, straight = n * k * power, limits.hardest(self.candidates, dt)[each] * jnp.maximum(depth, 0.0)
        is_steep = (slope > straight) & ~np.array(self.told.stiffness)[each]
        share = jnp.where(is_steep, straight / jnp.where(is_steep, slope, 1.0), 1.0)
        bounded = d * share * limits.damping_share(d * share * power, self.candidates, dt)
        return k * share, jnp.where(np.array(self.told.damping)[each], d, bounded)

    def _law(self, friction: Float[AnyArray, " nc"], dt: Scalar) -> FrictionLaw:
        """The friction law with numbers for every contact, of which this is the largest friction [N]."""
        each = np.array(self.candidates.pair_indices, dtype=int)
        law = jax.tree.map(lambda x: jnp.asarray(x)[each], self.law)
        if self.inverse_mass is None or all(self.told.transition):
            return law
        least = self.inverse_mass.transition(friction, self.candidates, dt)
        return law.widened(jnp.where(np.array(self.told.transition)[each], 0.0, least))


def hunt_crossley(depth: AnyArray, speed: AnyArray, stiffness: AnyArray, damping: AnyArray, exponent: AnyArray):
    """Normal force [N] at a penetration [m] that grows with a speed [m/s]."""
    return jnp.maximum((stiffness + damping * speed) * _power(depth, exponent), 0.0)


def _power(depth: AnyArray, exponent: AnyArray) -> AnyArray:
    """Depth to a power, and zero outside."""
    touches = depth > 0.0
    # a power of zero would have an infinite derivative by the exponent
    return jnp.where(touches, jnp.where(touches, depth, 1.0) ** exponent, 0.0)


def _numbers(what: str, given: PairParameters, pairs: Candidates, default: AnyArray | None) -> AnyArray:
    return per_pair(what, default if given is None else given, pairs, otherwise=default)


def _told_by_surfaces(values: AnyArray, pairs: Candidates, told: tuple[bool, ...]) -> tuple[int, ...]:
    """Pairs that take a number from their surfaces: one of them says it, and the user does not."""
    if isinstance(values, Tracer):
        return tuple(k for k, is_told in enumerate(told) if not is_told)
    with jax.ensure_compile_time_eval():
        least = -np.asarray(pair_max(-np.asarray(values), pairs))
    return tuple(k for k, is_told in enumerate(told) if not is_told and np.isfinite(least[k]))


def _warn_of_restitution(model: Model, pairs: Candidates) -> None:
    if isinstance(model.geometry.restitution, Tracer):
        return
    with jax.ensure_compile_time_eval():
        restitution = np.asarray(pair_max(model.geometry.restitution, pairs))
    bouncing = [pair.name for pair, number in zip(pairs.pairs, restitution, strict=True) if number > 0.0]
    if bouncing:
        warn_user(
            f"compliant contact does not use the restitution of {name_list(bouncing)} in model {model.name!r}: how far "
            "bodies bounce follows from stiffness and damping; impulse contact uses it"
        )


def _weights(model: Model, pairs: Candidates) -> np.ndarray:
    """Of the mechanisms that each pair's shapes belong to, together [N]; by 9.81 m/s² where there is no gravity."""
    mass = np.asarray(model.body.mass)
    roots = [chain[0] for chain in model.topology.ancestors]
    of_tree = {root: sum(mass[k] for k, own in enumerate(roots) if own == root) for root in set(roots)}
    gravity = float(np.linalg.norm(np.asarray(model.gravity))) or 9.81

    def trees(pair) -> set[int]:
        bodies = (pairs.infos[shape].body for shape in (pair.first, pair.second))
        return {roots[body] for body in bodies if body != WORLD}

    return gravity * np.array([sum(of_tree[root] for root in trees(pair)) for pair in pairs.pairs])

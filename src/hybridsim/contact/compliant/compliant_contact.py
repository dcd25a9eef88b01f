"""Compliant contact: Hunt–Crossley normal forces (Hunt & Crossley 1975) and regularized friction.

At a penetration x > 0 with rate ẋ the normal force is

    F = max(k xⁿ + d xⁿ ẋ, 0).

With d = 3/2 c k the coefficient of restitution at a low impact speed v is 1 − c v. Friction follows from the normal
force and the slip velocity by one of the laws in `friction_laws.py`.

Stiffness, damping and the slope of friction are limited where the user does not specify them, so that explicit time
steps are stable at any penetration and load (`stability_limits.py`).
"""

from dataclasses import replace
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from hybridsim.contact.candidates import Candidates, find_candidates
from hybridsim.contact.choices import FRICTION_LAWS
from hybridsim.contact.compliant.friction_laws import Coulomb, FrictionLaw, friction_forces
from hybridsim.contact.compliant.stability_limits import StabilityLimits, stability_limits
from hybridsim.contact.contact import NO_CANDIDATES, AbstractContact
from hybridsim.contact.contact_state import ContactState, body_wrenches
from hybridsim.contact.pair_parameters import (
    PairParameters,
    candidate_friction,
    pair_max,
    pair_parameter,
    pair_series,
    pair_values,
    specified_mask,
)
from hybridsim.contact.precontact_gradient import with_precontact_gradient
from hybridsim.contact.tapped_forces import tap_impulses
from hybridsim.core.choices import check_choice
from hybridsim.core.derived_table import HIDDEN
from hybridsim.core.messages import name_list
from hybridsim.core.parameter_field import ADDS_ENERGY, NO_ADHESION
from hybridsim.core.specification import Choice, Nonnegative
from hybridsim.core.types import AnyArray, Scalar, as_floats
from hybridsim.core.warnings import warn_user
from hybridsim.model.model import Model
from hybridsim.model.topology import WORLD
from hybridsim.taps.taps import Taps

WEIGHT_DEPTH = 1.1e-3
"""Depth [m] at which one contact of default stiffness supports the weight of both kinematic trees."""
DAMPING_PER_STIFFNESS = 1.0
"""Ratio of default damping to stiffness [s/m]."""
SURFACE_DEPTH = 1e-3
"""Depth [m] at which the Hunt–Crossley law agrees with linear stiffness [N/m] and damping [N·s/m] of surfaces."""


class ParameterSources(eqx.Module):
    """Sources of pair parameters: the user, or the surfaces of the model."""

    is_stiffness_specified: tuple[bool, ...] = eqx.field(static=True, default=())
    is_damping_specified: tuple[bool, ...] = eqx.field(static=True, default=())
    is_transition_specified: tuple[bool, ...] = eqx.field(static=True, default=())
    """Whether each pair has a value specified by the user; such values are not limited by the time step."""
    surface_stiffness_pairs: tuple[int, ...] = eqx.field(static=True, default=())
    surface_damping_pairs: tuple[int, ...] = eqx.field(static=True, default=())
    """Indices of the pairs whose value comes from the model's surfaces."""


class CompliantContact(AbstractContact):
    """Compliant contact.

    Parameters of pairs are specified as one value for all, one value each, or by name: `{"*": 1e5, "foot|mat": 1e4}`.
    A default comes from both surfaces, or from the one with the higher priority if their priorities differ.
    """

    friction: PairParameters = pair_parameter(
        None, "-", "Coulomb friction coefficient of a candidate pair.", reason=ADDS_ENERGY
    )
    """Friction coefficient μ per pair; by default the model's value for the pair, or the larger surface value."""
    stiffness: PairParameters = pair_parameter(None, "N/mⁿ", "Contact stiffness.", reason=NO_ADHESION, typical=1e4)
    """k [N/mⁿ] per pair; by default that of the surfaces, or else one that supports the weight of both kinematic trees
    at 1.1 mm."""
    damping: PairParameters = pair_parameter(None, "N·s/mⁿ⁺¹", "Contact damping.", reason=ADDS_ENERGY, typical=1e4)
    """d [N·s/mⁿ⁺¹] per pair; by default that of the surfaces, or 1 s/m times the stiffness."""
    exponent: PairParameters = pair_parameter(
        1.5, "-", "Exponent n of the penetration.", reason="a force that decreases with penetration is unstable"
    )
    """n per pair; 3/2 for a ball on a plane (Hertz)."""
    law: Annotated[FrictionLaw | str, Choice("kind", lambda: FRICTION_LAWS, base=lambda: FrictionLaw)] = Coulomb()
    """Friction law, or the name of one of the `FRICTION_LAWS`."""
    reach: Nonnegative = eqx.field(static=True, default=0.0)
    """Decay length [m] of the derivatives of open contacts; values are not affected."""
    only: tuple[str, ...] = eqx.field(static=True, default=())
    """Pairs to simulate; by default all candidate pairs. See `find_candidates`."""
    exclude: tuple[str, ...] = eqx.field(static=True, default=())
    """Pairs to exclude."""
    self_collision: bool = eqx.field(static=True, default=True)
    """Whether bodies of one tree can collide with each other."""
    stability_limits: StabilityLimits | None = eqx.field(default=None, metadata=HIDDEN)
    """Limits of unspecified parameters; set by `bind`."""
    sources: ParameterSources = eqx.field(default=ParameterSources(), metadata=HIDDEN)
    """Sources of the parameters of each pair; set by `bind`."""
    candidates: Candidates = eqx.field(static=True, default=NO_CANDIDATES, metadata=HIDDEN)
    """Candidate pairs; set by `bind`."""

    def __check_init__(self):
        if isinstance(self.law, type) and issubclass(self.law, FrictionLaw):
            raise TypeError(f"law must be an instance of a friction law, not its class: write {self.law.__name__}()")
        if isinstance(self.law, str):
            check_choice("friction law", self.law, FRICTION_LAWS)
        if not isinstance(self.law, str | FrictionLaw):
            raise TypeError(f"law must be a friction law or its name, not {self.law!r}")
        if not self.reach >= 0.0:
            raise ValueError(f"reach must be nonnegative, not {self.reach} m")

    def bind(self, model: Model, dt: Scalar) -> "CompliantContact":
        del dt
        candidates = find_candidates(model, only=self.only, exclude=self.exclude, self_collision=self.self_collision)
        _warn_about_restitution(model, candidates)
        law = FRICTION_LAWS[self.law]() if isinstance(self.law, str) else self.law
        is_stiffness_specified, is_damping_specified, is_transition_specified = (
            specified_mask(parameter, candidates)
            for parameter in (self.stiffness, self.damping, law.transition_velocity)
        )
        sources = ParameterSources(
            is_stiffness_specified,
            is_damping_specified,
            is_transition_specified,
            surface_stiffness_pairs=_surface_pairs(model.geometry.stiffness, candidates, is_stiffness_specified),
            surface_damping_pairs=_surface_pairs(model.geometry.damping, candidates, is_damping_specified),
        )
        is_limited = not all((*is_stiffness_specified, *is_damping_specified, *is_transition_specified))
        exponent = pair_values("exponent", self.exponent, candidates, must_be_positive=True)
        friction = self.friction
        if friction is not None:
            default_friction = candidate_friction(model.geometry, candidates)
            friction = pair_values("friction", friction, candidates, default=default_friction)
        limits = stability_limits(model, candidates) if is_limited else None
        # without pairs, all of them are specified
        needs_default = self.stiffness is None or not all(is_stiffness_specified)
        default = _weights(model, candidates) / WEIGHT_DEPTH**exponent if needs_default else None
        contact = replace(
            self,
            friction=friction,
            stiffness=_pair_values_or_default("stiffness", self.stiffness, candidates, default),
            exponent=exponent,
            law=law.bind(candidates),
            stability_limits=limits,
            sources=sources,
            candidates=candidates,
        )
        stiffness = as_floats(contact.pair_stiffness(model))
        damping = _pair_values_or_default("damping", self.damping, candidates, DAMPING_PER_STIFFNESS * stiffness)
        contact = replace(contact, stiffness=stiffness, damping=damping)
        return replace(contact, damping=as_floats(contact.pair_damping(model)))

    def wrenches(self, model, contacts, X_WB, dt, taps):
        return body_wrenches(contacts, self.candidates, X_WB, self.forces(model, contacts, dt, taps))

    def forces(self, model: Model, contacts: ContactState, dt: Scalar, taps: Taps) -> Float[AnyArray, "nc 3"]:
        """Contact forces on the first bodies, in the contact frames [N]."""
        pair_index = np.array(self.candidates.pair_indices, dtype=int)
        mu = (
            candidate_friction(model.geometry, self.candidates) if self.friction is None else jnp.asarray(self.friction)
        )
        mu = mu[pair_index]

        def friction(normal_force):
            law = self._friction_law_per_contact(mu * normal_force, dt)
            return friction_forces(law, normal_force, contacts.velocity[:, 1:], mu)

        return tap_impulses(self._normal_forces(model, contacts, dt), friction, dt, taps, gap=contacts.gap) / dt

    def pair_stiffness(self, model: Model) -> Float[AnyArray, " npairs"]:
        """Stiffness k [N/mⁿ] of every pair, from its surfaces where they specify it."""
        return self._with_surfaces(self.stiffness, model.geometry.stiffness, self.sources.surface_stiffness_pairs, 1.0)

    def pair_damping(self, model: Model) -> Float[AnyArray, " npairs"]:
        """Damping d [N·s/mⁿ⁺¹] of every pair, from its surfaces where they specify it."""
        return self._with_surfaces(self.damping, model.geometry.damping, self.sources.surface_damping_pairs, 0.0)

    def _with_surfaces(
        self, values, surface_values, surface_pairs: tuple[int, ...], power: float
    ) -> Float[AnyArray, " npairs"]:
        """Values of all pairs; for `surface_pairs`, from the surfaces, with equal forces at `SURFACE_DEPTH`."""
        if not surface_pairs:
            return values
        scale = SURFACE_DEPTH ** (power - jnp.asarray(self.exponent)[np.array(surface_pairs, dtype=int)])
        converted = scale * pair_series(surface_values, self.candidates, surface_pairs)
        indices = np.arange(len(self.candidates.pairs))
        indices[list(surface_pairs)] = len(indices) + np.arange(len(surface_pairs))
        return jnp.concatenate([jnp.asarray(values), converted])[indices]

    def _normal_forces(self, model: Model, contacts: ContactState, dt: Scalar) -> Float[AnyArray, " nc"]:
        """Normal forces [N]."""
        pair_index = np.array(self.candidates.pair_indices, dtype=int)
        k, d, n = (
            jnp.asarray(x)[pair_index] for x in (self.pair_stiffness(model), self.pair_damping(model), self.exponent)
        )
        slope = k * n * WEIGHT_DEPTH ** (n - 1.0) if self.reach else None
        if self.stability_limits is not None:
            k, d = self._limit(self.stability_limits, -contacts.gap, k, d, n, dt)
        normal_force = hunt_crossley(-contacts.gap, -contacts.velocity[:, 0], k, d, n)
        if slope is None:
            return normal_force
        return with_precontact_gradient(normal_force, contacts.gap, slope, self.reach)

    def _limit(self, limits: StabilityLimits, depth, k, d, n, dt: Scalar) -> tuple[AnyArray, AnyArray]:
        """Stiffness and damping of contacts at their depths, within stability limits where not specified by the user.

        Beyond the depth at which the spring would be too stiff, force is linear in depth, and damping scales with it.
        """
        pair_index, power = np.array(self.candidates.pair_indices, dtype=int), _power(depth, n)
        depth_times_slope, max_depth_times_slope = (
            n * k * power,
            limits.max_stiffness(self.candidates, dt)[pair_index] * jnp.maximum(depth, 0.0),
        )
        is_specified = np.array(self.sources.is_stiffness_specified)[pair_index]
        is_steep = (depth_times_slope > max_depth_times_slope) & ~is_specified
        scale = jnp.where(is_steep, max_depth_times_slope / jnp.where(is_steep, depth_times_slope, 1.0), 1.0)
        limited = d * scale * limits.damping_scale(d * scale * power, self.candidates, dt)
        return k * scale, jnp.where(np.array(self.sources.is_damping_specified)[pair_index], d, limited)

    def _friction_law_per_contact(self, friction: Float[AnyArray, " nc"], dt: Scalar) -> FrictionLaw:
        """Friction law with one parameter value per contact, stable for these sliding friction forces [N]."""
        pair_index = np.array(self.candidates.pair_indices, dtype=int)
        law = jax.tree.map(lambda x: jnp.asarray(x)[pair_index], self.law)
        if self.stability_limits is None or all(self.sources.is_transition_specified):
            return law
        is_specified = np.array(self.sources.is_transition_specified)[pair_index]
        min_velocity = self.stability_limits.min_transition_velocity(friction, self.candidates, dt)
        return law.with_min_transition_velocity(jnp.where(is_specified, 0.0, min_velocity))


def hunt_crossley(depth: AnyArray, depth_rate: AnyArray, stiffness: AnyArray, damping: AnyArray, exponent: AnyArray):
    """Normal force [N] at a penetration [m] and its rate [m/s]."""
    return jnp.maximum((stiffness + damping * depth_rate) * _power(depth, exponent), 0.0)


def _power(depth: AnyArray, exponent: AnyArray) -> AnyArray:
    """Power of the depth, zero without penetration."""
    is_closed = depth > 0.0
    # a negative depth has no real power, and its derivatives would be NaN
    return jnp.where(is_closed, jnp.where(is_closed, depth, 1.0) ** exponent, 0.0)


def _pair_values_or_default(
    label: str, specified: PairParameters, candidates: Candidates, default: AnyArray | None
) -> AnyArray:
    return pair_values(label, default if specified is None else specified, candidates, default=default)


def _surface_pairs(values: AnyArray, candidates: Candidates, is_specified: tuple[bool, ...]) -> tuple[int, ...]:
    """Indices of the pairs whose value comes from a surface and is not specified by the user."""
    if isinstance(values, Tracer):
        return tuple(k for k, by_user in enumerate(is_specified) if not by_user)
    with jax.ensure_compile_time_eval():
        smaller = -np.asarray(pair_max(-np.asarray(values), candidates))
    return tuple(k for k, by_user in enumerate(is_specified) if not by_user and np.isfinite(smaller[k]))


def _warn_about_restitution(model: Model, candidates: Candidates) -> None:
    if isinstance(model.geometry.restitution, Tracer):
        return
    with jax.ensure_compile_time_eval():
        restitution = np.asarray(pair_max(model.geometry.restitution, candidates))
    bouncing = [pair.name for pair, value in zip(candidates.pairs, restitution, strict=True) if value > 0.0]
    if bouncing:
        warn_user(
            f"compliant contact does not use the restitution of {name_list(bouncing)} in model {model.name!r}: "
            "bouncing follows from stiffness and damping; impulse contact uses restitution"
        )


def _weights(model: Model, candidates: Candidates) -> np.ndarray:
    """Weight of the trees to which each pair's shapes belong [N]; at 9.81 m/s² if the model has no gravity."""
    mass = np.asarray(model.body.mass)
    roots = [chain[0] for chain in model.topology.root_paths]
    tree_mass = {root: sum(mass[k] for k, body_root in enumerate(roots) if body_root == root) for root in set(roots)}
    gravity = float(np.linalg.norm(np.asarray(model.gravity))) or 9.81

    def trees(pair) -> set[int]:
        bodies = (candidates.infos[shape].body for shape in (pair.first, pair.second))
        return {roots[body] for body in bodies if body != WORLD}

    return gravity * np.array([sum(tree_mass[root] for root in trees(pair)) for pair in candidates.pairs])

"""Compliant contact: forces of bodies that give way (Hunt & Crossley 1975).

At a penetration x > 0 that grows with ẋ the normal force is

    F = k xⁿ + d xⁿ ẋ,    and no less than zero: a contact never pulls.

With d = 3/2 c k a body that arrives at a low speed v leaves with (1 − c v) of it. Friction follows from the normal
force and the slip by one of the laws in `friction_laws.py`.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from hybridsim.contact.apparent_mass import inverse_masses
from hybridsim.contact.candidates import Candidates, candidates
from hybridsim.contact.contact import NOTHING, AbstractContact
from hybridsim.contact.forces import tapped_impulses
from hybridsim.contact.friction_laws import LAWS, Coulomb, FrictionLaw, friction_forces
from hybridsim.contact.from_distance import felt_from_distance
from hybridsim.contact.pair_numbers import PairNumbers, friction_of, per_pair
from hybridsim.contact.touch import Touch, body_wrenches
from hybridsim.core.types import AnyArray, Scalar
from hybridsim.model.model import Model
from hybridsim.model.topology import WORLD
from hybridsim.taps.taps import Taps

WEIGHT_DEPTH = 0.002
"""Least depth [m] at which one contact of default stiffness bears the weight of the two mechanisms that touch."""
STABLE_STEP = 3.0
"""That depth by what the weight would move the contact's apparent mass in a step; half of it is where steps diverge."""
DAMPING_PER_STIFFNESS = 1.0
"""Default damping by stiffness [s/m]."""
LEAST_TRANSITION = 0.01
"""Least default velocity [m/s] over which friction rises; otherwise a step under that weight just stops a slip."""


class CompliantContact(AbstractContact):
    """Contact by forces. Numbers per pair may be one for all, one each, or by name: `{"*": 1e5, "foot|mat": 1e4}`."""

    friction: PairNumbers = None
    """Coulomb's μ per pair; by default the model's for the pair, or the larger one of the two surfaces."""
    stiffness: PairNumbers = None
    """k [N/mⁿ] per pair; by default a contact bears its mechanisms at 2 mm, or at more if the time step wants it."""
    damping: PairNumbers = None
    """d [N·s/mⁿ⁺¹] per pair; by default 1 s/m times the stiffness."""
    exponent: PairNumbers = 1.5
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
    watched: Candidates = eqx.field(static=True, default=NOTHING)
    """The contacts that are watched; made by the simulator."""

    def __check_init__(self):
        if isinstance(self.law, str) and self.law not in LAWS:
            raise ValueError(f"unknown friction law {self.law!r}; choose one of {', '.join(LAWS)}")
        if not isinstance(self.law, str | FrictionLaw):
            raise TypeError(f"law is a friction law or its name, not {self.law!r}")
        if not self.reach >= 0.0:
            raise ValueError(f"the reach of derivatives must not be negative, not {self.reach} m")

    def bound(self, model: Model, dt: Scalar) -> "CompliantContact":
        pairs = candidates(model, only=self.only, exclude=self.exclude, self_collision=self.self_collision)
        exponent = per_pair("exponent", self.exponent, pairs)
        law = (LAWS[self.law]() if isinstance(self.law, str) else self.law).bound(pairs)
        friction = None if self.friction is None else per_pair("friction", self.friction, pairs)
        stiffness = self.stiffness
        if stiffness is None or law.wants_transition:
            # what one step of the whole weight would change a contact's velocity by
            of_shapes, _ = inverse_masses(model)
            weight = _weights(model, pairs)
            jump = np.array([of_shapes[pair.first] + of_shapes[pair.second] for pair in pairs.pairs])
            jump = jump * weight * float(dt)
            if stiffness is None:
                depth = np.maximum(WEIGHT_DEPTH, STABLE_STEP * jump * float(dt))
                stiffness = weight / depth**exponent
            slowed = (np.asarray(friction_of(model.geometry, pairs)) if friction is None else friction) * jump
            larger = jnp.maximum if isinstance(slowed, Tracer) else np.maximum
            law = law.with_transition(larger(LEAST_TRANSITION, slowed))
        stiffness = per_pair("stiffness", stiffness, pairs)
        damping = DAMPING_PER_STIFFNESS * stiffness if self.damping is None else self.damping
        return replace(
            self,
            friction=friction,
            stiffness=stiffness,
            damping=per_pair("damping", damping, pairs),
            exponent=exponent,
            law=law,
            watched=pairs,
        )

    def wrenches(self, model, touch, X_WB, dt, taps):
        return body_wrenches(touch, self.watched, X_WB, self.forces(model, touch, dt, taps))

    def forces(self, model: Model, touch: Touch, dt: Scalar, taps: Taps) -> Float[AnyArray, "nc 3"]:
        """Force on the first body of every contact, in the contact's frame [N]."""
        pairs, each = self.watched, np.array(self.watched.pair_of, dtype=int)
        k, d, n = (jnp.asarray(x)[each] for x in (self.stiffness, self.damping, self.exponent))
        mu = friction_of(model.geometry, pairs) if self.friction is None else jnp.asarray(self.friction)
        normal = hunt_crossley(-touch.gap, -touch.velocity[:, 0], k, d, n)
        if self.reach:
            normal = felt_from_distance(normal, touch.gap, k * n * self.reach ** (n - 1.0), self.reach)
        law = self.law
        assert isinstance(law, FrictionLaw)
        slip = touch.velocity[:, 1:]
        law = jax.tree.map(lambda x: jnp.asarray(x)[each] if jnp.ndim(x) else x, law)
        return tapped_impulses(normal, lambda normal: friction_forces(law, normal, slip, mu[each]), dt, taps) / dt


def hunt_crossley(depth: AnyArray, speed: AnyArray, stiffness: AnyArray, damping: AnyArray, exponent: AnyArray):
    """Normal force [N] at a penetration [m] that grows with a speed [m/s]."""
    touches = depth > 0.0
    # a power of zero would have an infinite derivative by the exponent
    power = jnp.where(touches, jnp.where(touches, depth, 1.0) ** exponent, 0.0)
    return jnp.maximum((stiffness + damping * speed) * power, 0.0)


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

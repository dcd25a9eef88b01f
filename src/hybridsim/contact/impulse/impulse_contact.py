"""Impulse contact: rigid bodies that push, rub and bounce, as a complementarity problem of velocities.

In every step the velocities that motion without contact would lead to are corrected by impulses, so that bodies do not
move into each other and friction opposes their slip (Stewart & Trinkle 1996, Anitescu & Potra 1997):

    0 ≤ x_n  ⊥  w_n + R x_n − aim ≥ 0,    |x_t| ≤ μ x_n opposing w_t,    w = J (v + M⁻¹ Jᵀ x).

What a contact aims at depends on its gap. Apart, it may close within the step, no further: −gap/dt. Penetrating, it
opens again as the stabilisation says. After an impact it opens with `restitution` times the speed at which it was met:
bodies first touch, in the step that would have taken them into each other, and part in the next.

The regularisation R = softness / mass + cfm of a normal row, with the apparent mass of the two bodies at q = 0, lets it
give way a little. It spreads the load over the corners of a box and makes few sweeps from the last step's impulses
converge: a stack of five boxes stays at rest with two.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.apparent_mass import apparent_inverse_masses
from hybridsim.contact.candidates import Candidates, find_candidates
from hybridsim.contact.contact import NO_CANDIDATES, AbstractContact
from hybridsim.contact.contact_state import StepKinematics, contact_jacobian
from hybridsim.contact.impulse.gauss_seidel import CONES
from hybridsim.contact.impulse.joint_constraints import JointConstraints, joint_constraint_rows, joint_constraints
from hybridsim.contact.impulse.solve import GRADIENTS, ConstraintRows, Mechanism, solve_contacts, velocity_change
from hybridsim.contact.impulse.stabilisation import Recovery, Stabilisation
from hybridsim.contact.pair_parameters import PairParameters, pair_friction, pair_max, pair_mean, per_pair
from hybridsim.contact.precontact_gradient import precontact_gradient
from hybridsim.contact.tapped_forces import tap_impulses
from hybridsim.core.numerics import TINY_COMPLIANCE
from hybridsim.core.types import AnyArray, Scalar
from hybridsim.model.coordinates import classical_acceleration
from hybridsim.model.geometry import DEFAULT_RECOVERY_TIME, DEFAULT_SOFTNESS
from hybridsim.model.model import Model

STEPS_OF_FALL = 2.0
"""Contacts that are met more slowly than by falling for so many time steps do not bounce."""

BOUNCES_FULLY = 0.1
"""Restitution from which on a contact that bounces does not give way at all; below, less and less."""


class ImpulseState(eqx.Module):
    """What the next step wants to know of this one."""

    impulse: Float[AnyArray, " n"]
    """Impulses to start from [N·s, and N·m·s for joints]."""
    approach: Float[AnyArray, " nc"]
    """Speed at which contacts were met that have not parted yet [m/s]."""


class InverseMass(eqx.Module):
    """What a unit of impulse changes velocities by at q = 0: the scale of softness."""

    pairs: Float[AnyArray, " npairs"] = eqx.field(default_factory=lambda: np.zeros(0))
    """Of the two shapes of each pair together [1/kg]."""
    limits: Float[AnyArray, " nl"] = eqx.field(default_factory=lambda: np.zeros(0))
    """Of each limited joint [1/kg or 1/(kg·m²)]."""


class ImpulseContact(AbstractContact):
    """Contact by impulses. Numbers per pair may be one for all, one each, or by name: `{"*": 0.5, "foot|ice": 0.1}`."""

    friction: PairParameters = None
    """Coulomb's μ per pair; by default the model's for the pair, or the larger one of the two surfaces."""
    restitution: PairParameters = None
    """Speed after an impact by the speed before it, per pair; by default the larger one of the two surfaces."""
    softness: PairParameters = None
    """By how much a contact gives way, by the apparent inverse mass, per pair; by default the surfaces' mean."""
    cfm: PairParameters = 0.0
    """Constraint force mixing [1/kg] per pair: what is added besides."""
    stabilisation: Stabilisation = Recovery()
    """How penetrations are undone: `Recovery`, `ERP` or `Baumgarte`."""
    sweeps: int = eqx.field(static=True, default=4)
    """Turns of every row in projected Gauss–Seidel; each step begins with the impulses of the last."""
    cone: str = eqx.field(static=True, default="pyramid")
    """Friction bounded along each tangent by itself (`pyramid`) or by a circle (`cone`)."""
    gradient: str = eqx.field(static=True, default="unrolled")
    """Derivative of the sweeps (`unrolled`) or of the solution (`implicit`)."""
    reach: float = eqx.field(static=True, default=0.0)
    """Distance [m] over which derivatives feel contacts that do not touch; values are never changed by it."""
    only: tuple[str, ...] = eqx.field(static=True, default=())
    """Pairs to watch; all that may touch by default. See `candidates`."""
    exclude: tuple[str, ...] = eqx.field(static=True, default=())
    """Pairs to leave out."""
    self_collision: bool = eqx.field(static=True, default=True)
    """Can bodies of one tree touch each other?"""
    joints: JointConstraints = JointConstraints()
    """Limits and dry friction of joints, which are rows of the same problem; found by the simulator."""
    inverse_mass: InverseMass = InverseMass()
    """How easily what touches is moved; found by the simulator."""
    candidates: Candidates = eqx.field(static=True, default=NO_CANDIDATES)
    """The contacts that are candidates; made by the simulator."""
    integrators = ("euler",)
    handles_joint_constraints = True

    def __check_init__(self):
        for what, value, choices in (("cone", self.cone, CONES), ("gradient", self.gradient, GRADIENTS)):
            if value not in choices:
                raise ValueError(f"unknown {what} {value!r}; choose one of {', '.join(choices)}")
        if not (isinstance(self.sweeps, int) and self.sweeps >= 1):
            raise ValueError(f"projected Gauss–Seidel needs a whole number of sweeps, at least one, not {self.sweeps}")
        if not isinstance(self.stabilisation, Stabilisation):
            raise TypeError(f"stabilisation is Recovery(), ERP() or Baumgarte(), not {self.stabilisation!r}")
        if not self.reach >= 0.0:
            raise ValueError(f"the reach of derivatives must not be negative, not {self.reach} m")

    def bind(self, model: Model, dt: Scalar) -> "ImpulseContact":
        del dt
        pairs = find_candidates(model, only=self.only, exclude=self.exclude, self_collision=self.self_collision)

        def numbers(what: str, **bounds) -> AnyArray | None:
            given = getattr(self, what)
            return None if given is None else per_pair(what, given, pairs, **bounds)

        given = {what: numbers(what) for what in ("friction", "softness", "cfm")}
        given["restitution"] = numbers("restitution", most=1.0)
        joints, (of_shapes, of_joints) = joint_constraints(model), apparent_inverse_masses(model)
        of_pairs = np.array([of_shapes[pair.first] + of_shapes[pair.second] for pair in pairs.pairs])
        return replace(
            self,
            **given,
            stabilisation=self.stabilisation.bind(pairs),
            joints=joints,
            inverse_mass=InverseMass(of_pairs, of_joints[list(joints.limited)]),
            candidates=pairs,
        )

    def initial_state(self) -> ImpulseState:
        """Memory at the start."""
        return ImpulseState(np.zeros(3 * self.candidates.nc + self.joints.count), np.zeros(self.candidates.nc))

    def accelerations(self, model, motion, bias, tau, memory, dt, taps):
        nc, touch = self.candidates.nc, motion.contacts
        if not nc + self.joints.count:
            return super().accelerations(model, motion, bias, tau, memory, dt, taps)
        rows = self._rows(model, motion, memory, dt)
        mechanism = Mechanism(model, motion.kin, motion.inertia, bias, tau)
        x, qdd = solve_contacts(mechanism, rows, memory.impulse, self.sweeps, self.gradient)
        force = x[: 3 * nc].reshape(nc, 3) / dt
        normal = self._felt(force[:, 0], touch.gap, mechanism, rows, dt)
        acting = tap_impulses(normal, lambda _: force[:, 1:], dt, taps, gap=touch.gap)
        # both differences are exactly zero, whatever the rounding, where only derivatives or nothing was changed
        if self.reach:
            qdd = qdd + velocity_change(mechanism, rows.J[: 3 * nc : 3], normal - force[:, 0])
        if taps.is_active:
            untouched = dt * jnp.concatenate([normal[:, None], force[:, 1:]], axis=1)
            qdd = qdd + velocity_change(mechanism, rows.J[: 3 * nc], (acting - untouched).reshape(-1)) / dt
        # what lies still falls within a step and is caught in the next: that is no impact
        falls = dt * jnp.sqrt(jnp.sum(jnp.square(jnp.asarray(model.gravity))))
        is_met = (x[: 3 * nc : 3] > 0.0) & (memory.approach == 0.0) & (-touch.velocity[:, 0] > STEPS_OF_FALL * falls)
        return qdd, ImpulseState(x, jnp.where(is_met, -touch.velocity[:, 0], 0.0))

    def _rows(self, model: Model, motion: StepKinematics, memory: ImpulseState, dt: Scalar) -> ConstraintRows:
        """The problem of one step."""
        pairs, geometry, touch = self.candidates, model.geometry, motion.contacts
        each = np.array(pairs.pair_indices, dtype=int)
        friction = pair_friction(geometry, pairs) if self.friction is None else jnp.asarray(self.friction)
        restitution = (
            pair_max(geometry.restitution, pairs) if self.restitution is None else jnp.asarray(self.restitution)
        )
        softness = pair_mean(geometry.softness, pairs) if self.softness is None else jnp.asarray(self.softness)
        joint = joint_constraint_rows(model, self.joints, motion.q, motion.qd, dt)
        J = jnp.concatenate([contact_jacobian(model, pairs, motion.kin, touch), joint.J])

        opening = self.stabilisation.target_velocity(touch.gap, touch.velocity[:, 0], dt, geometry, pairs)
        aim = jnp.where(touch.gap > 0.0, -touch.gap / dt, opening)
        # by the impact alone, so that nothing jumps where there is no restitution and it can be learnt from none
        bounces = memory.approach > 0.0
        aim = jnp.where(bounces, restitution[each] * memory.approach, aim)
        start = touch.velocity.at[:, 0].add(-aim).reshape(-1)
        start = jnp.concatenate([start, joint.J @ motion.qd - joint.target_velocity])

        soft = softness * self.inverse_mass.pairs + jnp.asarray(self.cfm)
        # friction does not give way, nor does what bounces, so that it bounces as far as it should
        giving = jnp.where(bounces, jnp.maximum(1.0 - restitution[each] / BOUNCES_FULLY, 0.0), 1.0)
        normals = jnp.zeros((pairs.nc, 3)).at[:, 0].set(giving * soft[each])
        limits = DEFAULT_SOFTNESS * self.inverse_mass.limits
        return ConstraintRows(
            J=J,
            b=start + J @ (dt * classical_acceleration(model, motion.qd, np.zeros(model.nv))),
            dt=dt,
            cfm=jnp.concatenate([normals.reshape(-1), limits, np.zeros(len(self.joints.frictional))]) + TINY_COMPLIANCE,
            friction=friction[each],
            lower=joint.lower,
            upper=joint.upper,
            cone=self.cone,
        )

    def _felt(self, normal_force, gap, mechanism: Mechanism, rows: ConstraintRows, dt: Scalar):
        """Normal forces whose derivatives know of contacts that do not touch."""
        if not self.reach:
            return normal_force
        # were it closed, a contact would undo a change of its gap within the recovery time
        u, k = jax.vmap(mechanism.factors().half_solve)(rows.J[: 3 * self.candidates.nc : 3])
        inverse_mass = jnp.sum(u * k, axis=1) + TINY_COMPLIANCE
        return precontact_gradient(normal_force, gap, 1.0 / (inverse_mass * DEFAULT_RECOVERY_TIME * dt), self.reach)

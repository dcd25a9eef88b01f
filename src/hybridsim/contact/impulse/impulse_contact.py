"""Impulse contact: unilateral contact, Coulomb friction and restitution as a velocity-level complementarity problem.

In every step, impulses correct the velocities of the unconstrained motion so that bodies do not penetrate and friction
opposes slip (Stewart & Trinkle 1996, Anitescu & Potra 1997):

    0 ≤ x_n  ⊥  v_n + R x_n − target ≥ 0,    |x_t| ≤ μ x_n opposing v_t,    v = J (q̇ + M⁻¹ Jᵀ x).

The target velocity of a contact depends on its gap. An open contact may close within the step but not further:
−gap/dt. A penetrating contact opens as the stabilization specifies. After an impact, a contact opens at `restitution`
times the approach speed: the gap closes in the step of the impact, and the bodies separate in the next.

The regularization R = softness · w + cfm of a normal row, with w the apparent inverse mass of the two bodies at q = 0,
makes it slightly compliant. This distributes the load over the corners of a box, so that a few warm-started sweeps are
enough: a stack of five boxes stays at rest with two.
"""

from dataclasses import replace
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.apparent_mass import apparent_inverse_masses
from hybridsim.contact.candidates import Candidates, find_candidates
from hybridsim.contact.choices import STABILIZATIONS
from hybridsim.contact.contact import NO_CANDIDATES, AbstractContact
from hybridsim.contact.contact_state import ContactState, contact_jacobian
from hybridsim.contact.impulse.gauss_seidel import CONES
from hybridsim.contact.impulse.joint_constraints import JointConstraints, joint_constraint_rows, joint_constraints
from hybridsim.contact.impulse.solve import (
    GRADIENTS,
    ConstraintRows,
    solve_contacts,
    velocity_change,
)
from hybridsim.contact.impulse.stabilization import RecoveryTime, Stabilization
from hybridsim.contact.pair_parameters import (
    PairParameters,
    candidate_friction,
    pair_max,
    pair_mean,
    pair_parameter,
    pair_values,
)
from hybridsim.contact.precontact_gradient import with_precontact_gradient
from hybridsim.contact.tapped_forces import tap_impulses
from hybridsim.core.choices import check_choice
from hybridsim.core.derived_table import HIDDEN
from hybridsim.core.numerics import TINY_COMPLIANCE
from hybridsim.core.parameter_field import ADDS_ENERGY
from hybridsim.core.specification import Choice, Count, Nonnegative, OneOf
from hybridsim.core.types import AnyArray, Q, Qd, Scalar
from hybridsim.dynamics.equations_of_motion import EquationsOfMotion
from hybridsim.dynamics.kinematics import Kinematics
from hybridsim.model.coordinates import classical_acceleration
from hybridsim.model.geometry import DEFAULT_RECOVERY_TIME, DEFAULT_SOFTNESS
from hybridsim.model.model import Model

MIN_IMPACT_FALL_STEPS = 2.0
"""Minimum approach speed of an impact, in time steps of free fall; slower contacts do not bounce."""

RIGID_RESTITUTION = 0.1
"""Smallest restitution at which a bouncing contact is rigid; below it, softness decreases linearly with restitution."""


class ImpulseState(eqx.Module):
    """Internal state of impulse contact."""

    impulse: Float[AnyArray, " n"]
    """Warm start of the solver: impulses of the previous step [N·s, and N·m·s for joints]."""
    approach: Float[AnyArray, " nc"]
    """Approach speed [m/s] of contacts with an impact in the previous step, zero for all others."""


class InverseMass(eqx.Module):
    """Apparent inverse masses at q = 0, which scale softness."""

    pairs: Float[AnyArray, " npairs"] = eqx.field(default_factory=lambda: np.zeros(0))
    """Of every pair: sum over its two shapes [1/kg]."""
    limits: Float[AnyArray, " nl"] = eqx.field(default_factory=lambda: np.zeros(0))
    """Of every degree of freedom with limits [1/kg or 1/(kg·m²)]."""


_ILL_POSED = "a negative value makes the contact problem ill-posed"


class ImpulseContact(AbstractContact):
    """Impulse contact.

    Parameters of pairs are specified as one value for all, one value each, or by name: `{"*": 0.5, "foot|ice": 0.1}`.
    A default comes from both surfaces, or from the one with the higher priority if their priorities differ.
    """

    friction: PairParameters = pair_parameter(
        None, "-", "Coulomb friction coefficient of a candidate pair.", reason=ADDS_ENERGY
    )
    """Friction coefficient μ per pair; by default the model's value for the pair, or the larger surface value."""
    restitution: PairParameters = pair_parameter(
        None,
        "-",
        "Coefficient of restitution.",
        reason="a coefficient of restitution is between zero and one",
        upper_limit=1.0,
    )
    """Coefficient of restitution per pair; by default the larger of both surface values."""
    softness: PairParameters = pair_parameter(
        None, "-", "Contact softness, relative to the apparent inverse mass.", reason=_ILL_POSED
    )
    """Compliance relative to the apparent inverse mass, per pair; by default the mean of both surface values."""
    cfm: PairParameters = pair_parameter(0.0, "1/kg", "Constraint force mixing.", reason=_ILL_POSED, typical=0.01)
    """Constraint force mixing [1/kg] per pair, added to the compliance that follows from the softness."""
    stabilization: Annotated[Stabilization, Choice("kind", lambda: STABILIZATIONS, base=lambda: Stabilization)] = (
        RecoveryTime()
    )
    """Target velocity of penetrating contacts: `RecoveryTime`, `ERP` or `Baumgarte`."""
    sweeps: Count = eqx.field(static=True, default=4)
    """Projected Gauss–Seidel sweeps per step, warm-started with the impulses of the previous step."""
    cone: Annotated[str, OneOf(lambda: CONES)] = eqx.field(static=True, default="pyramidal")
    """Friction cone: bounded along each tangent separately (`pyramidal`) or by a circle (`circular`)."""
    gradient: Annotated[str, OneOf(lambda: GRADIENTS)] = eqx.field(static=True, default="unrolled")
    """Derivative of the sweeps (`unrolled`) or of the converged solution (`implicit`)."""
    reach: Nonnegative = eqx.field(static=True, default=0.0)
    """Decay length [m] of the derivatives of open contacts; values are not affected."""
    only: tuple[str, ...] = eqx.field(static=True, default=())
    """Pairs to simulate; by default all candidate pairs. See `find_candidates`."""
    exclude: tuple[str, ...] = eqx.field(static=True, default=())
    """Pairs to exclude."""
    self_collision: bool = eqx.field(static=True, default=True)
    """Whether bodies of one tree can collide with each other."""
    joints: JointConstraints = eqx.field(default=JointConstraints(), metadata=HIDDEN)
    """Joint limits and dry joint friction, which are rows of the same problem; set by `bind`."""
    inverse_mass: InverseMass = eqx.field(default=InverseMass(), metadata=HIDDEN)
    """Apparent inverse masses of pairs and joints; set by `bind`."""
    candidates: Candidates = eqx.field(static=True, default=NO_CANDIDATES, metadata=HIDDEN)
    """Candidate pairs; set by `bind`."""
    integrators = ("euler",)
    handles_joint_constraints = True

    def __check_init__(self):
        for setting, value, choices in (("cone", self.cone, CONES), ("gradient", self.gradient, GRADIENTS)):
            check_choice(setting, value, choices)
        if not (isinstance(self.sweeps, int) and self.sweeps >= 1):
            raise ValueError(f"sweeps must be a positive integer, not {self.sweeps}")
        if not isinstance(self.stabilization, Stabilization):
            raise TypeError(f"stabilization must be RecoveryTime(), ERP() or Baumgarte(), not {self.stabilization!r}")
        if not self.reach >= 0.0:
            raise ValueError(f"reach must be nonnegative, not {self.reach} m")

    def bind(self, model: Model, dt: Scalar) -> "ImpulseContact":
        del dt
        candidates = find_candidates(model, only=self.only, exclude=self.exclude, self_collision=self.self_collision)

        def values(field: str, **bounds) -> AnyArray | None:
            specified = getattr(self, field)
            return None if specified is None else pair_values(field, specified, candidates, **bounds)

        parameters = {field: values(field) for field in ("friction", "softness", "cfm")}
        parameters["restitution"] = values("restitution", max_value=1.0)
        joints, (shape_inverse_masses, joint_inverse_masses) = joint_constraints(model), apparent_inverse_masses(model)
        pair_inverse_masses = np.array(
            [shape_inverse_masses[pair.first] + shape_inverse_masses[pair.second] for pair in candidates.pairs]
        )
        return replace(
            self,
            **parameters,
            stabilization=self.stabilization.bind(candidates),
            joints=joints,
            inverse_mass=InverseMass(pair_inverse_masses, joint_inverse_masses[list(joints.limited)]),
            candidates=candidates,
        )

    def initial_state(self) -> ImpulseState:
        """Internal state at the beginning of a simulation: no impulses."""
        return ImpulseState(np.zeros(3 * self.candidates.nc + self.joints.count), np.zeros(self.candidates.nc))

    @property
    def has_constraints(self) -> bool:
        return self.candidates.nc + self.joints.count > 0

    def solve_constraints(self, equations, q, qd, contacts, aux, dt, taps):
        nc, model = self.candidates.nc, equations.model
        rows = self._rows(model, q, qd, equations.kin, contacts, aux, dt)
        x, qdd = solve_contacts(equations, rows, aux.impulse, self.sweeps, self.gradient)
        force = x[: 3 * nc].reshape(nc, 3) / dt
        normal = self._with_precontact_gradient(force[:, 0], contacts.gap, equations, rows, dt)
        tapped = tap_impulses(normal, lambda _: force[:, 1:], dt, taps, gap=contacts.gap)
        # both differences are exactly zero, without rounding error, where taps and gradients leave values unchanged
        if self.reach:
            qdd = qdd + velocity_change(equations, rows.J[: 3 * nc : 3], normal - force[:, 0])
        if taps.is_active:
            untapped = dt * jnp.concatenate([normal[:, None], force[:, 1:]], axis=1)
            qdd = qdd + velocity_change(equations, rows.J[: 3 * nc], (tapped - untapped).reshape(-1)) / dt
        # a body at rest may fall for a step and be stopped in the next, which is not an impact
        fall_speed = dt * jnp.sqrt(jnp.sum(jnp.square(jnp.asarray(model.gravity))))
        is_impact = (
            (x[: 3 * nc : 3] > 0.0)
            & (aux.approach == 0.0)
            & (-contacts.velocity[:, 0] > MIN_IMPACT_FALL_STEPS * fall_speed)
        )
        return qdd, ImpulseState(x, jnp.where(is_impact, -contacts.velocity[:, 0], 0.0))

    def _rows(
        self, model: Model, q: Q, qd: Qd, kin: Kinematics, contacts: ContactState, aux: ImpulseState, dt: Scalar
    ) -> ConstraintRows:
        """Constraint rows of one step."""
        candidates, geometry = self.candidates, model.geometry
        pair_index = np.array(candidates.pair_indices, dtype=int)
        friction = candidate_friction(geometry, candidates) if self.friction is None else jnp.asarray(self.friction)
        restitution = (
            pair_max(geometry.restitution, candidates) if self.restitution is None else jnp.asarray(self.restitution)
        )
        softness = pair_mean(geometry.softness, candidates) if self.softness is None else jnp.asarray(self.softness)
        joint = joint_constraint_rows(model, self.joints, q, qd, dt)
        J = jnp.concatenate([contact_jacobian(model, candidates, kin, contacts), joint.J])

        gap, gap_velocity = contacts.gap, contacts.velocity[:, 0]
        opening_velocity = self.stabilization.target_velocity(gap, gap_velocity, dt, geometry, candidates)
        target = jnp.where(gap > 0.0, -gap / dt, opening_velocity)
        # does not depend on the restitution, so the step is continuous at zero, which may be an initial value of a fit
        is_bouncing = aux.approach > 0.0
        target = jnp.where(is_bouncing, restitution[pair_index] * aux.approach, target)
        velocity = contacts.velocity.at[:, 0].add(-target).reshape(-1)
        velocity = jnp.concatenate([velocity, joint.J @ qd - joint.target_velocity])

        compliance = softness * self.inverse_mass.pairs + jnp.asarray(self.cfm)
        # friction rows have no compliance, and neither do bouncing contacts, so that restitution is accurate
        factor = jnp.where(is_bouncing, jnp.maximum(1.0 - restitution[pair_index] / RIGID_RESTITUTION, 0.0), 1.0)
        contact_cfm = jnp.zeros((candidates.nc, 3)).at[:, 0].set(factor * compliance[pair_index])
        limit_cfm = DEFAULT_SOFTNESS * self.inverse_mass.limits
        friction_cfm = np.zeros(len(self.joints.frictional))
        return ConstraintRows(
            J=J,
            b=velocity + J @ (dt * classical_acceleration(model, qd, np.zeros(model.nv))),
            dt=dt,
            cfm=jnp.concatenate([contact_cfm.reshape(-1), limit_cfm, friction_cfm]) + TINY_COMPLIANCE,
            friction=friction[pair_index],
            lower=joint.lower,
            upper=joint.upper,
            cone=self.cone,
        )

    def _with_precontact_gradient(
        self, normal_force, gap, equations: EquationsOfMotion, rows: ConstraintRows, dt: Scalar
    ):
        """Unchanged normal forces, with derivatives of open contacts if `reach` is positive."""
        if not self.reach:
            return normal_force
        # a closed contact corrects a change of its gap with the recovery time as time constant
        u, k = jax.vmap(equations.mass_factors().half_solve)(rows.J[: 3 * self.candidates.nc : 3])
        inverse_mass = jnp.sum(u * k, axis=1) + TINY_COMPLIANCE
        return with_precontact_gradient(
            normal_force, gap, 1.0 / (inverse_mass * DEFAULT_RECOVERY_TIME * dt), self.reach
        )

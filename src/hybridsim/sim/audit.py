"""Energy audit: how much energy every graft brings into a motion, and how much it takes out.

A graft on forces has a power: what it adds to the force, or puts in its place, times the velocity at which that acts.
Over a motion, what is positive is energy injected, what is negative energy removed. Grafts on what is no force have a
power all the same: what they change about accelerations changes the kinetic energy, at the rate q̇ᵀ M Δq̈; it is found by
leaving them out. So are grafts on impulses, which act while velocities jump: energies after the step are compared.

Powers are those of continuous time. Where a time step is too long for what a graft does, a motion gains energy that no
power accounts for; `gained` shows that.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.core.types import require_float64
from hybridsim.dynamics.energy import gravity_energy, kinetic_energy, spring_energy
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.sim.forward import forward
from hybridsim.sim.integrate import next_state
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State
from hybridsim.taps.blueprint import Blueprint, Graft
from hybridsim.taps.passivity import VELOCITY

CONJUGATE_VELOCITY = {
    **{force: (velocity, 1.0) for force, velocity in VELOCITY.items()},
    "body.bias_force": ("body.twist", -1.0),
    "contact.normal_force": ("contact.gap_velocity", 1.0),
}
"""Forces, the velocities that they act along, and which way."""
AFTER_ACCELERATIONS = "step."
"""How quantities begin that no evaluation of the dynamics sees: energies after a step are compared instead."""


class Audit(NamedTuple):
    """Energy that grafts bring in and take out."""

    power: Float[Array, "*batch T G"]
    """Of every graft at the beginning of every step, and at the end of the last [W]."""
    injected: Float[Array, "*batch G"]
    """Integral of what is positive of it [J]."""
    removed: Float[Array, "*batch G"]
    """Integral of what is negative, with the sign turned [J]."""
    energy_change: Float[Array, "*batch"]
    """Mechanical energy at the end less that at the start: all grafts, motors and losses together [J]."""


def audit(sim: Simulator, state: State, inputs: Inputs) -> Audit:
    """Follow a motion, and add up what every graft does.

    Args:
        sim: the simulator.
        state: where to start.
        inputs: whose leaves have a leading axis of time steps.
    """
    require_float64()
    power, gained = _followed(sim, state, inputs)
    dt = jnp.asarray(sim.dt)

    # what acts after the accelerations are known acts once a step, and not at the end
    jumps = np.array([_acts_after(sim, graft) for graft in sim.blueprint.grafts], dtype=bool)

    def integral(values):
        ends = jnp.where(jumps, values[-1], 0.5 * (values[0] + values[-1]))
        return dt * (values.sum(axis=0) - ends)

    return Audit(power, integral(jnp.maximum(power, 0.0)), integral(jnp.maximum(-power, 0.0)), gained)


def graft_powers(sim: Simulator, state: State, inputs: Inputs) -> Float[Array, " G"]:
    """Power of every graft at a state [W]."""
    taps = sim.open_taps(state, record=True)
    seen = forward(sim, state, inputs, taps)
    record = taps.record()
    found = []
    for graft, changes in zip(sim.blueprint.grafts, taps.changes(), strict=True):
        if _acts_after(sim, graft):
            plain = _without(sim, graft)
            found.append((_energy_after(sim, state, inputs) - _energy_after(plain, state, inputs)) / sim.dt)
        elif all(name in CONJUGATE_VELOCITY for name in changes):
            found.append(sum((_power(record, name, change) for name, change in changes.items()), jnp.zeros(())))
        else:
            plain = _without(sim, graft)
            change = seen.qdd - forward(plain, state, inputs, plain.open_taps(state)).qdd
            found.append(record["joint.qd"] @ record["joint.mass_matrix"] @ change)
    return jnp.stack(found) if found else jnp.zeros(0)


def _acts_after(sim: Simulator, graft: Graft) -> bool:
    """Does what a graft does show in the next state only?"""
    late = (AFTER_ACCELERATIONS, "contact.") if isinstance(sim.contact, ImpulseContact) else AFTER_ACCELERATIONS
    return any(address.startswith(late) for address in graft.outputs)


def _power(record: dict, name: str, change: Float[Array, "..."]) -> Float[Array, ""]:
    along, sign = CONJUGATE_VELOCITY[name]
    return sign * jnp.sum(change * record[along])


def _without(sim: Simulator, left_out: Graft) -> Simulator:
    """The simulator without one of its grafts."""
    others = [graft for graft in sim.blueprint.grafts if graft is not left_out]
    return eqx.tree_at(lambda s: s.blueprint, sim, Blueprint(*others, inputs=dict(sim.blueprint.inputs)))


def _energy_after(sim: Simulator, state: State, inputs: Inputs) -> Float[Array, ""]:
    """Mechanical energy one step later [J]."""
    return _energy(sim, next_state(sim, state, inputs))


def _energy(sim: Simulator, state: State) -> Float[Array, ""]:
    kin = kinematics(sim.model, state.q, state.qd)
    return kinetic_energy(sim.model, kin, state.qd) + gravity_energy(sim.model, kin) + spring_energy(sim.model, state.q)


@eqx.filter_jit
def _followed(sim: Simulator, state: State, inputs: Inputs) -> tuple[Float[Array, "T G"], Float[Array, ""]]:
    def step(state, now):
        return next_state(sim, state, now), graft_powers(sim, state, now)

    last, powers = jax.lax.scan(step, state, inputs)
    final = jax.tree.map(lambda x: x[-1], inputs)
    gained = _energy(sim, last) - _energy(sim, state)
    return jnp.concatenate([powers, graft_powers(sim, last, final)[None]]), gained

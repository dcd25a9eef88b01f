"""Energy audit: energy injected and removed by every graft along a trajectory.

The power of a graft on a force is the force that it adds, or substitutes, times the power-conjugate velocity.
Integrated over a trajectory, positive power is energy injected, negative power energy removed. Grafts on other
quantities change the accelerations and thus the kinetic energy, at the rate q̇ᵀ M Δq̈, where Δq̈ is the difference from an
evaluation without the graft. Grafts on impulses act on velocity jumps: energies after a step with and without the graft
are compared.

Powers are those of continuous time. If the time step is too long for a graft, the trajectory gains energy that no power
accounts for; `energy_change` shows that.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hybridsim.core.types import require_float64
from hybridsim.dynamics.energy import gravity_energy, kinetic_energy, spring_energy
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.sim.forward import forward
from hybridsim.sim.integrate import next_state
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State
from hybridsim.taps.blueprint import Blueprint, Graft
from hybridsim.taps.passivity import CONJUGATE_VELOCITY

SIGNED_CONJUGATE_VELOCITY = {
    **{force: (velocity, 1.0) for force, velocity in CONJUGATE_VELOCITY.items()},
    "body.bias_wrench": ("body.twist", -1.0),
    "contact.normal_force": ("contact.gap_velocity", 1.0),
}
"""Power-conjugate velocity of each force, and the sign of their product."""
STEP_PREFIX = "step."
"""Prefix of quantities computed after the accelerations; for grafts on them, energies after a step are compared."""


class Audit(NamedTuple):
    """Power and energy of grafts over a trajectory."""

    power: Float[Array, "*batch T G"]
    """Power of every graft at the beginning of every step and at the end of the last [W]."""
    injected: Float[Array, "*batch G"]
    """Integral of the positive part of the power [J]."""
    removed: Float[Array, "*batch G"]
    """Integral of the negative part of the power, as a positive value [J]."""
    energy_change: Float[Array, "*batch"]
    """Final minus initial mechanical energy, from grafts, actuators and dissipation together [J]."""


def audit(sim: Simulator, state: State, inputs: Inputs) -> Audit:
    """Energy audit of every graft over a simulated trajectory.

    Args:
        sim: the simulator.
        state: initial state.
        inputs: inputs with a leading time axis.
    """
    require_float64()
    power, energy_change = _trajectory_powers(sim, state, inputs)
    dt = jnp.asarray(sim.dt)

    # grafts that act once per step do not act at the final state
    once_per_step = np.array([_acts_once_per_step(sim, graft) for graft in sim.blueprint.grafts], dtype=bool)

    def integral(values):
        ends = jnp.where(once_per_step, values[-1], 0.5 * (values[0] + values[-1]))
        return dt * (values.sum(axis=0) - ends)

    return Audit(power, integral(jnp.maximum(power, 0.0)), integral(jnp.maximum(-power, 0.0)), energy_change)


def graft_powers(sim: Simulator, state: State, inputs: Inputs) -> Float[Array, " G"]:
    """Power of every graft at a state [W]."""
    taps = sim.open_taps(state, record=True)
    evaluation = forward(sim, state, inputs, taps)
    values = taps.published_values()
    powers = []
    for graft, changes in zip(sim.blueprint.grafts, taps.changes(), strict=True):
        if _acts_once_per_step(sim, graft):
            without_graft = _remove_graft(sim, graft)
            powers.append((_energy_after(sim, state, inputs) - _energy_after(without_graft, state, inputs)) / sim.dt)
        elif all(name in SIGNED_CONJUGATE_VELOCITY for name in changes):
            powers.append(sum((_power(values, name, change) for name, change in changes.items()), jnp.zeros(())))
        else:
            without_graft = _remove_graft(sim, graft)
            change = evaluation.qdd - forward(without_graft, state, inputs, without_graft.open_taps(state)).qdd
            powers.append(values["joint.qd"] @ values["joint.mass_matrix"] @ change)
    return jnp.stack(powers) if powers else jnp.zeros(0)


def _acts_once_per_step(sim: Simulator, graft: Graft) -> bool:
    """Whether a graft acts on a quantity of the whole step: the next state or, with impulse contact, contact."""
    prefixes = (STEP_PREFIX, "contact.") if sim.contact.has_constraints else STEP_PREFIX
    return any(address.startswith(prefixes) for address in graft.outputs)


def _power(values: dict, name: str, change: Float[Array, "..."]) -> Float[Array, ""]:
    velocity, sign = SIGNED_CONJUGATE_VELOCITY[name]
    return sign * jnp.sum(change * values[velocity])


def _remove_graft(sim: Simulator, removed: Graft) -> Simulator:
    """Remove one graft from a simulator."""
    remaining = [graft for graft in sim.blueprint.grafts if graft is not removed]
    return eqx.tree_at(lambda s: s.blueprint, sim, Blueprint(*remaining, inputs=dict(sim.blueprint.inputs)))


def _energy_after(sim: Simulator, state: State, inputs: Inputs) -> Float[Array, ""]:
    """Mechanical energy one step later [J]."""
    return _energy(sim, next_state(sim, state, inputs))


def _energy(sim: Simulator, state: State) -> Float[Array, ""]:
    kin = kinematics(sim.model, state.q, state.qd)
    return kinetic_energy(sim.model, kin, state.qd) + gravity_energy(sim.model, kin) + spring_energy(sim.model, state.q)


@eqx.filter_jit
def _trajectory_powers(sim: Simulator, state: State, inputs: Inputs) -> tuple[Float[Array, "T G"], Float[Array, ""]]:
    """Power of every graft along a trajectory, and the change of the mechanical energy."""

    def step(state, inputs):
        return next_state(sim, state, inputs), graft_powers(sim, state, inputs)

    last, powers = jax.lax.scan(step, state, inputs)
    final = jax.tree.map(lambda x: x[-1], inputs)
    energy_change = _energy(sim, last) - _energy(sim, state)
    return jnp.concatenate([powers, graft_powers(sim, last, final)[None]]), energy_change

"""Integrators: from one state to the next.

| name     | velocity                                              | order | evaluations of `forward`   |
|----------|-------------------------------------------------------|-------|----------------------------|
| euler    | explicit, then the position with the new velocity     | 1     | 1                          |
| rk4      | classical Runge–Kutta, quaternions renormalised       | 4     | 4                          |
| implicit | (1 − dt ∂qdd/∂qd) Δqd = dt qdd, then as euler         | 1     | 1, and its Jacobian in qd  |

Semi-implicit Euler is the papers' choice. The implicit variant includes every velocity dependence there is: joint
damping, Coriolis forces, servos and grafts.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hybridsim.core.types import Qd, Qdd
from hybridsim.model.coordinates import (
    classical_acceleration,
    coordinate_rate,
    normalize,
    retract,
    transport_velocity,
)
from hybridsim.sim.forward import Evaluation, forward
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State
from hybridsim.taps.taps import Taps


def next_state(sim: Simulator, state: State, inputs: Inputs) -> State:
    """The state one time step later."""
    taps = sim.open_taps(state)
    q, qd, seen = _STEPS[sim.integrator](sim, state, inputs, taps)
    qd = taps("step.qd_next", qd)
    q = taps("step.q_next", q, partial(retract, sim.model))
    return State(q, qd, state.t + sim.dt, _advanced_aux(sim, state, seen, taps))


def _euler(sim: Simulator, state: State, inputs: Inputs, taps: Taps):
    seen = forward(sim, state, inputs, taps)
    return *_moved(sim, state, sim.dt * classical_acceleration(sim.model, state.qd, seen.qdd)), seen


def _implicit(sim: Simulator, state: State, inputs: Inputs, taps: Taps):
    def acceleration(qd: Qd) -> Qdd:
        at_qd = State(state.q, qd, state.t, state.aux)
        return classical_acceleration(sim.model, qd, forward(sim, at_qd, inputs, sim.open_taps(state)).qdd)

    slope = jax.jacfwd(acceleration)(state.qd)
    seen = forward(sim, state, inputs, taps)
    step = sim.dt * classical_acceleration(sim.model, state.qd, seen.qdd)
    return *_moved(sim, state, jnp.linalg.solve(jnp.eye(sim.model.nv) - sim.dt * slope, step)), seen


def _moved(sim: Simulator, state: State, dqd: Qd):
    """Coordinates and velocities after the velocity changed by `dqd` and the position followed it."""
    qd = state.qd + dqd
    q = normalize(sim.model, retract(sim.model, state.q, sim.dt * qd))
    return q, transport_velocity(sim.model, qd, sim.dt)


def _rk4(sim: Simulator, state: State, inputs: Inputs, taps: Taps):
    # quaternions are integrated as four plain numbers: the rate is smooth off the unit sphere, so the order stays four
    model, dt = sim.model, sim.dt

    @jax.jit  # traced once for all stages
    def evaluated(q, qd, t):
        return forward(sim, State(q, qd, t, state.aux), inputs, sim.open_taps(state))

    def rates(q, qd, t):
        return coordinate_rate(model, q, qd), evaluated(q, qd, t).qdd

    def along(k, h):
        return state.q + h * k[0], state.qd + h * k[1], state.t + h

    def stage(carry, coefficients):
        k, total = carry
        reach, weight = coefficients
        k = rates(*along(k, reach * dt))
        return (k, jax.tree.map(lambda a, b: a + weight * b, total, k)), None

    # the first stage stands apart for its taps, if there are any; a loop over the others is compiled once
    seen = forward(sim, state, inputs, taps) if taps.is_active else evaluated(state.q, state.qd, state.t)
    k1 = coordinate_rate(model, state.q, state.qd), seen.qdd
    (_, total), _ = jax.lax.scan(stage, (k1, k1), (np.array([0.5, 0.5, 1.0]), np.array([2.0, 2.0, 1.0])))
    q, qd, _ = along(total, dt / 6.0)
    return normalize(model, q), qd, seen


def _advanced_aux(sim: Simulator, state: State, seen: Evaluation, taps: Taps) -> dict:
    """Memory one step later; it sees what the first evaluation of the step saw, grafts included."""
    memory = state.aux["actuation"]
    new: dict[str, Any] = {"actuation": sim.actuation.advance(sim.model, seen.q, seen.qd, seen.u, memory, sim.dt)}
    if "history" in state.aux:
        new["history"] = taps.remembered()
    return state.aux | (new if seen.contact_aux is None else new | {"contact": seen.contact_aux})


_STEPS = {"euler": _euler, "rk4": _rk4, "implicit": _implicit}

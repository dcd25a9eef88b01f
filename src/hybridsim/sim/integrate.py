"""Integrators: one time step of the state.

| name     | velocity                                              | order | evaluations of `forward`   |
|----------|-------------------------------------------------------|-------|----------------------------|
| euler    | explicit; position from the new velocity              | 1     | 1                          |
| rk4      | classical Runge–Kutta, quaternions renormalized       | 4     | 4                          |
| implicit | (1 − dt ∂qdd/∂qd) Δqd = dt qdd, then as euler         | 1     | 1, and its derivative ∂/∂qd |

Semi-implicit Euler is the integrator of NeuralSim (Heiden et al. 2021) and of Tiny Differentiable Simulator. The
implicit variant linearizes all velocity-dependent forces: joint damping, Coriolis forces, servos and grafts.

`sim/choices.py` registers them.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hybridsim.core.types import Q, Qd, Qdd
from hybridsim.model.coordinates import (
    classical_acceleration,
    coordinate_rate,
    normalize,
    reexpress_velocity,
    retract,
)
from hybridsim.sim.choices import INTEGRATORS
from hybridsim.sim.forward import Evaluation, forward
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State
from hybridsim.taps.taps import Taps

Advance = tuple[Q, Qd, Evaluation]
"""Coordinates and velocities at the end of a time step, and the evaluation of the dynamics at its beginning."""


def next_state(sim: Simulator, state: State, inputs: Inputs) -> State:
    """State one time step later."""
    taps = sim.open_taps(state)
    q, qd, evaluation = INTEGRATORS[sim.integrator](sim, state, inputs, taps)
    qd = taps("step.qd_next", qd)
    q = taps("step.q_next", q, partial(retract, sim.model))
    return State(q, qd, state.t + sim.dt, _next_aux(sim, state, evaluation, taps))


def euler(sim: Simulator, state: State, inputs: Inputs, taps: Taps) -> Advance:
    """Semi-implicit Euler."""
    evaluation = forward(sim, state, inputs, taps)
    delta_qd = sim.dt * classical_acceleration(sim.model, state.qd, evaluation.qdd)
    return *_semi_implicit_update(sim, state, delta_qd), evaluation


def implicit(sim: Simulator, state: State, inputs: Inputs, taps: Taps) -> Advance:
    """Semi-implicit Euler, implicit in the velocities."""

    def acceleration(qd: Qd) -> Qdd:
        at_qd = State(state.q, qd, state.t, state.aux)
        return classical_acceleration(sim.model, qd, forward(sim, at_qd, inputs, sim.open_taps(state)).qdd)

    jacobian = jax.jacfwd(acceleration)(state.qd)
    evaluation = forward(sim, state, inputs, taps)
    explicit = sim.dt * classical_acceleration(sim.model, state.qd, evaluation.qdd)
    delta_qd = jnp.linalg.solve(jnp.eye(sim.model.nv) - sim.dt * jacobian, explicit)
    return *_semi_implicit_update(sim, state, delta_qd), evaluation


def _semi_implicit_update(sim: Simulator, state: State, delta_qd: Qd):
    """Coordinates and velocities after the velocity changes by `delta_qd`; positions use the new velocity."""
    qd = state.qd + delta_qd
    q = normalize(sim.model, retract(sim.model, state.q, sim.dt * qd))
    return q, reexpress_velocity(sim.model, qd, sim.dt)


def rk4(sim: Simulator, state: State, inputs: Inputs, taps: Taps) -> Advance:
    """Classical Runge–Kutta."""
    # quaternions are integrated componentwise: their rate is smooth off the unit sphere, so the order stays four
    model, dt = sim.model, sim.dt

    @jax.jit  # traced once for all stages
    def evaluate(q, qd, t):
        return forward(sim, State(q, qd, t, state.aux), inputs, sim.open_taps(state))

    def rates(q, qd, t):
        return coordinate_rate(model, q, qd), evaluate(q, qd, t).qdd

    def advance(k, h):
        return state.q + h * k[0], state.qd + h * k[1], state.t + h

    def stage(carry, coefficients):
        k, total = carry
        node, weight = coefficients
        k = rates(*advance(k, node * dt))
        return (k, jax.tree.map(lambda a, b: a + weight * b, total, k)), None

    # the first stage is evaluated separately because taps record it; the loop over the other stages is compiled once
    evaluation = forward(sim, state, inputs, taps) if taps.is_active else evaluate(state.q, state.qd, state.t)
    k1 = coordinate_rate(model, state.q, state.qd), evaluation.qdd
    (_, total), _ = jax.lax.scan(stage, (k1, k1), (np.array([0.5, 0.5, 1.0]), np.array([2.0, 2.0, 1.0])))
    q, qd, _ = advance(total, dt / 6.0)
    return normalize(model, q), qd, evaluation


def _next_aux(sim: Simulator, state: State, evaluation: Evaluation, taps: Taps) -> dict:
    """Internal states one step later, from the first evaluation of the step as changed by the grafts."""
    q, qd, u = evaluation.q, evaluation.qd, evaluation.u
    new: dict[str, Any] = {"actuation": sim.actuation.advance(sim.model, q, qd, u, state.aux["actuation"], sim.dt)}
    if "history" in state.aux:
        new["history"] = taps.next_history()
    return state.aux | (new if evaluation.contact_aux is None else new | {"contact": evaluation.contact_aux})

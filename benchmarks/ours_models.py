"""The workloads in hybridsim: simulators, steps with their loss, forward dynamics, and the network."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.workloads import NETWORK_LAYERS, Workload, mjcf
from hybridsim import Simulator, forward_dynamics, load_model
from hybridsim.sim.integrate import next_state
from hybridsim.sim.state import Inputs, State

jax.config.update("jax_enable_x64", True)


def simulator(w: Workload, **options) -> tuple[Simulator, Callable]:
    """Simulator of a workload with a motor at every hinge, and the function that sets its parameters."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        path.write_text(mjcf(w, motors=True))
        sim = Simulator(load_model(path), dt=w.dt, **options)

    shapes = [i for i, info in enumerate(sim.model.geometry.infos) if "_shape" in info.name]

    def with_parameters(sim, parameters):
        if not len(w.parameters):
            return sim
        bodies = w.bodies([parameters[k] for k in range(len(w.parameters))])

        def all_of(quantity):
            return jnp.stack([jnp.stack([jnp.asarray(x, float) for x in getattr(b, quantity)]) for b in bodies])

        values = (
            jnp.stack([jnp.asarray(b.mass) for b in bodies]),
            all_of("centre"),
            jnp.pad(all_of("inertia"), ((0, 0), (0, 3))),  # no products of inertia
            all_of("position"),
        )
        fields = lambda s: (s.model.body.mass, s.model.body.com, s.model.body.inertia, s.model.joint.placement.p)  # noqa: E731
        sim = eqx.tree_at(fields, sim, values)
        if not shapes:
            return sim
        positions = [jnp.stack([jnp.asarray(x, float) for x in shape.position]) for b in bodies for shape in b.shapes]
        placements = jnp.asarray(sim.model.geometry.placement.p).at[np.array(shapes)].set(jnp.stack(positions))
        return eqx.tree_at(lambda s: s.model.geometry.placement.p, sim, placements)

    return sim, with_parameters


def step_of(w: Workload, **options) -> tuple[Callable, tuple]:
    """A step with its loss, and example arguments: fixed, free, state, torques."""
    sim, with_parameters = simulator(w, **options)
    start = sim.initial_state(w.q0)
    fixed, static = eqx.partition(sim, eqx.is_array_like)

    def step(fixed, free, carry, torques):
        q, qd, aux = carry
        state = State(q, qd, np.zeros(()), aux)
        new = next_state(with_parameters(eqx.combine(fixed, static), free), state, Inputs(torques))
        return (new.q, new.qd, new.aux), jnp.sum(new.q**2)

    return step, (fixed, w.parameters, (start.q, start.qd, start.aux), np.zeros(sim.model.nu))


def dynamics_of(w: Workload) -> tuple[dict[str, Callable], tuple]:
    """Forward dynamics and its vector–Jacobian product, and example arguments fixed and free.

    Both are functions of fixed, free, and (q, qd, τ, cotangent), in hybridsim's order of coordinates.
    """
    sim, with_parameters = simulator(w)
    fixed, static = eqx.partition(sim, eqx.is_array_like)

    def value(fixed, free, q, qd, tau):
        return forward_dynamics(with_parameters(eqx.combine(fixed, static), free).model, q, qd, tau)

    def vjp(fixed, free, inputs):
        *state, cotangent = inputs
        return jax.vjp(lambda *x: value(fixed, *x), free, *state)[1](cotangent)

    return {"value": lambda fixed, free, inputs: value(fixed, free, *inputs[:3]), "vjp": vjp}, (fixed, w.parameters)


def network_loss(parameters, x):
    """Loss of the 175-parameter network, computed with arrays."""
    n_in, n_hidden, n_out = NETWORK_LAYERS
    sizes = (n_hidden * n_in, n_out * n_hidden, n_in, n_hidden, n_out)
    first, second, *biases = jnp.split(parameters, np.cumsum(sizes)[:-1])
    hidden = jnp.tanh(first.reshape(n_hidden, n_in) @ (x + biases[0]) + biases[1])
    return jnp.sum(jnp.tanh(second.reshape(n_out, n_hidden) @ hidden + biases[2]) ** 2)

"""Saved values of the forward sweep: minimum cost, and no influence on results."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.native.graph import rematerialization
from hybridsim.native.graph.graph import Graph
from hybridsim.native.graph.partition import STATE, assign_stages
from hybridsim.native.graph.rematerialization import OP_COST, read_saved_values, select_saved_values
from hybridsim.native.runtime.rollout import Rollout
from support.native_pendulum import CARRY, FIXED, FREE, INPUTS, pendulum, random_batch


def total_cost(graph, nodes, required, saved):
    """Cost of saving some values and recomputing the other required ones."""
    cost, needed, available = 6 * len(saved), list(required), set(saved)
    while needed:
        node = needed.pop()
        if node in nodes and node not in available:
            available.add(node)
            cost += OP_COST.get(graph.ops[node], 1)
            needed += graph.args[node]
    return cost


@pytest.mark.parametrize("seed", range(20))
def test_selection_has_minimum_cost(seed, monkeypatch):
    """Against exhaustive search on random graphs of ten operations."""
    monkeypatch.setattr(rematerialization, "SAVE_COST", 6)
    rng = np.random.default_rng(seed)
    graph = Graph()
    x = [graph.input("x", k) for k in range(3)]
    values = list(x)
    while len(graph) < 13:
        a, b = (values[int(k)] for k in rng.integers(len(values), size=2))
        values.append(
            graph.function("sin", a) if rng.random() < 0.3 else graph.node(str(rng.choice(["add", "mul"])), a, b)
        )
    ct = graph.input("ct", 0)
    required = {values[int(k)] for k in rng.integers(3, len(values), size=3)}
    vjp = {("ct2", k): graph.node("mul", ct, n) for k, n in enumerate(sorted(required))}
    step = {("x2", k): n for k, n in enumerate(values[3:])}
    stages = assign_stages(graph, step | vjp)
    saved = select_saved_values(graph, step, vjp, stages, state=STATE)
    nodes = {n for n in graph.live_nodes(vjp.values()) if stages[n] == STATE and n not in x}
    choices = itertools.chain.from_iterable(itertools.combinations(sorted(nodes), r) for r in range(len(nodes) + 1))
    best = min(total_cost(graph, nodes, required, set(choice)) for choice in choices)
    assert total_cost(graph, nodes, required, set(saved)) == best


def test_values_that_the_step_does_not_compute_are_not_saved():
    graph = Graph()
    x = graph.input("x", 0)
    sine, cosine = graph.function("sin", x), graph.function("cos", x)
    vjp = {("ct2", 0): graph.mul(graph.input("ct", 0), graph.mul(sine, cosine))}
    step = {("x2", 0): sine}
    saved = select_saved_values(graph, step, vjp, assign_stages(graph, step | vjp), state=STATE)
    assert saved == [sine]
    new, outputs = read_saved_values(graph, vjp, saved)
    assert new.op_counts(outputs.values())["sin"] == 0
    assert {new.data[n] for n in new.live_nodes(outputs.values()) if new.ops[n] == "input"} == {
        ("ct", 0),
        ("saved", 0),
        ("x", 0),
    }


def test_results_do_not_depend_on_saved_values(monkeypatch):
    """With all values saved, none, and with segments; as a single trajectory and in a batch."""
    gradients = []
    with jax.enable_x64(True):
        for cost in (0, 6, 10_000):
            monkeypatch.setattr(rematerialization, "SAVE_COST", cost)
            rollout = Rollout(pendulum, FIXED, FREE, CARRY, INPUTS)
            fixed, free, initial, inputs = random_batch(rollout, 5)
            saved_cells = rollout.graphs.sweeps[2]
            assert (saved_cells == 0) == (cost == 10_000)
            ct = np.ones((1, rollout.sizes.x)), np.ones((1, 1, rollout.sizes.y))
            for segment in (None, 4):
                batch = rollout.gradient(fixed, free, initial, inputs, *ct, segment=segment)
                single = rollout.gradient(fixed, free[2], initial[2:3], inputs[2:3], *ct, segment=segment)
                np.testing.assert_array_equal(single.free[0], batch.free[2])
                gradients.append(np.concatenate([batch.free.ravel(), batch.initial[:, :4].ravel()]))
            forward = rollout.forward(fixed, free, initial, inputs)
            np.testing.assert_array_equal(forward.outputs, batch.outputs)
    for other in gradients[1:]:
        np.testing.assert_allclose(other, gradients[0], rtol=1e-12)


def test_saved_integers_and_booleans():
    def step(fixed, free, x, s):
        large = jnp.exp(x) > 2.0
        return jnp.where(large, free * jnp.sin(x), jnp.cos(x)) + s, jnp.where(large, 1, 2)

    with jax.enable_x64(True):
        rollout = Rollout(step, None, np.ones(2), np.ones(2), np.ones(2))
        arrays = np.zeros(0), np.array([0.7, 0.3]), np.array([[0.4, 1.1]]), np.full((1, 9, 2), 0.1)
        gradient = rollout.gradient(*arrays, np.ones((1, 2)), np.zeros((1, 1, 2)))

        def loss(free, initial):
            return jnp.sum(jax.lax.scan(lambda x, s: step(None, free, x, s), initial, arrays[3][0])[0])

        expected = jax.grad(loss, (0, 1))(arrays[1], arrays[2][0])
    np.testing.assert_allclose(gradient.free[0], expected[0], rtol=1e-13)
    np.testing.assert_allclose(gradient.initial[0], expected[1], rtol=1e-13)

"""What the forward sweep keeps: the cheapest choice, and nothing that changes a result."""

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
from support.native_pendulum import CARRY, FIXED, FREE, INPUTS, batch_of, pendulum


def total_cost(graph, nodes, wanted, kept):
    """Keeping some values and computing what else is wanted again."""
    cost, needed, done = 6 * len(kept), list(wanted), set(kept)
    while needed:
        node = needed.pop()
        if node in nodes and node not in done:
            done.add(node)
            cost += OP_COST.get(graph.ops[node], 1)
            needed += graph.args[node]
    return cost


@pytest.mark.parametrize("seed", range(20))
def test_no_choice_is_cheaper(seed, monkeypatch):
    """All choices are tried, on random graphs of ten operations."""
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
    wanted = {values[int(k)] for k in rng.integers(3, len(values), size=3)}
    vjp = {("ct2", k): graph.node("mul", ct, n) for k, n in enumerate(sorted(wanted))}
    step = {("x2", k): n for k, n in enumerate(values[3:])}
    stages = assign_stages(graph, step | vjp)
    found = select_saved_values(graph, step, vjp, stages, state=STATE)
    nodes = {n for n in graph.live(vjp.values()) if stages[n] == STATE and n not in x}
    choices = itertools.chain.from_iterable(itertools.combinations(sorted(nodes), r) for r in range(len(nodes) + 1))
    best = min(total_cost(graph, nodes, wanted, set(choice)) for choice in choices)
    assert total_cost(graph, nodes, wanted, set(found)) == best


def test_what_the_step_does_not_compute_is_not_kept():
    graph = Graph()
    x = graph.input("x", 0)
    sine, cosine = graph.function("sin", x), graph.function("cos", x)
    vjp = {("ct2", 0): graph.mul(graph.input("ct", 0), graph.mul(sine, cosine))}
    step = {("x2", 0): sine}
    kept = select_saved_values(graph, step, vjp, assign_stages(graph, step | vjp), state=STATE)
    assert kept == [sine]
    new, outputs = read_saved_values(graph, vjp, kept)
    assert new.op_counts(outputs.values())["sin"] == 0
    assert {new.data[n] for n in new.live(outputs.values()) if new.ops[n] == "input"} == {
        ("ct", 0),
        ("kept", 0),
        ("x", 0),
    }


def test_results_do_not_depend_on_what_is_kept(monkeypatch):
    """With everything kept, with nothing, and with segments; alone and in a batch."""
    found = []
    with jax.enable_x64(True):
        for cost in (0, 6, 10_000):
            monkeypatch.setattr(rematerialization, "SAVE_COST", cost)
            rollout = Rollout(pendulum, FIXED, FREE, CARRY, INPUTS)
            fixed, free, start, inputs = batch_of(rollout, 5)
            kept = rollout.program.sweeps[2]
            assert (kept == 0) == (cost == 10_000)
            ct = np.ones((1, rollout.sizes.x)), np.ones((1, 1, rollout.sizes.y))
            for segment in (None, 4):
                together = rollout.gradient(fixed, free, start, inputs, *ct, segment=segment)
                alone = rollout.gradient(fixed, free[2], start[2:3], inputs[2:3], *ct, segment=segment)
                np.testing.assert_array_equal(alone.free[0], together.free[2])
                found.append(np.concatenate([together.free.ravel(), together.initial[:, :4].ravel()]))
            forward = rollout.forward(fixed, free, start, inputs)
            np.testing.assert_array_equal(forward.outputs, together.outputs)
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-12)


def test_a_loop_that_keeps_whole_numbers_and_truth_values():
    def step(fixed, free, x, s):
        large = jnp.exp(x) > 2.0
        return jnp.where(large, free * jnp.sin(x), jnp.cos(x)) + s, jnp.where(large, 1, 2)

    with jax.enable_x64(True):
        rollout = Rollout(step, None, np.ones(2), np.ones(2), np.ones(2))
        arrays = np.zeros(0), np.array([0.7, 0.3]), np.array([[0.4, 1.1]]), np.full((1, 9, 2), 0.1)
        found = rollout.gradient(*arrays, np.ones((1, 2)), np.zeros((1, 1, 2)))

        def loss(free, start):
            return jnp.sum(jax.lax.scan(lambda x, s: step(None, free, x, s), start, arrays[3][0])[0])

        wanted = jax.grad(loss, (0, 1))(arrays[1], arrays[2][0])
    np.testing.assert_allclose(found.free[0], wanted[0], rtol=1e-13)
    np.testing.assert_allclose(found.initial[0], wanted[1], rtol=1e-13)

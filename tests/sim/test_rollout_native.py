"""Selection of the backend of a rollout, and the fallback from native code to XLA."""

import subprocess
import sys
import textwrap
import time
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim import Blueprint, Graft, Simulator, rollout, simulate
from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.runtime.rollout import Rollout
from hybridsim.robots import double_pendulum, pendulum
from hybridsim.sim import rollout_native

STEPS = 8


class Law(eqx.Module):
    """A network that applies a function to its weighted input."""

    weights: jax.Array
    function: object = eqx.field(static=True)

    def __call__(self, x):
        return 0.01 * self.function(self.weights @ x)[:1]


class DeepNetwork(eqx.Module):
    """A network whose Python numbers control the computation."""

    depth: int
    is_odd: bool
    scale: float

    def __call__(self, x):
        for _ in range(self.depth):
            x = jnp.sin(x)
        return (x if self.is_odd else x**2) * (self.scale if self.scale > 0 else 1.0)


def simulator_with_network(net, backend="auto"):
    return Simulator(
        pendulum(),
        dt=0.01,
        blueprint=Blueprint(Graft("joint.tau", ["joint.qd"], net)),
        backend=backend,
    )


def simulator_with_law(function, size=4, **options):
    with jax.enable_x64(True):
        weights = jnp.asarray(np.random.default_rng(0).normal(size=(size, 1)))
    return simulator_with_network(Law(weights, function), **options)


def loss(sim):
    """A function of the weights and of the initial velocity."""

    def function(weights, qd):
        changed = eqx.tree_at(lambda s: s.blueprint.grafts[0].net.weights, sim, weights)
        state = eqx.tree_at(lambda s: s.qd, sim.initial_state([1.0]), qd)
        return jnp.sum(rollout(changed, state, steps=STEPS).q ** 2)

    return function, (sim.blueprint.grafts[0].net.weights, np.array([0.3]))


def with_backend(backend, sim):
    return Simulator(sim.model, dt=sim.dt, blueprint=sim.blueprint, backend=backend)


def max_pool(h):
    """Maximum of each pair: the native back-end does not support its transposed derivative."""
    return jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (2,), (2,), "VALID")


def assert_warns_once(function, match):
    rollout_native.warn_once.cache_clear()
    with pytest.warns(UserWarning, match=match) as caught:
        results = [function(), function()]
    assert len(caught) == 1
    return results


def test_operations_without_native_code_fall_back_to_xla_with_one_warning():
    sim = simulator_with_law(lambda h: jax.lax.igamma(h + 3.0, 2.0))
    first, second = assert_warns_once(lambda: simulate(sim, steps=STEPS), r"'igamma'.*test_rollout_native\.py")
    expected = simulate(with_backend("xla", sim), steps=STEPS)
    np.testing.assert_allclose(first.q, expected.q, rtol=1e-12)
    np.testing.assert_array_equal(first.q, second.q)
    with pytest.raises(UnsupportedOperationError, match="igamma"):
        simulate(with_backend("native", sim), steps=STEPS)


def test_the_fallback_is_compiled_once():
    sim = simulator_with_law(lambda h: jax.lax.igamma(h + 3.0, 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        simulate(sim, steps=STEPS)
        start = time.perf_counter()
        simulate(sim, steps=STEPS)
    assert time.perf_counter() - start < 0.2


def test_derivatives_without_native_code_fall_back_to_xla():
    sim = simulator_with_law(max_pool)
    function, arguments = loss(sim)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(sim, steps=STEPS)
    reference, _ = loss(with_backend("xla", sim))
    with jax.enable_x64(True):
        gradient = jax.jit(jax.value_and_grad(function, (0, 1)))
        got, _ = assert_warns_once(lambda: gradient(*arguments), r"select_and_scatter_add.*test_rollout_native\.py")
        expected = jax.jit(jax.value_and_grad(reference, (0, 1)))(*arguments)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)
    explicit, _ = loss(with_backend("native", sim))
    with jax.enable_x64(True), pytest.raises(UnsupportedOperationError, match="select_and_scatter_add"):
        jax.grad(explicit)(*arguments)


@pytest.mark.slow
def test_second_derivatives_fall_back_to_xla():
    sim = simulator_with_law(jnp.tanh)
    function, arguments = loss(sim)
    reference, _ = loss(with_backend("xla", sim))
    with jax.enable_x64(True):
        hessian = jax.jit(jax.hessian(function))
        got, _ = assert_warns_once(lambda: hessian(*arguments), "first derivatives only")
        expected = jax.jit(jax.jacfwd(jax.jacfwd(reference)))(*arguments)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-14)


def test_python_numbers_of_networks_are_static():
    for net in (DeepNetwork(2, True, 0.5), DeepNetwork(3, False, -1.0)):
        sim = simulator_with_network(net, "native")
        state = sim.initial_state([1.0], [0.2])
        got, expected = (
            simulate(sim, state, steps=STEPS),
            simulate(simulator_with_network(net, "xla"), state, steps=STEPS),
        )
        np.testing.assert_allclose(got.q, expected.q, rtol=1e-12)


@pytest.mark.parametrize("kind", [int, np.int32, np.float32, jnp.float32])
def test_states_of_other_dtypes_are_converted_to_float64(kind):
    sim = simulator_with_network(DeepNetwork(1, True, 0.5), "native")
    plain = sim.initial_state([1.0], [2.0])
    other = eqx.tree_at(
        lambda s: (s.q, s.qd, s.t), plain, (np.array([1], kind), np.array([2], kind), np.array(0, kind))
    )
    expected, got = simulate(sim, plain, steps=STEPS), simulate(sim, other, steps=STEPS)
    assert got.q.dtype == got.t.dtype == np.float64
    np.testing.assert_array_equal(got.q, expected.q)
    np.testing.assert_array_equal(got.t, expected.t)


def test_the_number_of_steps_is_checked():
    with pytest.raises(ValueError, match="number of steps must be a nonnegative integer, not -1"):
        simulate(Simulator(double_pendulum(), dt=0.01), steps=-1)


def test_debug_nans_passes_for_a_valid_rollout():
    function, arguments = loss(simulator_with_law(jnp.tanh))
    with jax.enable_x64(True), jax.debug_nans(True):
        assert np.isfinite(jax.grad(function)(*arguments)).all()


def test_denormals_are_the_same_in_a_single_rollout_and_in_a_batch():
    """XLA enables flush-to-zero on the processor; the kernels disable it."""
    model = pendulum(damping=100.0)
    model = eqx.tree_at(lambda m: m.gravity, model, np.zeros(3))
    sim = Simulator(model, dt=0.1, integrator="implicit", backend="native")
    with jax.enable_x64(True):

        def speeds(qd):
            return rollout(sim, eqx.tree_at(lambda s: s.qd, sim.initial_state(), qd), steps=500).qd

        single = speeds(np.ones(1))
        batch = jax.vmap(speeds)(jnp.ones((3, 1)))
    assert np.any((np.abs(single) > 0) & (np.abs(single) < np.finfo(float).tiny))
    np.testing.assert_array_equal(batch, np.stack([single] * 3))


USERS_CLASS = """
import equinox as eqx, jax, jax.numpy as jnp, numpy as np
from hybridsim import Blueprint, Graft, Simulator, simulate
from hybridsim.robots import double_pendulum, pendulum
from hybridsim.native.runtime.rollout import Rollout
jax.config.update("jax_enable_x64", True)

class Friction(eqx.Module):
    w: jax.Array
    def __call__(self, x):
        return {law}

def end(backend):
    graft = Graft("joint.tau", ["joint.qd"], Friction(jnp.array([0.3])))
    sim = Simulator(pendulum(), dt=0.01, blueprint=Blueprint(graft), backend=backend)
    return simulate(sim, sim.initial_state([1.0]), steps=50).q[-1]

np.testing.assert_allclose(end("native"), end("xla"), rtol=1e-9)
"""


def test_an_edited_class_is_recompiled(tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRIDSIM_CACHE", str(tmp_path / "kernels"))
    for law in ("-self.w * x", "-self.w * x**3"):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(USERS_CLASS).replace("{law}", law))
        subprocess.run([sys.executable, script], check=True)


def test_kernels_of_library_classes_are_cached_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRIDSIM_CACHE", str(tmp_path))
    with jax.enable_x64(True):
        net = eqx.nn.MLP(1, 1, 5, 1, jnp.tanh, key=jax.random.key(0))

    def compilations(sim):
        rollout_native._calls.clear()
        before = Rollout.compilations
        simulate(sim, steps=STEPS)
        return Rollout.compilations - before

    assert [compilations(simulator_with_network(net, "native")) for _ in range(2)] == [1, 0]
    # a user's activation has no cache key
    custom = eqx.tree_at(lambda n: n.activation, net, lambda x: x**2)
    assert [compilations(simulator_with_network(custom, "native")) for _ in range(2)] == [1, 1]

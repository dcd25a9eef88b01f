"""MLPs: activations, initial weights, input biases, and parameter vectors of Tiny Differentiable Simulator."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.networks.mlp import MLP
from hybridsim.robots import double_pendulum
from hybridsim.sim.rollout import rollout
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft
from support.networks import randomize_weights

X = np.array([-1.5, -0.2, 0.0, 0.4, 2.0])
FUNCTIONS = {
    "identity": X,
    "tanh": np.tanh(X),
    "sin": np.sin(X),
    "relu": np.maximum(X, 0.0),
    "softplus": np.log1p(np.exp(X)),
    "elu": np.where(X > 0.0, X, np.expm1(X)),
    "sigmoid": 1.0 / (1.0 + np.exp(-X)),
    "softsign": X / (1.0 + np.abs(X)),
}


@pytest.mark.parametrize("activation", FUNCTIONS)
def test_activations_equal_their_definitions(activation):
    net = MLP(5, 5, hidden=(5,), activation=activation)
    net = eqx.tree_at(lambda n: n.weights, net, (np.eye(5), np.eye(5)))
    np.testing.assert_allclose(net(X), FUNCTIONS[activation], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("activation", "variance"), [("tanh", 2.0 / (300 + 200)), ("relu", 2.0 / 300)])
def test_initial_weights_have_the_variance_of_xavier_or_he(activation, variance):
    net = MLP(300, 1, hidden=(200,), activation=activation)
    assert np.var(net.weights[0]) == pytest.approx(variance, rel=0.02)
    assert abs(np.mean(net.weights[0])) < 3.0 * np.sqrt(variance / 60_000)
    assert not net.weights[1].any() and not any(b.any() for b in net.biases)


def test_input_biases_are_added_to_normalized_inputs():
    net = MLP(2, 1, hidden=(), input_bias=True, input_scale=2.0)
    net = eqx.tree_at(lambda n: (n.weights, n.input_bias), net, ((np.ones((1, 2)),), np.array([0.5, 1.0])))
    assert float(net(np.array([4.0, 2.0]))[0]) == pytest.approx(4.0 / 2 + 0.5 + 2.0 / 2 + 1.0)


def test_flat_parameters_of_tiny_differentiable_simulator():
    sizes, rng = (3, 4, 2), np.random.default_rng(0)
    W1, W2, b0, b1, b2 = (rng.normal(size=s) for s in ((4, 3), (2, 4), 3, 4, 2))
    x = rng.normal(size=3)

    def elu(y):
        return np.where(y > 0.0, y, np.expm1(y))

    flat = np.concatenate([W1.ravel(), W2.ravel(), b1, b2])
    np.testing.assert_allclose(MLP.from_flat(flat, sizes)(x), W2 @ elu(W1 @ x + b1) + b2, rtol=1e-12)
    flat = np.concatenate([W1.ravel(), W2.ravel(), b0, b1])
    net = MLP.from_flat(flat, sizes, input_bias=True, output_bias=False)
    np.testing.assert_allclose(net(x), W2 @ elu(W1 @ (x + b0) + b1), rtol=1e-12)
    with pytest.raises(ValueError, match="a network with layer sizes 3→4→2 has 26 parameters, not 27"):
        MLP.from_flat(np.zeros(27), sizes)


class UserNetwork(eqx.Module):
    """A network written by a user."""

    inner: eqx.nn.MLP
    gain: jax.Array

    def __call__(self, x):
        return self.gain * jax.nn.gelu(self.inner(x))


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_a_users_own_module_works_with_gradients(backend):
    net = UserNetwork(eqx.nn.MLP(4, 2, 5, 1, key=jax.random.key(0), dtype=jnp.float64), jnp.array([0.3, 0.2]))
    graft = Graft("joint.tau", ["joint.q", "joint.qd"], net)
    sim = Simulator(double_pendulum(), dt=0.01, blueprint=Blueprint(graft), backend=backend)
    initial_state = sim.initial_state([1.0, 0.5], [0.3, -0.2])

    def end(gain):
        other = eqx.tree_at(lambda s: s.blueprint.grafts[0].net.gain, sim, gain)
        return jnp.sum(rollout(other, initial_state, steps=20).q[-1])

    gain = jnp.array([0.3, 0.2])
    gradient, h = jax.grad(end)(gain), 1e-6
    for k in range(2):
        step = h * np.eye(2)[k]
        assert float(gradient[k]) == pytest.approx(float(end(gain + step) - end(gain - step)) / (2 * h), rel=1e-6)


def test_native_and_xla_agree_on_mlps():
    graft = Graft("joint.tau", ["joint.q", "joint.qd"], randomize_weights(MLP(4, 2, activation="softsign"), (0, 0.5)))
    trajectories = []
    for backend in ("native", "xla"):
        sim = Simulator(double_pendulum(), dt=0.01, blueprint=Blueprint(graft), backend=backend)
        trajectories.append(rollout(sim, sim.initial_state([1.0, 0.5]), steps=50).q)
    np.testing.assert_allclose(*trajectories, rtol=1e-10)

"""A large network, 41 → 192 → 192 → 12 with tanh, in native code, compared with NumPy's products of the same matrices.

NumPy computes the three products of a forward pass, or the eight of a gradient with respect to weights and inputs, and
neither biases nor tanh. Native code computes the whole network. One thread each.
"""

import os
from itertools import pairwise

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"  # read when NumPy is imported

import numpy as np

from benchmarks.measure import Row, best, check, command_line, require, row, use_one_thread
from benchmarks.ours import PEER

LAYERS = (41, 192, 192, 12)
BATCHES = (1, 64, 1024)
NUMPY = "NumPy products"
STEPS = 8
"""Inputs per trajectory in native code, so that a call is dominated by the network."""


def layers() -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights and biases of all layers."""
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(n, m)) / np.sqrt(m), 0.1 * rng.normal(size=n)) for m, n in pairwise(LAYERS)]


def products(net, x: np.ndarray) -> list[np.ndarray]:
    """Inputs of every layer and outputs of the last, without biases and activations."""
    values = [x]
    for weights, _ in net:
        values.append(values[-1] @ weights.T)
    return values


def gradient_products(net, x: np.ndarray, ct: np.ndarray) -> list[np.ndarray]:
    """Matrix products of a forward and a reverse pass."""
    results, values = [], products(net, x)
    for (weights, _), value in zip(reversed(net), reversed(values[:-1]), strict=True):
        results.append(ct.T @ value)
        ct = ct @ weights
    return [*results, ct]


def measure() -> list[Row]:
    """Value, and gradient summed over the batch, for every batch size."""
    import jax
    import jax.numpy as jnp

    from hybridsim.native.runtime.rollout import Rollout

    jax.config.update("jax_enable_x64", True)
    version, net = require("hybridsim", "jax", "llvmlite"), layers()

    def network(net, x):
        *hidden, (last, bias) = net
        for weights, b in hidden:
            x = jnp.tanh(weights @ x + b)
        return last @ x + bias

    rollout = Rollout(lambda fixed, free, carry, x: (carry, network(free, x)), None, net, None, np.zeros(LAYERS[0]))
    parameters, no_fixed = rollout.layouts.free.pack(net), np.zeros(0)
    rows = []
    for batch in BATCHES:
        rng = np.random.default_rng(1)
        x = rng.normal(size=(batch, STEPS, LAYERS[0]))
        ct = rng.normal(size=(batch, STEPS, LAYERS[-1]))
        start = np.zeros((batch, 0))
        forward = rollout.bind_forward(no_fixed, parameters, start, x)
        gradient = rollout.bind_gradient(no_fixed, parameters, start, x, start, ct, summed=True)
        value, pull = jax.vjp(lambda net, x=x: jax.vmap(jax.vmap(lambda x: network(net, x)))(x), net)
        notes = [f"equal to XLA's to {check('outputs', forward().outputs, value, 1e-13):.0e}"]
        error = check("gradient", gradient().free[0], rollout.layouts.free.pack(pull(jnp.asarray(ct))[0]), 1e-12)
        notes.append(f"equal to XLA's to {error:.0e}")
        for what, call, note in zip(("value", "gradient"), (forward, gradient), notes, strict=True):
            rows.append(row(PEER, version, "network", what, best(call), batch=batch, steps=STEPS, note=note))
        first, last = np.ascontiguousarray(x[:, 0]), np.ascontiguousarray(ct[:, 0])
        numpy_calls = {"value": lambda x=first: products(net, x)}
        numpy_calls["gradient"] = lambda x=first, ct=last: gradient_products(net, x, ct)
        for what, call in numpy_calls.items():
            rows.append(row(NUMPY, require("numpy"), "network", what, best(call), batch=batch))
    return rows


PARTS = {"network": measure}

if __name__ == "__main__":
    use_one_thread()
    command_line(__doc__, "benchmarks.ours_layers", PARTS)

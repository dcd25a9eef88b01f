"""A small step function for tests of native rollouts, with floats, integers and Booleans in its state."""

import jax.numpy as jnp
import numpy as np

STEPS = 23


def pendulum(fixed, free, carry, inputs):
    """Two driven pendulums with damping; the state also has counters and flags of large angles."""
    angle, speed, count, flag = carry
    torque = inputs["torque"] - free["damping"] * speed - fixed["gravity"] * jnp.sin(angle) * free["length"]
    speed = speed + fixed["dt"] * torque / (free["mass"] * free["length"] ** 2)
    angle = angle + fixed["dt"] * speed
    count = count + jnp.where(jnp.abs(angle) > 1.0, 1, 0)
    return (angle, speed, count, flag | (angle > 1.2)), {"energy": 0.5 * jnp.sum(speed**2), "sine": jnp.sin(angle)}


FIXED = {"gravity": np.array([9.81, 9.81]), "dt": np.array(0.01), "unused": np.zeros(7)}
FREE = {"damping": np.array(0.1), "length": np.array([1.0, 0.7]), "mass": np.array([1.0, 2.0])}
CARRY = (np.array([0.9, -0.4]), np.array([0.0, 0.3]), np.zeros(2, dtype=np.int64), np.zeros(2, dtype=bool))
INPUTS = {"torque": np.zeros(2)}


def random_batch(rollout, batch, seed=0):
    """Packed arguments of a random batch: fixed, free, initial states, inputs."""
    rng = np.random.default_rng(seed)
    layouts = rollout.layouts
    initial = np.repeat(layouts.carry.pack(CARRY)[None], batch, axis=0)
    initial[:, :4] += rng.normal(size=(batch, 4))
    free = layouts.free.pack(FREE) * rng.uniform(0.8, 1.2, size=(batch, layouts.free.size))
    return layouts.fixed.pack(FIXED), free, initial, rng.normal(size=(batch, STEPS, 2))

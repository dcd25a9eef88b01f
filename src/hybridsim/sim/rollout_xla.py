"""Rollouts by XLA: a scan with checkpointing, so that gradients store only the states.

Reverse-mode gradients recompute each step from its stored state; beyond `MAX_STORED_STEPS` steps the states themselves
are recomputed from every √T-th state.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp

from hybridsim.sim.guard import RolloutCarry, RolloutOutput, guarded_step
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs

MAX_STORED_STEPS = 1000
"""Number of steps up to which a reverse sweep stores the state of every step."""


def roll_out(sim: Simulator, carry: RolloutCarry, inputs: Inputs, steps: int) -> tuple[RolloutCarry, RolloutOutput]:
    """Final carry and outputs of a rollout."""
    return _scan(jax.checkpoint(partial(guarded_step, sim)), carry, inputs, steps)


def _scan(body, carry, xs, steps: int):
    """`lax.scan`, in checkpointed blocks of about √T steps when there are many."""
    if steps <= MAX_STORED_STEPS:
        return jax.lax.scan(body, carry, xs)
    block = _block_length(steps)
    blocks = steps // block

    def run_block(carry, xs):
        return jax.lax.scan(body, carry, xs)

    head = jax.tree.map(lambda x: x[: blocks * block].reshape(blocks, block, *x.shape[1:]), xs)
    carry, ys = jax.lax.scan(jax.checkpoint(run_block), carry, head)
    ys = jax.tree.map(lambda y: y.reshape(blocks * block, *y.shape[2:]), ys)
    if blocks * block == steps:
        return carry, ys
    carry, tail = jax.lax.scan(body, carry, jax.tree.map(lambda x: x[blocks * block :], xs))
    return carry, jax.tree.map(lambda a, b: jnp.concatenate([a, b]), ys, tail)


def _block_length(steps: int) -> int:
    """A divisor of `steps` near its square root, so that no remainder loop is compiled, or the root itself."""
    root = math.isqrt(steps)
    candidates = sorted(range(max(root // 2, 1), 2 * root + 1), key=lambda n: abs(n - root))
    return next((n for n in candidates if steps % n == 0), root)

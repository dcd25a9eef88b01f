"""Rollouts by XLA: a scan with checkpointing, so that gradients need memory for the states only.

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


def roll_out(sim: Simulator, run: RolloutCarry, inputs: Inputs, steps: int) -> tuple[RolloutCarry, RolloutOutput]:
    """Final carry and outputs of a rollout."""
    return _scan(jax.checkpoint(partial(guarded_step, sim)), run, inputs, steps)


def _scan(body, run, xs, steps: int):
    """`lax.scan`, in checkpointed blocks of about √T steps when there are many."""
    if steps <= MAX_STORED_STEPS:
        return jax.lax.scan(body, run, xs)
    block = _block_length(steps)
    blocks = steps // block

    def run_block(run, xs):
        return jax.lax.scan(body, run, xs)

    head = jax.tree.map(lambda x: x[: blocks * block].reshape(blocks, block, *x.shape[1:]), xs)
    run, ys = jax.lax.scan(jax.checkpoint(run_block), run, head)
    ys = jax.tree.map(lambda y: y.reshape(blocks * block, *y.shape[2:]), ys)
    if blocks * block == steps:
        return run, ys
    run, tail = jax.lax.scan(body, run, jax.tree.map(lambda x: x[blocks * block :], xs))
    return run, jax.tree.map(lambda a, b: jnp.concatenate([a, b]), ys, tail)


def _block_length(steps: int) -> int:
    """A divisor of `steps` near its square root, so that no remainder loop is compiled, or the root itself."""
    root = math.isqrt(steps)
    candidates = sorted(range(max(root // 2, 1), 2 * root + 1), key=lambda n: abs(n - root))
    return next((n for n in candidates if steps % n == 0), root)

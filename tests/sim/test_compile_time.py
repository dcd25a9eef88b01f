"""Compile time of the gradient of a rollout."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys, time
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
from hybridsim import Simulator, rollout
from hybridsim.robots import quadruped

sim = Simulator(quadruped(), backend=sys.argv[1])
state = sim.initial_state()
wall, cpu = time.perf_counter(), time.process_time()
jax.jit(jax.grad(lambda sim, state: jnp.sum(rollout(sim, state, steps=100).q ** 2))).lower(sim, state).compile()
print(min(time.perf_counter() - wall, time.process_time() - cpu))
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["native", "xla"])
def test_gradient_of_a_hundred_quadruped_steps_compiles_in_twenty_seconds(backend):
    """In a separate process with default XLA settings; every parameter of the model is differentiated.

    The compile time on an idle machine is at most the smaller of wall time, which other programs increase, and CPU
    time, which counts all threads.
    """
    command = [sys.executable, "-c", PROGRAM, backend]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=_default_environment())
    assert float(done.stdout) < 20.0


def _default_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"} | {"HYBRIDSIM_CACHE": ""}

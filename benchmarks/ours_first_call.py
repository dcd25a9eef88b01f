"""The double pendulum in user code: `jax.jit(jax.grad(loss))` of a rollout, in a new process.

Unlike in ours.py, times include JAX's overhead around the native code, and the loss is computed outside of it: the
rollout is computed once for the loss and once more for its gradient. The first call is timed with an empty cache and
with the code on disk; imports and building the simulator are excluded.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from benchmarks.measure import Row, Timing, best, check_motion, command_line, require, row, use_one_thread
from benchmarks.ours import PEER
from benchmarks.workloads import W1


def print_first_call() -> None:
    """Print times of the first and of later gradients of this process, and the gradient."""
    import jax
    import jax.numpy as jnp

    from benchmarks.ours_models import simulator
    from hybridsim import rollout

    sim, with_parameters = simulator(W1, backend="native")
    start = sim.initial_state(W1.q0)

    def loss(parameters):
        return jnp.sum(rollout(with_parameters(sim, parameters), start, steps=W1.steps).q ** 2)

    run = jax.jit(jax.grad(loss))
    cpu, wall = time.process_time(), time.perf_counter()
    gradient = jax.block_until_ready(run(W1.parameters))
    first = Timing(time.process_time() - cpu, time.perf_counter() - wall)
    later = best(lambda: jax.block_until_ready(run(W1.parameters)), clock="process")
    print(json.dumps([first, later, gradient.tolist()]))


def measure() -> list[Row]:
    """First and later gradients; best of three processes."""
    version = require("hybridsim", "jax", "llvmlite")
    command = [sys.executable, "-c", "from benchmarks.ours_first_call import print_first_call; print_first_call()"]
    times: dict[str, list[Timing]] = {"nothing on disk": [], "code on disk": [], "jit(grad)": []}
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            for method in ("nothing on disk", "code on disk"):
                environment = os.environ | {"HYBRIDSIM_CACHE": folder}
                completed = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
                first, later, gradient = json.loads(completed.stdout)
                note = check_motion(W1, W1.steps, parameters=gradient)
                times[method].append(Timing(*first))
                times["jit(grad)"].append(Timing(*later))
    rows = []
    for method, timings in times.items():
        what, steps = ("gradient", W1.steps) if method == "jit(grad)" else ("first gradient", 1)
        rows.append(row(PEER, version, "W1", what, min(timings), method=method, steps=steps, note=note))
    return rows


PARTS = {"W1": measure}

if __name__ == "__main__":
    use_one_thread()
    command_line(__doc__, "benchmarks.ours_first_call", PARTS)

"""The double pendulum as a user writes it: `jax.jit(jax.grad(loss))` of a rollout, in a new process.

Unlike the numbers of ours.py these include what JAX itself does around the native code, and the loss is outside of it:
the motion is computed once for the loss and once more for its gradient. The first call is timed with nothing on disk
and with the code on disk; imports and building the simulator are not counted.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from benchmarks.measure import Row, Timing, best, check_motion, command_line, needs, one_thread, row
from benchmarks.ours import PEER
from benchmarks.workloads import W1


def once() -> None:
    """Print CPU and wall time of the first gradient of this process, the same of later ones, and the gradient."""
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
    version = needs("hybridsim", "jax", "llvmlite")
    command = [sys.executable, "-c", "from benchmarks.ours_first_call import once; once()"]
    times: dict[str, list[Timing]] = {"nothing on disk": [], "code on disk": [], "jit(grad)": []}
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            for method in ("nothing on disk", "code on disk"):
                environment = os.environ | {"HYBRIDSIM_CACHE": folder}
                ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
                first, later, gradient = json.loads(ended.stdout)
                note = check_motion(W1, W1.steps, parameters=gradient)
                times[method].append(Timing(*first))
                times["jit(grad)"].append(Timing(*later))
    rows = []
    for method, found in times.items():
        what, steps = ("gradient", W1.steps) if method == "jit(grad)" else ("first gradient", 1)
        rows.append(row(PEER, version, "W1", what, min(found), method=method, steps=steps, note=note))
    return rows


PARTS = {"W1": measure}

if __name__ == "__main__":
    one_thread()
    command_line(__doc__, "benchmarks.ours_first_call", PARTS)

"""hybridsim on the laboratory double pendulum: Levenberg–Marquardt with forward sensitivities."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks.fitting_attempts import COLD, DISK, RUNNING, Attempt, FitLog, command_line
from benchmarks.fitting_problem import INTEGRATOR, NOISE, PendulumProblem, load
from benchmarks.measure import require

PROGRAM = "hybridsim"
METHOD = "Levenberg–Marquardt"
CHANNELS = {"phi1": "joint.q[joint0]", "phi2": "joint.q[joint0] + joint.q[joint1]"}
TIMES = 3
"""Fits in a running process, after one warm-up."""


def problem(data: PendulumProblem):
    """The fit in hybridsim: a problem and its only stage."""
    import numpy as np

    from hybridsim.data.run import Run
    from hybridsim.identify.problem import FitProblem
    from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
    from hybridsim.identify.stage import Stage
    from hybridsim.identify.windows import ChannelRoles
    from hybridsim.model.builder import ModelBuilder
    from hybridsim.params.free import Free
    from hybridsim.params.setup import Setup
    from hybridsim.params.space import ParameterSpace
    from hybridsim.sim.sensors import Sensors
    from hybridsim.sim.simulator import Simulator

    known = data.published
    chain = ModelBuilder("lab", timestep=data.task.dt, gravity=(0.0, 0.0, -known.gravity))
    for k in range(2):
        chain.add_body(
            f"link{k}",
            parent=f"link{k - 1}" if k else "world",
            joint=f"joint{k}",
            at=(0.0, 0.0, -known.length if k else 0.0),
            axis=(0.0, 1.0, 0.0),
            mass=known.mass[k],
            com=(0.0, 0.0, -known.com[k]),
            inertia=(known.inertia[k],) * 3,
            damping=known.damping[k],
        )
    sim = Simulator(chain.build(), dt=data.task.dt, integrator=INTEGRATOR.lower())
    setup = Setup(sim, Sensors.from_addresses(sim, CHANNELS))
    frees = [Free(f.name, bounds=(f.lower, f.upper), scale=f.scale) for f in known.free()]
    times = data.task.dt * np.arange(data.angles.shape[1])
    runs = tuple(
        Run.from_arrays(f"segment {k}", times, dict(zip(CHANNELS, segment.T, strict=True)))
        for k, segment in enumerate(data.angles)
    )
    channel_roles = ChannelRoles(dict.fromkeys(CHANNELS, NOISE), {}, {})
    stage = Stage(
        window=data.length,
        initial_states="free" if data.task.free_initial_states else "measured",
        solver=LevenbergMarquardt(),
    )
    return FitProblem(setup, ParameterSpace(setup, frees), channel_roles, runs), stage


def residuals(data: PendulumProblem):
    """Residuals at the published parameters, in the order of `PendulumProblem.residuals`."""
    ours, stage = problem(data)
    objective, _ = ours.objective(stage)
    sampled, _ = objective.sampled_readings(objective.point(ours.space.initial))
    w = objective.windows
    return ((sampled[0] - w.value) * w.weight).ravel()


def run_fit(task: str, ours, stage, process: str, since: float | None = None) -> Attempt:
    """Fit, and log the cost."""
    from hybridsim.identify.solve import solve

    log = FitLog() if since is None else FitLog(since)
    simulator = ours.window_simulator()
    plain_readings, plain_derivatives = simulator.readings, simulator.derivatives

    def readings(*arguments):
        log.simulations += 1
        return plain_readings(*arguments)

    def derivatives(*arguments):
        log.simulations += 1
        log.with_derivatives += 1
        return plain_derivatives(*arguments)

    simulator.readings, simulator.derivatives = readings, derivatives
    try:
        result = solve(ours, [stage], callback=lambda progress: log.record(progress.cost))
    finally:
        del simulator.readings, simulator.derivatives
    version = require("hybridsim", "jax", "llvmlite")
    return log.finish(PROGRAM, version, task, METHOD, process, ours.space.values(result.theta).values())


def attempts(task: str, new: float | None) -> Iterator[Attempt]:
    """One attempt in this process if it is new; otherwise several in this process and others in new ones."""
    data = load(task)
    if new is not None:
        yield run_fit(task, *problem(data), process=COLD, since=new)
        return
    with tempfile.TemporaryDirectory() as kernels:
        for process in (COLD, DISK):
            yield _in_new_process(task, process, kernels)
    ours, stage = problem(data)
    run_fit(task, ours, stage, RUNNING)
    for _ in range(TIMES):
        yield run_fit(task, ours, stage, RUNNING)


def _in_new_process(task: str, process: str, kernels: str) -> Attempt:
    """Attempt in a new process with this folder as kernel cache."""
    command = [sys.executable, "-m", "benchmarks.ours_fitting", task, "--json", "--new", str(time.time())]
    environment = os.environ | {"HYBRIDSIM_CACHE": kernels}
    completed = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return Attempt(**json.loads(completed.stdout) | {"process": process})


if __name__ == "__main__":
    command_line(__doc__, "benchmarks.ours_fitting", attempts)

"""hybridsim fits the lab's double pendulum: Levenberg–Marquardt with forward sensitivities."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks.fitting_attempts import COLD, DISK, RUNNING, Attempt, Watch, command_line
from benchmarks.fitting_problem import INTEGRATOR, NOISE, FitProblem, load
from benchmarks.measure import needs

WHO = "hybridsim"
METHOD = "Levenberg–Marquardt"
CHANNELS = {"phi1": "joint.q[joint0]", "phi2": "joint.q[joint0] + joint.q[joint1]"}
TIMES = 3
"""Fits in a process that runs, after one that is not counted."""


def problem(given: FitProblem):
    """The fit as hybridsim has it: a problem and its only stage."""
    import numpy as np

    from hybridsim.data.recording import Recording
    from hybridsim.identify.problem import FitProblem, Stage
    from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
    from hybridsim.identify.windows import Measurements
    from hybridsim.model.builder import ModelBuilder
    from hybridsim.params.free import Free
    from hybridsim.params.setup import Setup
    from hybridsim.params.space import ParameterSpace
    from hybridsim.sim.sensors import Sensors
    from hybridsim.sim.simulator import Simulator

    known = given.published
    chain = ModelBuilder("lab", timestep=given.task.dt, gravity=(0.0, 0.0, -known.gravity))
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
    sim = Simulator(chain.build(), dt=given.task.dt, integrator=INTEGRATOR.lower())
    setup = Setup(sim, Sensors.of(sim, CHANNELS))
    frees = [Free(f.name, bounds=(f.lower, f.upper), scale=f.scale) for f in known.free()]
    times = given.task.dt * np.arange(given.angles.shape[1])
    runs = tuple(
        Recording.from_arrays(f"segment {k}", times, dict(zip(CHANNELS, segment.T, strict=True)))
        for k, segment in enumerate(given.angles)
    )
    measured = Measurements(dict.fromkeys(CHANNELS, NOISE), {}, {})
    stage = Stage(
        window=given.length,
        starts="free" if given.task.free_starts else "measured",
        solver=LevenbergMarquardt(),
    )
    return FitProblem(setup, ParameterSpace(setup, frees), measured, runs), stage


def residuals(given: FitProblem):
    """Residuals at the published parameters, in the order of `FitProblem.residuals`."""
    ours, stage = problem(given)
    objective, _ = ours.objective(stage)
    samples, _ = objective.samples(objective.point(ours.space.initial))
    w = objective.windows
    return ((samples[0] - w.value) * w.weight).ravel()


def fitted(task: str, ours, stage, begun: str, since: float | None = None) -> Attempt:
    """Fit, and keep how it went."""
    from hybridsim.identify.fit import fit

    watch = Watch() if since is None else Watch(since)
    simulated = ours.simulated()
    plain, slopes = simulated.readings, simulated.derivatives

    def readings(*arguments):
        watch.simulations += 1
        return plain(*arguments)

    def derivatives(*arguments):
        watch.simulations += 1
        watch.with_derivatives += 1
        return slopes(*arguments)

    simulated.readings, simulated.derivatives = readings, derivatives
    try:
        found = fit(ours, [stage], watch=lambda progress: watch.saw(progress.cost))
    finally:
        del simulated.readings, simulated.derivatives
    version = needs("hybridsim", "jax", "llvmlite")
    return watch.ended(WHO, version, task, METHOD, begun, ours.space.values(found.theta).values())


def attempts(task: str, new: float | None) -> Iterator[Attempt]:
    """One in this process if it is new; otherwise several here, and others in new processes."""
    given = load(task)
    if new is not None:
        yield fitted(task, *problem(given), begun=COLD, since=new)
        return
    with tempfile.TemporaryDirectory() as kernels:
        for begun in (COLD, DISK):
            yield _in_new_process(task, begun, kernels)
    ours, stage = problem(given)
    fitted(task, ours, stage, RUNNING)
    for _ in range(TIMES):
        yield fitted(task, ours, stage, RUNNING)


def _in_new_process(task: str, begun: str, kernels: str) -> Attempt:
    """An attempt of a process that finds kernels, or leaves them, in a folder."""
    command = [sys.executable, "-m", "benchmarks.ours_fitting", task, "--json", "--new", str(time.time())]
    environment = os.environ | {"HYBRIDSIM_CACHE": kernels}
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return Attempt(**json.loads(ended.stdout) | {"begun": begun})


if __name__ == "__main__":
    command_line(__doc__, "benchmarks.ours_fitting", attempts)

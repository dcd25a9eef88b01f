"""A fit task: everything that determines a fit, checked together, from Python or from a project file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from hybridsim.core.errors import DataError, HybridsimError, Problem, Severity
from hybridsim.core.messages import name_hint
from hybridsim.data.recording import Recording
from hybridsim.data.run import Run
from hybridsim.data.split import split_runs
from hybridsim.identify.assembly import Assembly
from hybridsim.identify.channel_units import channel_units
from hybridsim.identify.experiment import Experiment
from hybridsim.identify.network_scales import scale_to_data
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.stage import Stage
from hybridsim.identify.windows import ChannelRoles, time_span
from hybridsim.networks.mlp import MLP
from hybridsim.params.catalogue import CATALOGUE, INERTIAL
from hybridsim.params.free import Free
from hybridsim.params.resolve import ResolvedFree, resolve
from hybridsim.params.rows import row_names
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace, ownership_conflicts

DEFAULT_WINDOWS = (0.25, 1.0)
"""Window lengths of the default stages [s]; runs shorter than the last one are used whole."""
MIN_SAMPLES = 10
"""Minimum number of samples of a channel in the windows of a default stage."""
MAX_STEPS = 10**8
"""Maximum number of time steps of a run; more indicate a wrong unit of time."""
DEFAULT_HELD_OUT = 0.25
"""Default fraction of runs that are held out."""

HeldOut = float | str | Sequence[str]
"""Fraction of the runs that are held out, or their names, with wildcards."""


@dataclass(frozen=True, eq=False)
class Task:
    """A fit problem with its stages, and the specification that it comes from."""

    name: str
    experiment: Experiment
    free: tuple[Free, ...]
    problem: FitProblem
    stages: tuple[Stage, ...]
    recordings: tuple[Recording, ...] = ()
    """Recordings of all runs."""
    held_out: HeldOut = DEFAULT_HELD_OUT
    """Fraction or names of the held-out runs."""
    seed: int = 0
    project_text: str = ""
    """The specification as a project file; empty if it contains parts that a file cannot."""
    project_file: Path | None = None
    """The project file that it was read from; relative to the run folder if it was written for a fit in Python."""
    files: Mapping[str, bytes | Path] = field(default_factory=dict)
    """Files in a run folder to which the project refers, by name: their content, or files to copy."""
    unrecorded: str = ""
    """Part of the specification that a project file cannot contain, if there is one."""

    @property
    def units(self) -> dict[str, str]:
        """Units of the channels by name."""
        columns = {channel.series_name: channel.unit for channel in self.experiment.channels}
        return channel_units(self.problem.setup, columns)

    @property
    def model_file(self) -> Path | None:
        """Model file, if the model was loaded from one."""
        source = self.experiment.model.source
        return None if source is None else Path(source.file)


def make_task(
    experiment: Experiment,
    assembly: Assembly | None,
    free: Sequence[Free],
    runs: tuple[Sequence[Run], Sequence[Run]] | None,
    stages: Sequence[Stage],
    problems: list[Problem],
    *,
    name: str,
    seed: int = 0,
) -> Task | None:
    """Fit task of a specification; None if there are errors, which are appended to `problems`.

    Args:
        experiment: the experiment.
        assembly: its simulator and sensors; None if there are errors in it.
        free: free parameters.
        runs: training runs and held-out runs; None if there are errors in them.
        stages: stages; default ones if empty: whole runs if actuators have internal states, whose values within a run
            are unknown.
        problems: list to which errors and warnings are appended.
        name: name of the fit.
        seed: random seed of solvers.
    """
    train, held_out = ([], []) if runs is None else map(list, runs)
    noise = experiment.noise(train, problems) if runs else {}
    space = None if assembly is None else _parameter_space(free, assembly, problems)
    if any(problem.severity is Severity.ERROR for problem in problems):
        return None
    assert assembly is not None and space is not None
    roles = experiment.channel_roles(noise)
    _check_times([*train, *held_out], roles, float(assembly.setup.sim.dt), stages, problems)
    _warn_about_fixed_networks(assembly.setup, space, len(experiment.grafts), problems)
    problems += [problem for run in (*train, *held_out) for problem in run.problems]
    if any(problem.severity is Severity.ERROR for problem in problems):
        return None
    problem = _normalize_networks(FitProblem(assembly.setup, space, roles, tuple(train), tuple(held_out)))
    has_internal_state = bool(jax.tree.leaves(assembly.setup.sim.home_state().aux["actuation"]))
    chosen = stages or ([Stage()] if has_internal_state else default_stages(train, roles))
    seeded = (_with_seed(stage, seed) for stage in chosen)
    return Task(name, experiment, tuple(free), problem, tuple(seeded), seed=seed)


def default_stages(runs: Sequence[Run], channel_roles: ChannelRoles) -> list[Stage]:
    """Stages with increasing window lengths."""
    longest = max(end - begin for begin, end in (time_span(run, channel_roles) for run in runs))
    step = float(np.median([run.series[name].median_sample_interval for run in runs for name in channel_roles.noise]))
    lengths = [length for length in DEFAULT_WINDOWS if MIN_SAMPLES * step <= length < longest]
    stages = [Stage(window=length) for length in lengths]
    return stages if DEFAULT_WINDOWS[-1] in lengths else [*stages, Stage()]


def hold_out(runs: Sequence[Run], held_out: HeldOut, problems: list[Problem]) -> tuple[list[Run], list[Run]] | None:
    """Training and held-out runs; of a single run, its first and last part. None if there are errors.

    Args:
        runs: all runs.
        held_out: fraction or names of the held-out runs.
        problems: list to which errors are appended.
    """
    if not isinstance(held_out, int | float):
        patterns = [held_out] if isinstance(held_out, str) else list(held_out)
        names, count = [], len(problems)
        for index, pattern in enumerate(patterns):
            matching = [run.name for run in runs if run.has_name(pattern)]
            names += matching
            if not matching:
                fix = name_hint(pattern, [run.name for run in runs])
                path = ("data", "held_out", index)
                problems.append(Problem(f"no run is named {pattern!r}", fix, code="data.split", path=path))
        if len(problems) > count:
            return None
        held_out = tuple(dict.fromkeys(names))
    try:
        if isinstance(held_out, int | float) and 0.0 < held_out < 1.0 and len(runs) == 1:
            return _split_run(runs[0], held_out)
        return split_runs(runs, held_out=held_out)
    except DataError as error:
        problems += [replace(problem, path=("data", "held_out")) for problem in error.problems]
        return None


def _split_run(run: Run, fraction: float) -> tuple[list[Run], list[Run]]:
    """First and last part of a single run."""
    middle = run.end - fraction * (run.end - run.start)
    first, last = run.slice(run.start, middle), run.slice(middle, run.end)
    return [replace(first, name=f"{run.name} (first part)")], [replace(last, name=f"{run.name} (last part)")]


def _parameter_space(free: Sequence[Free], assembly: Assembly, problems: list[Problem]) -> ParameterSpace | None:
    setup = assembly.setup
    if not free:
        names = [kind.name for kind in (*CATALOGUE, INERTIAL) if row_names(kind.row_kind, setup)]
        names += ["graft[*]"] if setup.sim.blueprint.grafts else []
        fix = f"free some, for example joint.damping[*]; available parameters: {', '.join(names)}"
        problems.append(Problem("there are no free parameters", fix, code="project.free", path=("free",)))
        return None
    count, parts = len(problems), []
    for index, entry in enumerate(free):
        # parameters of networks and sensors with errors are missing, which is no error of their names
        if any(name.startswith(assembly.missing) for name in entry.names):
            continue
        part = resolve(entry, setup)
        if isinstance(part, ResolvedFree):
            reported = set(ownership_conflicts([c for p in parts for c in p.parameters]))
            parts.append(part)
            found = [p for p in ownership_conflicts([c for p in parts for c in p.parameters]) if p not in reported]
        else:
            found = part
        problems += [replace(problem, path=("free", index)) for problem in found]
    return ParameterSpace(setup, free) if len(problems) == count and not assembly.missing else None


def _check_times(
    runs: Sequence[Run], channel_roles: ChannelRoles, dt: float, stages: Sequence[Stage], problems: list[Problem]
) -> None:
    """Append problems of durations that are incompatible with the time step, typically due to a wrong unit."""
    durations = {}
    for run in runs:
        try:
            begin, end = time_span(run, channel_roles)
            durations[run.name] = end - begin
        except HybridsimError as error:
            fix = "check the time columns of its channels and their unit"
            problems.append(Problem(str(error), fix, code="project.file", path=("data", "files")))
    if durations:
        # other runs may be short, such as segments between gaps
        longest = max(durations, key=lambda name: durations[name])
        if message := _steps_problem(f"run {longest!r}", durations[longest], dt):
            fix = "check the time step, and the time column and its unit"
            problems.append(Problem(message, fix, code="project.times", path=("model", "dt")))
    for index, stage in enumerate(stages):
        if stage.window and (message := _steps_problem("a window", stage.window, dt)):
            fix = "choose another length; 0 is for single steps"
            problems.append(Problem(message, fix, code="project.times", path=("stage", index, "window")))


def _steps_problem(subject: str, duration: float, dt: float) -> str:
    """Message if a duration has less than one or too many time steps; empty otherwise."""
    if duration < dt:
        return f"{subject} lasts {duration:.3g} s, less than a time step of {dt:.3g} s"
    # no division, which may overflow
    return f"{subject} of {duration:.3g} s has too many time steps of {dt:.3g} s" if duration > MAX_STEPS * dt else ""


def _warn_about_fixed_networks(setup: Setup, space: ParameterSpace, grafts: int, problems: list[Problem]) -> None:
    """Append a warning for each fresh network whose weights are fixed: it has no effect, and will have none."""
    for index, graft in enumerate(setup.sim.blueprint.grafts):
        is_free = any(name.startswith(f"graft[{index}]") for name in space.names)
        net = graft.net
        if isinstance(net, MLP) and not is_free and not np.any(net.weights[-1]) and not np.any(net.biases[-1]):
            message = f"the weights of graft[{index}] are fixed, and the output of this network is zero"
            fix = f'free the parameters "graft[{index}]"'
            # networks after those of the experiment are from its blueprint
            path = ("graft", index) if index < grafts else ("blueprint", "file")
            problem = Problem(message, fix, code="project.graft", path=path)
            problems.append(replace(problem, severity=Severity.WARNING))


def _normalize_networks(problem: FitProblem) -> FitProblem:
    """Fit problem whose network scales are taken from the recordings where grafts say so."""
    grafts = problem.setup.sim.blueprint.grafts
    inputs, outputs = (
        [k for k, graft in enumerate(grafts) if part in graft.normalize] for part in ("inputs", "outputs")
    )
    if not inputs and not outputs:
        return problem
    scaled = scale_to_data(problem, inputs=inputs, outputs=outputs)
    normalized = [replace(graft, normalize=()) for graft in scaled.setup.sim.blueprint.grafts]
    return replace(scaled, setup=eqx.tree_at(lambda s: s.sim.blueprint.grafts, scaled.setup, tuple(normalized)))


def _with_seed(stage: Stage, seed: int) -> Stage:
    solver: Any = stage.solver
    needs_seed = getattr(solver, "seed", seed) is None
    return replace(stage, solver=replace(solver, seed=seed)) if needs_seed else stage

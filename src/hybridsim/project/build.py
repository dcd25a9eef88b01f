"""From a project to a fit that can begin: model, recordings, sensors, networks, free parameters and stages.

Everything that does not fit is told at once, at the project's lines: names that the model or the files do not have, and
whatever is wrong with the model and the recordings themselves.
"""

from dataclasses import dataclass, replace

from hybridsim.core.errors import HybridsimError, Problem, Severity
from hybridsim.data.read import sha256_of
from hybridsim.data.recording import Recording
from hybridsim.identify.problem import Problem as FitProblem
from hybridsim.identify.problem import Stage
from hybridsim.identify.windows import Drive, Measured, span
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.project.build_data import noise_of, recordings_of, split
from hybridsim.project.build_fit import blueprint_of, sensors_of, space_of, stages_of
from hybridsim.project.build_model import driven, mechanism, simulator
from hybridsim.project.errors import ProjectError, in_project_words
from hybridsim.project.load import Project, in_order
from hybridsim.sim.sensors import Sensors
from hybridsim.taps.blueprint import Blueprint

MOST_STEPS = 10**8
"""More, of a single run, are taken for a slip of the pen."""


@dataclass(frozen=True, eq=False)
class Built:
    """A project, ready to be fitted."""

    project: Project
    problem: FitProblem
    stages: tuple[Stage, ...]
    doubts: tuple[Problem, ...]
    """Warnings about the model and the recordings."""
    sources: tuple[tuple[str, str], ...]
    """Model and data files, each with the SHA-256 of its bytes."""


@dataclass(frozen=True, eq=False)
class _Data:
    """What the files say."""

    train: list[Recording]
    held_out: list[Recording]
    noise: dict[str, float]


def build(project: Project) -> Built:
    """Load model and recordings, and make of a project what `fit` takes.

    Raises:
        ProjectError: something does not fit; carries every problem, of the model and data files, too.
    """
    found: list[Problem] = []
    data = _data(project, found)
    setup, space, actuators = _simulated(project, found)
    errors = [problem for problem in found if problem.severity is Severity.ERROR]
    if errors or data is None or setup is None or space is None:
        raise ProjectError(in_order(errors))
    measured = _measured(project, data.noise, actuators)
    _check_times(project, [*data.train, *data.held_out], measured, float(setup.sim.dt))
    runs = (*data.train, *data.held_out)
    found += [replace(doubt, fix=in_project_words(doubt.fix)) for run in runs for doubt in run.problems]
    sources = dict.fromkeys(source for run in runs for source in run.sources)
    if project.model_file is not None:
        sources = {(str(project.model_file), sha256_of(project.model_file)): None, **sources}
    return Built(
        project,
        FitProblem(setup, space, measured, tuple(data.train), tuple(data.held_out)),
        stages_of(project, data.train, measured),
        tuple(in_order([problem for problem in found if problem.severity is Severity.WARNING])),
        tuple(sources),
    )


def _data(project: Project, found: list[Problem]) -> _Data | None:
    try:
        train, held_out = split(project, recordings_of(project))
    except ProjectError as error:
        found += error.problems
        return None
    return _Data(train, held_out, noise_of(project, train, found))


def _simulated(project: Project, found: list[Problem]) -> tuple[Setup | None, ParameterSpace | None, dict[str, str]]:
    """Simulator with sensors, free parameters, and the actuators that commands go to."""
    model = mechanism(project, found)
    if model is None:
        return None, None, {}
    model, actuators = driven(project, model, found)
    inputs = {entry.input: 1 for entry in project.content.command if entry.input}
    sim = simulator(project, model, Blueprint(inputs=inputs), found)
    if sim is None:
        return None, None, {}
    blueprint = blueprint_of(project, dict(sim.axis_names), found)
    if blueprint is not None and blueprint.grafts:
        # its doubts are known already
        sim = simulator(project, model, blueprint, []) or sim
    sensors = sensors_of(project, sim, found)
    missing = [name for name, part in (("graft", blueprint), ("sensor", sensors)) if part is None]
    # what is wrong with the other parameters can be told without
    setup = Setup(sim, sensors or Sensors.of(sim, {"time": "step.time"}))
    space = space_of(project, setup, found, missing=missing)
    _warn_of_unread(project, found)
    return None if missing else setup, space, actuators


def _measured(project: Project, noise: dict[str, float], actuators: dict[str, str]) -> Measured:
    commands, user = {}, {}
    for entry in project.content.command:
        drive = Drive(entry.called, entry.between)
        if entry.input:
            user[entry.input] = drive
        else:
            commands[actuators[entry.called]] = drive
    return Measured(noise, commands, user)


def _check_times(project: Project, runs: list[Recording], measured: Measured, dt: float) -> None:
    """Raise where runs, windows and time steps cannot go together; most often a unit of time is wrong."""
    place, problems, seconds = project.place, [], {}
    for run in runs:
        try:
            begin, end = span(run, measured)
            seconds[run.name] = end - begin
        except HybridsimError as error:
            fix = "check the time columns of its channels and their unit"
            problems.append(place.problem(("data", "files"), str(error), fix, "project.file"))
    if seconds:
        # others may be short: pieces between gaps often are
        longest = max(seconds, key=lambda name: seconds[name])
        if message := _steps_problem(f"run {longest!r}", seconds[longest], dt):
            fix = "check the time step, and the time column and its unit"
            problems.append(place.problem(("model", "dt"), message, fix, "project.times"))
    for number, stage in enumerate(project.content.stage):
        if stage.window and (message := _steps_problem("a window", stage.window, dt)):
            fix = "choose another length; 0 is for single steps"
            problems.append(place.problem(("stage", number, "window"), message, fix, "project.times"))
    if problems:
        raise ProjectError(problems)


def _steps_problem(what: str, seconds: float, dt: float) -> str:
    """What is wrong with simulating so long a time in such steps; empty if nothing is."""
    if seconds < dt:
        return f"{what} takes {seconds:.3g} s, less than a time step of {dt:.3g} s"
    # not by a division, which may overflow
    return f"{what} of {seconds:.3g} s has too many time steps of {dt:.3g} s" if seconds > MOST_STEPS * dt else ""


def _warn_of_unread(project: Project, found: list[Problem]) -> None:
    """Inputs that nobody reads."""
    content = project.content
    read = " ".join([address for graft in content.graft for address in graft.inputs])
    for number, entry in enumerate(content.command):
        if entry.input and f"input.{entry.input}" not in read:
            way = ("command", number, "input")
            message = f"{project.place.key(way)} is read by no network"
            fix = f'name "input.{entry.input}" in the inputs of a [[graft]]'
            problem = project.place.problem(way, message, fix, "project.command")
            found.append(replace(problem, severity=Severity.WARNING))

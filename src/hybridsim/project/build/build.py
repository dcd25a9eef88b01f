"""From a project to a fit that can begin: model, recordings, sensors, networks, free parameters and stages.

Everything that does not fit is told at once, at the project's lines: names that the model or the files do not have, and
whatever is wrong with the model and the recordings themselves.
"""

from dataclasses import dataclass, replace

from hybridsim.core.errors import HybridsimError, Problem, Severity
from hybridsim.core.messages import pluralize
from hybridsim.data.read import file_sha256
from hybridsim.data.recording import Recording
from hybridsim.identify.network_scales import scale_to_data
from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.identify.windows import InputSignal, Measurements, span
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.project.build.blueprint_file import blueprint_files, load_blueprint
from hybridsim.project.build.data import noise_of, recordings_of, split
from hybridsim.project.build.fit import blueprint_of, sensors_of, space_of, stages_of
from hybridsim.project.build.model import driven, mechanism, simulator
from hybridsim.project.build.networks import scales_from_data
from hybridsim.project.schema.load import Project, in_order
from hybridsim.project.schema.project_error import ProjectError, in_project_words
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
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
        sources = {(str(project.model_file), file_sha256(project.model_file)): None, **sources}
    if project.content.blueprint is not None:
        files = blueprint_files(project.folder / project.content.blueprint.file)
        sources |= dict.fromkeys((str(file), file_sha256(file)) for file in files)
    problem = FitProblem(setup, space, measured, tuple(data.train), tuple(data.held_out))
    return Built(
        project,
        _scaled(project, problem),
        stages_of(project, data.train, measured),
        tuple(in_order([problem for problem in found if problem.severity is Severity.WARNING])),
        tuple(sources),
    )


def _scaled(project: Project, problem: FitProblem) -> FitProblem:
    """The problem with the scales of networks that are to be taken from the recordings."""
    from_data = [scales_from_data(entry.network) for entry in project.content.graft]
    inputs = [k for k, keys in enumerate(from_data) if "input_scale" in keys]
    outputs = [k for k, keys in enumerate(from_data) if "output_scale" in keys]
    return scale_to_data(problem, inputs=inputs, outputs=outputs) if inputs or outputs else problem


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
    blueprint = _with_file(project, sim, blueprint_of(project, dict(sim.axis_names), found), found)
    if blueprint is not None and blueprint.grafts:
        # its doubts are known already
        sim = simulator(project, model, blueprint, []) or sim
    sensors = sensors_of(project, sim, found)
    missing = [name for name, part in (("graft", blueprint), ("sensor", sensors)) if part is None]
    # what is wrong with the other parameters can be told without
    setup = Setup(sim, sensors or Sensors.of(sim, {"time": "step.time"}))
    space = space_of(project, setup, found, missing=missing)
    _warn_of_unread(project, sim.blueprint, found)
    return None if missing else setup, space, actuators


def _measured(project: Project, noise: dict[str, float], actuators: dict[str, str]) -> Measurements:
    commands, user = {}, {}
    for entry in project.content.command:
        drive = InputSignal(entry.called, entry.between)
        if entry.input:
            user[entry.input] = drive
        else:
            commands[actuators[entry.called]] = drive
    return Measurements(noise, commands, user)


def _check_times(project: Project, runs: list[Recording], measured: Measurements, dt: float) -> None:
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


def _with_file(project: Project, sim: Simulator, blueprint: Blueprint | None, found: list[Problem]) -> Blueprint | None:
    """The networks of a project and those of the blueprint that it names."""
    section, way = project.content.blueprint, ("blueprint", "file")
    if section is None:
        return blueprint
    try:
        other = load_blueprint(project.folder / section.file, sim, seed=project.content.run.seed)
    except ProjectError as error:
        found += error.problems
        return None
    except (HybridsimError, OSError) as error:
        fix = "`hybridsim blueprint show FILE --model MODEL` tells what a blueprint is for"
        found.append(project.place.problem(way, str(error), fix, "project.blueprint"))
        return None
    if blueprint is None:
        return None
    given = dict(blueprint.inputs)
    for name, size in other.inputs:
        if given.get(name) != size:
            message = (
                f"{section.file} needs the input {name!r} with {pluralize(size, 'number')}, which no command gives"
            )
            fix = f'add [[command]] with input = "{name}"; commands have one number each'
            found.append(project.place.problem(way, message, fix, "project.blueprint"))
            return None
    return Blueprint(*blueprint.grafts, *other.grafts, inputs=given)


def _warn_of_unread(project: Project, blueprint: Blueprint, found: list[Problem]) -> None:
    """Inputs that nobody reads."""
    content = project.content
    read = " ".join([address for graft in (*content.graft, *blueprint.grafts) for address in graft.inputs])
    for number, entry in enumerate(content.command):
        if entry.input and f"input.{entry.input}" not in read:
            way = ("command", number, "input")
            message = f"{project.place.key(way)} is read by no network"
            fix = f'name "input.{entry.input}" in the inputs of a [[graft]]'
            problem = project.place.problem(way, message, fix, "project.command")
            found.append(replace(problem, severity=Severity.WARNING))

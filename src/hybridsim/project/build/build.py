"""Build the fit problem of a project: model, recordings, sensors, networks, free parameters and stages.

All problems are collected before an error is raised: unknown names are reported at the project's lines, problems of the
model and the recordings in their own files, unless a key of the project causes them.
"""

from dataclasses import dataclass, replace

from hybridsim.core.errors import HybridsimError, Problem, Severity
from hybridsim.data.read import file_sha256
from hybridsim.data.recording import Recording
from hybridsim.identify.network_scales import scale_to_data
from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.identify.windows import ChannelRoles, InputSignal, time_span
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.project.build.blueprint_file import blueprint_files, load_blueprint
from hybridsim.project.build.data import noise_of, recordings_of, split_recordings
from hybridsim.project.build.fit import blueprint_of, sensors_of, space_of, stages_of
from hybridsim.project.build.model import model_of, simulator_of, with_actuators
from hybridsim.project.build.networks import data_dependent_keys
from hybridsim.project.schema.load import Project, sort_problems
from hybridsim.project.schema.project_error import ProjectError, translate_advice
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint

MAX_STEPS = 10**8
"""Maximum number of time steps of a run; more indicate a wrong unit of time."""


@dataclass(frozen=True, eq=False)
class BuiltProject:
    """The fit problem of a project, with its stages."""

    project: Project
    problem: FitProblem
    stages: tuple[Stage, ...]
    warnings: tuple[Problem, ...]
    """Warnings about the model and the recordings."""
    sources: tuple[tuple[str, str], ...]
    """Model and data files, each with its SHA-256."""


@dataclass(frozen=True, eq=False)
class _Data:
    """Recordings and noise."""

    train: list[Recording]
    held_out: list[Recording]
    noise: dict[str, float]


def build(project: Project) -> BuiltProject:
    """Load model and recordings of a project and build its fit problem.

    Raises:
        ProjectError: carries all errors, including those of model and data files.
    """
    problems: list[Problem] = []
    data = _data(project, problems)
    setup, space, actuators = _setup_and_space(project, problems)
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    if errors or data is None or setup is None or space is None:
        raise ProjectError(sort_problems(errors))
    channel_roles = _channel_roles(project, data.noise, actuators)
    _check_times(project, [*data.train, *data.held_out], channel_roles, float(setup.sim.dt))
    runs = (*data.train, *data.held_out)
    problems += [replace(problem, fix=translate_advice(problem.fix)) for run in runs for problem in run.problems]
    sources = dict.fromkeys(source for run in runs for source in run.sources)
    if project.model_file is not None:
        sources = {(str(project.model_file), file_sha256(project.model_file)): None, **sources}
    if project.content.blueprint is not None:
        files = blueprint_files(project.folder / project.content.blueprint.file)
        sources |= dict.fromkeys((str(file), file_sha256(file)) for file in files)
    fit_problem = FitProblem(setup, space, channel_roles, tuple(data.train), tuple(data.held_out))
    return BuiltProject(
        project,
        _with_data_scales(project, fit_problem),
        stages_of(project, data.train, channel_roles),
        tuple(sort_problems([problem for problem in problems if problem.severity is Severity.WARNING])),
        tuple(sources),
    )


def _with_data_scales(project: Project, problem: FitProblem) -> FitProblem:
    """Fit problem whose network scales are taken from the recordings where the project says so."""
    from_data = [data_dependent_keys(entry.network) for entry in project.content.graft]
    inputs = [k for k, keys in enumerate(from_data) if "input_scale" in keys]
    outputs = [k for k, keys in enumerate(from_data) if "output_scale" in keys]
    return scale_to_data(problem, inputs=inputs, outputs=outputs) if inputs or outputs else problem


def _data(project: Project, problems: list[Problem]) -> _Data | None:
    try:
        train, held_out = split_recordings(project, recordings_of(project))
    except ProjectError as error:
        problems += error.problems
        return None
    return _Data(train, held_out, noise_of(project, train, problems))


def _setup_and_space(
    project: Project, problems: list[Problem]
) -> tuple[Setup | None, ParameterSpace | None, dict[str, str]]:
    """Simulator with sensors, parameter space, and the actuators of the commands."""
    model = model_of(project, problems)
    if model is None:
        return None, None, {}
    model, actuators = with_actuators(project, model, problems)
    inputs = {entry.input: 1 for entry in project.content.command if entry.input}
    sim = simulator_of(project, model, Blueprint(inputs=inputs), problems)
    if sim is None:
        return None, None, {}
    blueprint = _with_blueprint_file(project, sim, blueprint_of(project, dict(sim.axis_names), problems), problems)
    if blueprint is not None and blueprint.grafts:
        # its warnings have been collected already
        sim = simulator_of(project, model, blueprint, []) or sim
    sensors = sensors_of(project, sim, problems)
    missing = [name for name, part in (("graft", blueprint), ("sensor", sensors)) if part is None]
    # errors in the other parameters can still be reported
    setup = Setup(sim, sensors or Sensors.from_addresses(sim, {"time": "step.time"}))
    space = space_of(project, setup, problems, missing=missing)
    _warn_about_unread_inputs(project, sim.blueprint, problems)
    return None if missing else setup, space, actuators


def _channel_roles(project: Project, noise: dict[str, float], actuators: dict[str, str]) -> ChannelRoles:
    commands, user_inputs = {}, {}
    for entry in project.content.command:
        signal = InputSignal(entry.series_name, entry.interpolation)
        if entry.input:
            user_inputs[entry.input] = signal
        else:
            commands[actuators[entry.series_name]] = signal
    return ChannelRoles(noise, commands, user_inputs)


def _check_times(project: Project, runs: list[Recording], channel_roles: ChannelRoles, dt: float) -> None:
    """Raise if durations of runs or windows are incompatible with the time step, typically due to a wrong unit."""
    locator, problems, durations = project.locator, [], {}
    for run in runs:
        try:
            begin, end = time_span(run, channel_roles)
            durations[run.name] = end - begin
        except HybridsimError as error:
            fix = "check the time columns of its channels and their unit"
            problems.append(locator.problem(("data", "files"), str(error), fix, "project.file"))
    if durations:
        # other runs may be short, such as segments between gaps
        longest = max(durations, key=lambda name: durations[name])
        if message := _steps_problem(f"run {longest!r}", durations[longest], dt):
            fix = "check the time step, and the time column and its unit"
            problems.append(locator.problem(("model", "dt"), message, fix, "project.times"))
    for index, stage in enumerate(project.content.stage):
        if stage.window and (message := _steps_problem("a window", stage.window, dt)):
            fix = "choose another length; 0 is for single steps"
            problems.append(locator.problem(("stage", index, "window"), message, fix, "project.times"))
    if problems:
        raise ProjectError(problems)


def _steps_problem(subject: str, duration: float, dt: float) -> str:
    """Message if a duration has less than one or too many time steps; empty otherwise."""
    if duration < dt:
        return f"{subject} lasts {duration:.3g} s, less than a time step of {dt:.3g} s"
    # no division, which may overflow
    return f"{subject} of {duration:.3g} s has too many time steps of {dt:.3g} s" if duration > MAX_STEPS * dt else ""


def _with_blueprint_file(
    project: Project, sim: Simulator, blueprint: Blueprint | None, problems: list[Problem]
) -> Blueprint | None:
    """Blueprint extended by the networks of the blueprint file that a project names."""
    section, key_path = project.content.blueprint, ("blueprint", "file")
    if section is None:
        return blueprint
    try:
        other = load_blueprint(project.folder / section.file, sim, seed=project.content.run.seed)
    except ProjectError as error:
        problems += error.problems
        return None
    except (HybridsimError, OSError) as error:
        fix = "`hybridsim blueprint show FILE --model MODEL` describes a blueprint"
        problems.append(project.locator.problem(key_path, str(error), fix, "project.blueprint"))
        return None
    if blueprint is None:
        return None
    inputs = dict(blueprint.inputs)
    for name, size in other.inputs:
        if inputs.get(name) != size:
            message = f"{section.file} needs the input {name!r} of size {size}, which no command provides"
            fix = f'add [[command]] with input = "{name}"; commands have size 1'
            problems.append(project.locator.problem(key_path, message, fix, "project.blueprint"))
            return None
    return Blueprint(*blueprint.grafts, *other.grafts, inputs=inputs)


def _warn_about_unread_inputs(project: Project, blueprint: Blueprint, problems: list[Problem]) -> None:
    """Append a warning for each user input that no network reads."""
    content = project.content
    addresses = " ".join([address for graft in (*content.graft, *blueprint.grafts) for address in graft.inputs])
    for index, entry in enumerate(content.command):
        if entry.input and f"input.{entry.input}" not in addresses:
            key_path = ("command", index, "input")
            message = f"{project.locator.key(key_path)} is read by no network"
            fix = f'add "input.{entry.input}" to the inputs of a [[graft]]'
            problem = project.locator.problem(key_path, message, fix, "project.command")
            problems.append(replace(problem, severity=Severity.WARNING))

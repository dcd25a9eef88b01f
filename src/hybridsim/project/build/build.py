"""Build the fit task of a project: the specification in its sections, with its model and recordings.

All problems are collected before an error is raised: unknown names are reported at the project's lines, problems of the
model and the recordings in their own files, unless a key of the project causes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hybridsim.core.errors import DataError, HybridsimError, Problem, Severity
from hybridsim.core.messages import name_hint
from hybridsim.core.specification import setting_fields, validate_table
from hybridsim.data.read import file_sha256
from hybridsim.data.recording import Recording, read_recordings
from hybridsim.data.recording_options import RecordingOptions
from hybridsim.data.run import Run
from hybridsim.identify.assembly import Assembly
from hybridsim.identify.experiment import Experiment
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.stage import Stage
from hybridsim.identify.task import Task, hold_out, make_task
from hybridsim.io.load import inspect_model
from hybridsim.model.model import Model
from hybridsim.project.build.blueprint_file import blueprint_files, load_blueprint
from hybridsim.project.build.networks import SeededGraft
from hybridsim.project.build.relocate import relocate, relocate_model_problem
from hybridsim.project.schema.load import Project, sort_problems
from hybridsim.project.schema.project_error import ProjectError
from hybridsim.robots.built_in import BUILT_IN
from hybridsim.sim.simulation_settings import SimulationSettings


@dataclass(frozen=True, eq=False)
class BuiltProject:
    """The fit task of a project."""

    project: Project
    task: Task
    warnings: tuple[Problem, ...]
    """Warnings about the model and the recordings."""
    sources: tuple[tuple[str, str], ...]
    """Model and data files, each with its SHA-256."""

    @property
    def problem(self) -> FitProblem:
        """The fit problem."""
        return self.task.problem

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the fit."""
        return self.task.stages


def build(project: Project) -> BuiltProject:
    """Load model and recordings of a project and build its fit task.

    Raises:
        ProjectError: carries all errors, including those of model and data files.
    """
    content = project.content
    problems: list[Problem] = []
    model = load_project_model(project, problems)
    experiment = project_experiment(project, model) if model is not None else None
    assembly = experiment.assemble(problems) if experiment is not None else None
    if experiment is not None and assembly is not None and content.blueprint is not None:
        experiment, assembly = _with_blueprint_file(project, experiment, assembly, problems)
    columns = experiment or project_experiment(project, BUILT_IN["pendulum"]())
    runs = _runs(project, columns, problems)
    task = None
    if experiment is not None:
        name, seed = project.name, content.run.seed
        task = make_task(experiment, assembly, content.free, runs, content.stage, problems, name=name, seed=seed)
    located = sort_problems(relocate(problems, project))
    if task is None:
        raise ProjectError([problem for problem in located if problem.severity is Severity.ERROR])
    warnings = tuple(problem for problem in located if problem.severity is Severity.WARNING)
    task = replace(task, project_text=project.text, project_file=project.path)
    return BuiltProject(project, task, warnings, _sources(project, [*task.problem.train, *task.problem.held_out]))


def project_recordings(project: Project, files: Sequence[Sequence[Path]] | None = None) -> list[Recording]:
    """Recordings in files, by default those of the project, to be read as the project specifies."""
    data = project.content.data
    options = RecordingOptions(**{name: getattr(data, name) for name in setting_fields(RecordingOptions)})
    return read_recordings(project.data_files if files is None else files, options, project.folder)


def project_runs(project: Project, task: Task, files: Sequence[Path]) -> list[Run]:
    """Runs in other files, read as the project specifies.

    Raises:
        ProjectError: carries all problems of all files.
    """
    problems: list[Problem] = []
    try:
        runs = task.experiment.runs(project_recordings(project, [(file,) for file in files]), problems)
    except DataError as error:
        raise ProjectError(sort_problems(relocate(error.problems, project))) from None
    if problems:
        raise ProjectError(sort_problems(relocate(problems, project)))
    return runs


def project_experiment(project: Project, model: Model) -> Experiment:
    """Experiment of a project with its model; names that the model does not have are not checked yet."""
    content = project.content
    settings = {name: getattr(content.model, name) for name in setting_fields(SimulationSettings)}
    grafts = tuple(SeededGraft(entry, content.run.seed + index) for index, entry in enumerate(content.graft))
    arguments: dict[str, Any] = {"channels": content.channel, "commands": content.command, "grafts": grafts}
    return validate_table(Experiment, {"model": model, **settings, **arguments})


def load_project_model(project: Project, problems: list[Problem]) -> Model | None:
    """Model of a project; None if there are errors. Errors and warnings are appended to `problems`."""
    section = project.content.model
    if section.built_in:
        if section.built_in in BUILT_IN:
            return BUILT_IN[section.built_in]()
        message, fix = f"there is no built-in mechanism {section.built_in!r}", name_hint(section.built_in, BUILT_IN)
        problems.append(Problem(message, fix, code="project.model", path=("model", "built_in")))
        return None
    assert project.model_file is not None
    model, reported = inspect_model(project.model_file, **project.load_options)
    for problem in reported:
        if problem.severity is not Severity.NOTE:
            relocated = relocate_model_problem(problem, project)
            problems.append(replace(relocated, path=()))
    return model


def _runs(project: Project, experiment: Experiment, problems: list[Problem]) -> tuple[list[Run], list[Run]] | None:
    """Training and held-out runs; None if there are errors."""
    count = len(problems)
    try:
        runs = experiment.runs(project_recordings(project), problems)
    except DataError as error:
        problems += error.problems
        return None
    return None if len(problems) > count else hold_out(runs, project.content.data.held_out, problems)


def _with_blueprint_file(
    project: Project, experiment: Experiment, assembly: Assembly, problems: list[Problem]
) -> tuple[Experiment, Assembly | None]:
    """Experiment with the networks of the blueprint file that a project names."""
    section = project.content.blueprint
    assert section is not None
    try:
        other = load_blueprint(project.folder / section.file, assembly.setup.sim, seed=project.content.run.seed)
    except ProjectError as error:
        # they have lines of the blueprint file
        problems += [replace(problem, path=()) for problem in error.problems]
        return experiment, replace(assembly, missing=(*assembly.missing, "graft"))
    except (HybridsimError, OSError) as error:
        fix = "`hybridsim blueprint show FILE --model MODEL` describes a blueprint"
        problems.append(Problem(str(error), fix, code="project.blueprint", path=("blueprint", "file")))
        return experiment, replace(assembly, missing=(*assembly.missing, "graft"))
    # its problems are those that were found without the blueprint, and those of the blueprint
    del problems[:]
    extended = replace_blueprint(experiment, other)
    return extended, extended.assemble(problems)


def replace_blueprint(experiment: Experiment, blueprint: Any) -> Experiment:
    """Experiment with another blueprint."""
    arguments = {name: getattr(experiment, name) for name in setting_fields(Experiment)}
    return validate_table(Experiment, arguments | {"blueprint": blueprint})


def _sources(project: Project, runs: Sequence[Run]) -> tuple[tuple[str, str], ...]:
    """Files of a project, each with its SHA-256."""
    sources = dict.fromkeys(source for run in runs for source in run.sources)
    if project.model_file is not None:
        sources = {(str(project.model_file), file_sha256(project.model_file)): None, **sources}
    if project.content.blueprint is not None:
        files = blueprint_files(project.folder / project.content.blueprint.file)
        sources |= dict.fromkeys((str(file), file_sha256(file)) for file in files)
    return tuple(sources)

"""Write the specification of a fit as a project file, with the networks and arrays that it needs beside it."""

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.core.specification import Choice, setting_fields
from hybridsim.core.warnings import warn_user
from hybridsim.data.recording import Recording, unique_names
from hybridsim.data.run import Run
from hybridsim.identify.task import Task
from hybridsim.io.load import inspect_model
from hybridsim.io.load_options import LoadOptions
from hybridsim.model.model import Model
from hybridsim.params.free import Free
from hybridsim.project.build.blueprint_file import blueprint_content
from hybridsim.project.run_folder.write import npz_content
from hybridsim.project.schema.toml_text import toml_value
from hybridsim.robots.built_in import BUILT_IN
from hybridsim.sim.simulation_settings import SimulationSettings

PROJECT_FILE, RECORDINGS, BLUEPRINT = Path("project.toml"), "recordings", "networks.toml"
"""Project file, folder of recordings from memory and file of networks, in a run folder."""


class _UnrecordedError(Exception):
    """A part of a specification that a project file cannot contain."""


def recorded_task(task: Task) -> Task:
    """Task with its specification as a project file, and the files of a run folder that the project needs beside it.

    If the specification contains code or another part that a project file cannot contain, `unrecorded` of the task
    names it.
    """
    if task.project_text:
        return task
    files: dict[str, bytes] = {}
    try:
        paths = {recording.name: _paths(recording, files) for recording in task.recordings}
        _check_names(paths)
        text = "\n".join(_sections(task, paths, files)) + "\n"
    except _UnrecordedError as error:
        return replace(task, unrecorded=str(error))
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    parts = (task.problem.train, task.problem.held_out)
    problem = task.problem.with_runs(*([_with_source(run, paths, hashes) for run in runs] for runs in parts))
    return replace(task, problem=problem, project_text=text, project_file=PROJECT_FILE, files=files)


def warn_if_unrecorded(task: Task) -> None:
    """Warn if the result of a task can be loaded only by its own program."""
    if task.unrecorded:
        warn_user(
            f"the specification of the fit is not saved: {task.unrecorded}. load_result cannot load it; "
            "fit(..., folder=..., resume=True) with the same experiment can"
        )


def _with_source(run: Run, paths: Mapping[str, Sequence[str]], hashes: Mapping[str, str]) -> Run:
    """Run with the file to which its recording is written, if it is from memory."""
    name = next((name for name in paths if run.run_name == name or run.run_name.startswith(f"{name} (")), "")
    if run.sources or not name:
        return run
    return replace(run, sources=tuple((path, hashes[path]) for path in paths[name]))


def _paths(recording: Recording, files: dict[str, bytes]) -> list[str]:
    """Files of a recording; one from memory is added to `files`."""
    if recording.interval is not None:
        raise _UnrecordedError(f"the recording {recording.name!r} is a slice of another one")
    if recording.options.several_runs:
        raise _UnrecordedError(f"the recording {recording.name!r} is one of several in its file")
    if recording.files:
        return [str(recording.path_of(file)) for file in recording.files]
    if not recording.name or Path(recording.name).name != recording.name:
        raise _UnrecordedError(f"the name of the recording {recording.name!r} is no file name")
    (table,) = recording.tables.values()
    path = f"{RECORDINGS}/{recording.name}.npz"
    files[path] = npz_content(table.columns)
    return [path]


def _check_names(paths: Mapping[str, Sequence[str]]) -> None:
    """Raise if the project would give recordings other names."""
    names = unique_names([Path(files[0]) for files in paths.values()])
    for name, project_name in zip(paths, names, strict=True):
        if name != project_name:
            raise _UnrecordedError(f"the recording {name!r} has another name than its file, {project_name!r}")


def _sections(task: Task, paths: Mapping[str, Sequence[str]], files: dict[str, bytes]) -> Iterator[str]:
    experiment = task.experiment
    yield f"# Specification of the fit {task.name!r}, written by hybridsim"
    yield from _table("model", _model_settings(experiment.model) | _specified_settings(experiment, SimulationSettings))
    yield from _table("data", _data_settings(task, paths))
    for section, entries in (
        ("channel", experiment.channels),
        ("command", experiment.command_list),
        ("free", task.free),
    ):
        for entry in entries:
            yield from _table(section, _specified_settings(entry), is_entry=True)
    setup = task.problem.setup
    if setup.sim.blueprint.grafts:
        try:
            files |= blueprint_content(setup.sim.blueprint, BLUEPRINT, setup.sim)
        except HybridsimError as error:
            raise _UnrecordedError(str(error)) from None
        yield from _table("blueprint", {"file": BLUEPRINT})
    for stage in task.stages:
        yield from _table("stage", _specified_settings(stage), is_entry=True)
    yield from _table("run", {"name": task.name, "seed": task.seed})


def _table(section: str, settings: Mapping[str, Any], *, is_entry: bool = False) -> Iterator[str]:
    yield ""
    yield f"[[{section}]]" if is_entry else f"[{section}]"
    yield from (f"{key} = {toml_value(value)}" for key, value in settings.items())


def _model_settings(model: Model) -> dict[str, Any]:
    """Keys that name a mechanism."""
    if model.source is not None:
        options = LoadOptions(**model.source.options)
        again, _ = inspect_model(model.source.file, **model.source.options)
        if again is None or not _are_equal(again, model):
            raise _UnrecordedError(f"the model {model.name!r} differs from its file, {model.source.file}")
        return {"file": model.source.file} | _specified_settings(options)
    if model.name in BUILT_IN and _are_equal(BUILT_IN[model.name](), model):
        return {"built_in": model.name}
    raise _UnrecordedError(f"the model {model.name!r} was built in Python")


def _are_equal(one: Model, other: Model) -> bool:
    leaves, structure = jax.tree.flatten(one)
    other_leaves, other_structure = jax.tree.flatten(other)
    pairs = zip(leaves, other_leaves, strict=False)
    return structure == other_structure and all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def _data_settings(task: Task, paths: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    options = [recording.options for recording in task.recordings]
    if any(other != options[0] for other in options):
        raise _UnrecordedError("the recordings were read with different options")
    files = [entries[0] if len(entries) == 1 else list(entries) for entries in paths.values()]
    settings = {"files": files} | _specified_settings(options[0])
    return settings | {"held_out": task.held_out if isinstance(task.held_out, float | int) else list(task.held_out)}


def _specified_settings(record: Any, cls: type | None = None) -> dict[str, Any]:
    """Fields of a specification that differ from their defaults."""
    settings = {}
    for name, field in setting_fields(cls or type(record)).items():
        value = getattr(record, name)
        if isinstance(record, Free) and name == "bounds" and value is not None:
            value = (record.lower, record.upper)
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        if field.is_required() or not _is_same(value, default):
            choice = next((entry for entry in field.metadata if isinstance(entry, Choice)), None)
            settings[name] = _as_data(value, choice or _inner_choice(field.annotation))
    return settings


def _is_same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    leaves, others = jax.tree.leaves(value), jax.tree.leaves(default)
    if jax.tree.structure(value) != jax.tree.structure(default) or len(leaves) != len(others):
        return False
    return all(
        np.array_equal(a, b) if hasattr(a, "shape") else bool(a == b) for a, b in zip(leaves, others, strict=True)
    )


def _inner_choice(annotation: Any) -> Choice | None:
    """Choice of the elements or members of an annotation."""
    from typing import get_args

    metadata = getattr(annotation, "__metadata__", ())
    inner = (_inner_choice(part) for part in get_args(annotation))
    return next(itertools.chain((entry for entry in metadata if isinstance(entry, Choice)), filter(None, inner)), None)


def _as_data(value: Any, choice: Choice | None = None) -> Any:
    """Value of a TOML file that stands for a value in Python."""
    if value is None or isinstance(value, str | bool | int | float | Path):
        return str(value) if isinstance(value, Path) else value
    if hasattr(value, "shape"):
        return np.asarray(value).tolist()
    if isinstance(value, Mapping):
        return {str(key): _as_data(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_as_data(entry, choice) for entry in value]
    kind = {} if choice is None else {choice.key: _kind_name(value, choice)}
    if setting_fields(type(value)):
        return kind | _specified_settings(value)
    if choice is not None:
        return kind | _component_settings(value)
    raise _UnrecordedError(f"{value!r} is code")


def _kind_name(value: Any, choice: Choice) -> str:
    name = choice.name_of(type(value))
    if name is None:
        raise _UnrecordedError(f"{type(value).__name__} is a class of your own")
    return name


def _component_settings(component: Any) -> dict[str, Any]:
    """Settings of a component, such as a contact model, that differ from their defaults."""
    settings = {}
    for field in fields(component):
        name = field.name
        if not field.metadata.get("is_setting", True):
            continue
        value = getattr(component, name)
        if not _is_same(value, field.default):
            annotation = type(component).__annotations__.get(name)
            settings[name] = _as_data(value, _inner_choice(annotation))
    return settings

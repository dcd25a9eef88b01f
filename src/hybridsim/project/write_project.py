"""Write the specification of a fit as a project file, with the networks and arrays that it needs beside it."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.core.specification import Choice, setting_fields
from hybridsim.data.read import file_sha256
from hybridsim.data.recording import Recording
from hybridsim.data.run import Run
from hybridsim.identify.task import Task
from hybridsim.io.load import inspect_model
from hybridsim.io.load_options import LoadOptions
from hybridsim.model.model import Model
from hybridsim.params.free import Free
from hybridsim.project.build.blueprint_file import save_blueprint
from hybridsim.project.run_folder.write import write_npz
from hybridsim.project.schema.toml_text import toml_value
from hybridsim.robots.built_in import BUILT_IN
from hybridsim.sim.simulation_settings import SimulationSettings

RECORDINGS, BLUEPRINT = "recordings", "networks.toml"
"""Folder of recordings from memory and file of networks, in a run folder."""


class _CodeError(Exception):
    """A part of a specification that is code, or has no file."""


def recorded_task(task: Task, folder: Path) -> Task:
    """Task with its specification as a project file; unchanged if it contains code, such as a network of the user's.

    Args:
        task: the task.
        folder: run folder, into which networks and recordings from memory are written.
    """
    if task.project_text:
        return task
    try:
        recordings = [_recorded(recording, folder) for recording in task.recordings]
        text = "\n".join(_sections(task, recordings, folder)) + "\n"
    except _CodeError:
        return task
    sources = {new.name: [(file, file_sha256(Path(file))) for file in new.files] for new in recordings}
    train, held_out = (
        [_with_sources(run, sources) for run in runs] for runs in (task.problem.train, task.problem.held_out)
    )
    problem = task.problem.with_runs(train, held_out)
    return replace(task, problem=problem, project_text=text, project_file=folder.absolute() / "project.toml")


def _with_sources(run: Run, sources: Mapping[str, list[tuple[str, str]]]) -> Run:
    name = next((name for name in sources if run.run_name == name or run.run_name.startswith(f"{name} (")), "")
    return replace(run, sources=tuple(sources[name])) if name and not run.sources else run


def _recorded(recording: Recording, folder: Path) -> Recording:
    """A recording in files."""
    if recording.interval is not None:
        raise _CodeError
    if recording.files:
        return replace(recording, files=tuple(str(recording.path_of(file)) for file in recording.files))
    path = folder.absolute() / RECORDINGS / f"{recording.name}.npz"
    if path.parent != folder.absolute() / RECORDINGS:
        raise _CodeError  # a name with slashes
    (table,) = recording.tables.values()
    if table.unreadable:
        raise _CodeError
    write_npz(path, table.columns)
    return replace(recording, files=(str(path),))


def _sections(task: Task, recordings: Sequence[Recording], folder: Path) -> Iterator[str]:
    experiment = task.experiment
    yield f"# Specification of the fit {task.name!r}, written by hybridsim"
    yield from _table("model", _model_settings(experiment.model) | _specified_settings(experiment, SimulationSettings))
    yield from _table("data", _data_settings(task, recordings))
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
            save_blueprint(setup.sim.blueprint, folder / BLUEPRINT, setup.sim)
        except HybridsimError:
            raise _CodeError from None  # a network of the user's
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
            raise _CodeError  # changed in Python after it was loaded
        return {"file": model.source.file} | _specified_settings(options)
    if model.name in BUILT_IN and _are_equal(BUILT_IN[model.name](), model):
        return {"built_in": model.name}
    raise _CodeError


def _are_equal(one: Model, other: Model) -> bool:
    leaves, structure = jax.tree.flatten(one)
    other_leaves, other_structure = jax.tree.flatten(other)
    pairs = zip(leaves, other_leaves, strict=False)
    return structure == other_structure and all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def _data_settings(task: Task, recordings: Sequence[Recording]) -> dict[str, Any]:
    options = {recording.options for recording in recordings}
    files = [recording.files[0] if len(recording.files) == 1 else recording.files for recording in recordings]
    if len(options) > 1:
        raise _CodeError
    settings = {"files": list(dict.fromkeys(files))} | _specified_settings(options.pop())
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
    raise _CodeError  # a function


def _kind_name(value: Any, choice: Choice) -> str:
    name = choice.name_of(type(value))
    if name is None:
        raise _CodeError  # a class of the user's
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

"""Fit task: the fit problem and its origin, as stored in a run folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.project.build.build import BuiltProject
from hybridsim.project.build.channel_units import channel_units


@dataclass(frozen=True, eq=False)
class Task:
    """A fit problem with its stages, and their origin."""

    name: str
    problem: FitProblem
    stages: tuple[Stage, ...]
    project_file: Path
    project_text: str
    model_name: str
    """Name of a built-in mechanism, or path of the model file."""
    model_file: Path | None = None
    """Model file, if the model is not built in."""
    load_options: Mapping[str, Any] = field(default_factory=dict)
    """Options for the model file; arguments of `load_model`."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Units of the channels by name."""
    seed: int = 0


def task_of(built: BuiltProject) -> Task:
    """Fit task of a project."""
    project = built.project
    content = project.content
    column_units = {entry.series_name: entry.unit for entry in content.channel}
    return Task(
        name=project.name,
        problem=built.problem,
        stages=built.stages,
        project_file=project.path,
        project_text=project.text,
        model_name=content.model.file or content.model.built_in,
        model_file=project.model_file,
        load_options=project.load_options,
        units=channel_units(built.problem.setup, column_units),
        seed=content.run.seed,
    )

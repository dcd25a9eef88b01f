"""What a run record is about: a problem to fit, and where it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.project.build.build import Built
from hybridsim.project.build.channel_units import channel_units


@dataclass(frozen=True, eq=False)
class Task:
    """A fit to be made, with all that its record tells of it."""

    name: str
    problem: FitProblem
    stages: tuple[Stage, ...]
    project_file: Path
    project_text: str
    model: str
    """Name of a built-in mechanism, or path of the model's file."""
    model_file: Path | None = None
    """The model's file, if it has one."""
    reading: Mapping[str, Any] = field(default_factory=dict)
    """How the model's file is read, as `load_model` takes it."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Units of the channels, by their names."""
    seed: int = 0


def task_of(built: Built) -> Task:
    """The fit that a project describes."""
    project = built.project
    content = project.content
    told = {entry.called: entry.unit for entry in content.channel}
    return Task(
        name=project.name,
        problem=built.problem,
        stages=built.stages,
        project_file=project.path,
        project_text=project.text,
        model=content.model.file or content.model.built_in,
        model_file=project.model_file,
        reading=project.reading,
        units=channel_units(built.problem.setup, told),
        seed=content.run.seed,
    )

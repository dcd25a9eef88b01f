"""Small projects on disk, and their problems."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hybridsim.core.errors import Problem
from hybridsim.project.schema.project_error import ProjectError

PROJECT = """[model]
built_in = "pendulum"
dt = 0.01

[data]
files = ["run.csv"]
held_out = 0.0

[[channel]]
name = "angle"
measures = "joint.q[joint0]"
column = "q"
noise = 0.001

[[free]]
name = "joint.damping[*]"
bounds = [0.0, 1.0]
"""
"""A pendulum project; tests refer to its line numbers."""

TWO_LINK_URDF = """<robot name="arm">
  <link name="world"/>
  <link name="upper"><inertial><origin xyz="0 0 -0.25"/><mass value="1.5"/>
    <inertia ixx="0.02" iyy="0.02" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0 0 -0.2"/><mass value="0.8"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="continuous"><parent link="world"/><child link="upper"/><axis xyz="0 1 0"/>
    <dynamics damping="{damping}"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0 0 -0.5"/>
    <axis xyz="0 1 0"/><dynamics damping="{damping}"/></joint>
</robot>
"""
"""An arm of two links, with a format field for the damping."""


def write_project(folder: Path, text: str = PROJECT) -> Path:
    """Write a project, and a short recording with the columns time, q and u; returns the project file."""
    t = np.arange(100) * 0.01
    write_columns(folder / "run.csv", {"time": t, "q": np.cos(3.0 * t), "u": 0.1 * np.sin(5.0 * t)})
    path = folder / "project.toml"
    path.write_text(text, encoding="utf-8")
    return path


def write_columns(path: Path, columns: dict[str, np.ndarray]) -> None:
    """Write a CSV file."""
    table = np.stack(list(columns.values()), axis=1)
    np.savetxt(path, table, delimiter=",", header=",".join(columns), comments="", fmt="%.17g")


def problems_of(function: Callable, *arguments) -> tuple[Problem, ...]:
    """Problems that a function raises."""
    with pytest.raises(ProjectError) as caught:
        function(*arguments)
    return caught.value.problems

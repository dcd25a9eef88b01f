"""`hybridsim check`: what is in a model file, and what is wrong with it."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from hybridsim.cli.options import ModelName, Reading, ReadingOptions
from hybridsim.core.errors import Problem, Severity

if TYPE_CHECKING:
    from hybridsim.model.model import Model


def check(model: ModelName, reading: Reading = ReadingOptions(), json: bool = False) -> int:  # noqa: B008 - frozen
    """Show what a model file contains and every problem in it.

    Exits with 0 if the model can be used, with 1 if not.

    For example:
      hybridsim check robot.urdf
      hybridsim check a1.urdf --base free
      hybridsim check laikago.urdf --inertia from_geometry
      hybridsim check quadruped --json

    Args:
        model: file or built-in mechanism.
        reading: how to read the file.
        json: print JSON for other programs.
    """
    found, problems = reading.inspect(model)
    if json:
        _print_json(model, found, problems)
    else:
        _print_tables(model, found, problems)
    return 0 if found is not None else 1


def summary(model: "Model") -> dict:
    """The numbers that describe a model at a glance."""
    import numpy as np

    topology = model.topology
    return {
        "name": model.name,
        "bodies": model.nb,
        "coordinates": model.nq,
        "degrees_of_freedom": model.nv,
        "actuators": model.nu,
        "shapes": len(model.geometry.infos),
        "frames": len(topology.frame_names),
        "mass_kg": float(np.sum(model.body.mass)),
        "gravity": [float(g) for g in model.gravity],
        "timestep_s": model.timestep,
        "base": "free" if "free" in topology.joint_types else "fixed",
    }


def bodies(model: "Model") -> list[dict]:
    """One row per body: its joint, its mass and its limits."""
    topology, rows = model.topology, []
    for i, name in enumerate(topology.body_names):
        start, stop = topology.tree_v_slices[i]
        parent, master = topology.parents[i], topology.mimics[i]
        one = stop - start == 1
        rows.append(
            {
                "body": name,
                "parent": topology.body_names[parent] if parent >= 0 else "world",
                "joint": topology.joint_names[i],
                "type": str(topology.joint_types[i])
                + (f", mimics {topology.joint_names[master]}" if master >= 0 else ""),
                "mass_kg": float(model.body.mass[i]),
                "lower": float(model.joint.lower[start]) if one else None,
                "upper": float(model.joint.upper[start]) if one else None,
                "effort": float(model.joint.effort_limit[start]) if one else None,
            }
        )
    return rows


def _print_json(name: str, model: "Model | None", problems: list[Problem]) -> None:
    report = {
        "model": name,
        "usable": model is not None,
        "summary": summary(model) if model is not None else None,
        "bodies": bodies(model) if model is not None else [],
        "problems": [asdict(problem) for problem in problems],
    }
    print(json.dumps(_finite(report), indent=2))


def _finite(value):
    """JSON has no infinity: an absent limit is null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value


def _print_tables(name: str, model: "Model | None", problems: list[Problem]) -> None:
    console = Console(highlight=False)
    if model is not None:
        facts = summary(model)
        counts = [
            _count(facts["bodies"], "body", "bodies"),
            _count(facts["degrees_of_freedom"], "degree of freedom", "degrees of freedom"),
            _count(facts["actuators"], "actuator"),
            _count(facts["shapes"], "shape"),
        ]
        console.print(f"[bold]{facts['name']}[/]: {', '.join(counts)}, {facts['mass_kg']:.4g} kg, {facts['base']} base")
        console.print("mass in kg, limits in rad or m, effort in N·m or N", style="dim")
        table = Table(box=None, header_style="bold", pad_edge=False)
        for title in ("body", "parent", "joint", "type"):
            table.add_column(title, no_wrap=True)
        for title in ("mass", "limits", "effort"):
            table.add_column(title, justify="right", no_wrap=True)
        for row in bodies(model):
            limited = row["lower"] is not None and (row["lower"] > float("-inf") or row["upper"] < float("inf"))
            limits = f"{row['lower']:.3g}…{row['upper']:.3g}" if limited else ""
            effort = f"{row['effort']:.3g}" if row["effort"] is not None and row["effort"] < float("inf") else ""
            table.add_row(
                row["body"], row["parent"], row["joint"], row["type"], f"{row['mass_kg']:.4g}", limits, effort
            )
        console.print(table)
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    for problem in problems:
        color = "red" if problem.severity is Severity.ERROR else "yellow"
        console.print(str(problem), style=color, markup=False, soft_wrap=True)
    warnings = len(problems) - errors
    verdict = "can be used" if model is not None else "cannot be used"
    counts = f"{_count(errors, 'error')}, {_count(warnings, 'warning')}"
    console.print(f"{name} {verdict}: {counts}", markup=False, soft_wrap=True)


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"

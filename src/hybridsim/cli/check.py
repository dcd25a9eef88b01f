"""`hybridsim check`: what is in a model file, and what is wrong with it."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from hybridsim.cli.options import ModelName, Reading, ReadingOptions
from hybridsim.cli.output import print_json, print_problems, print_table, say, verdict
from hybridsim.core.messages import pluralize

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
        print_json(
            {
                "model": model,
                "usable": found is not None,
                "summary": summary(found) if found is not None else None,
                "bodies": bodies(found) if found is not None else [],
                "problems": [asdict(problem) for problem in problems],
            }
        )
    else:
        if found is not None:
            _print_model(found)
        print_problems(problems)
        say(verdict(model, found is not None, problems))
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
        "base": "free" if topology.joint_types[0] == "free" else "fixed",
    }


def bodies(model: "Model") -> list[dict]:
    """One row per body: its joint, its mass and its limits."""
    topology, joint, rows = model.topology, model.joint, []
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
                "lower": float(joint.lower[start]) if one else None,
                "upper": float(joint.upper[start]) if one else None,
                "effort": float(joint.effort_limit[start]) if one else None,
                "damping": float(joint.damping[start]) if stop > start else None,
                "friction": float(joint.friction[start]) if stop > start else None,
            }
        )
    return rows


def _print_model(model: "Model") -> None:
    facts = summary(model)
    counts = [
        pluralize(facts["bodies"], "body", "bodies"),
        pluralize(facts["degrees_of_freedom"], "degree of freedom", "degrees of freedom"),
        pluralize(facts["actuators"], "actuator"),
        pluralize(facts["shapes"], "shape"),
        pluralize(facts["frames"], "frame"),
    ]
    gravity = ", ".join(f"{g:g}" for g in facts["gravity"])
    say(f"{facts['name']}: {', '.join(counts)}, {facts['mass_kg']:.4g} kg, {facts['base']} base", style="bold")
    say(f"gravity ({gravity}) m/s², time step {facts['timestep_s']:g} s; units: kg, rad or m, N·m or N", style="dim")
    print_table(
        ("body", "parent", "joint", "type", "mass", "limits", "effort", "damping", "friction"),
        (_cells(row) for row in bodies(model)),
        right=("mass", "limits", "effort", "damping", "friction"),
    )


def _cells(row: dict) -> list[str]:
    infinity = float("inf")
    limited = row["lower"] is not None and (row["lower"] > -infinity or row["upper"] < infinity)
    return [
        *(row[key] for key in ("body", "parent", "joint", "type")),
        f"{row['mass_kg']:.4g}",
        f"{row['lower']:.3g}…{row['upper']:.3g}" if limited else "",
        f"{row['effort']:.3g}" if row["effort"] is not None and row["effort"] < infinity else "",
        *(f"{row[key]:.3g}" if row[key] else "" for key in ("damping", "friction")),
    ]

"""`hybridsim check`: contents and problems of a model file."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from hybridsim.cli.options import Loader, ModelLoader, ModelName
from hybridsim.cli.output import print_json, print_problems, print_table, say, summary_line
from hybridsim.core.messages import pluralize

if TYPE_CHECKING:
    from hybridsim.model.model import Model


def check(model: ModelName, loader: Loader = ModelLoader(), json: bool = False) -> int:
    """Show the contents of a model file and every problem found in it.

    The exit code is 0 if the model can be used, 1 if not.

    For example:
      hybridsim check robot.urdf
      hybridsim check a1.urdf --base free
      hybridsim check laikago.urdf --inertia from_geometry
      hybridsim check quadruped --json

    Args:
        model: file or built-in mechanism.
        loader: options of the model loader.
        json: print JSON instead of text.
    """
    loaded, problems = loader.inspect(model)
    if json:
        print_json(
            {
                "model": model,
                "usable": loaded is not None,
                "summary": summary(loaded) if loaded is not None else None,
                "bodies": bodies(loaded) if loaded is not None else [],
                "problems": [asdict(problem) for problem in problems],
            }
        )
    else:
        if loaded is not None:
            _print_model(loaded)
        print_problems(problems)
        say(summary_line(model, loaded is not None, problems))
    return 0 if loaded is not None else 1


def summary(model: "Model") -> dict:
    """Key figures of a model."""
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
    """Joint, mass and limits of every body, one row each."""
    topology, joint, rows = model.topology, model.joint, []
    for i, name in enumerate(topology.body_names):
        start, stop = topology.tree_v_slices[i]
        parent, master = topology.parents[i], topology.masters[i]
        is_scalar = stop - start == 1
        rows.append(
            {
                "body": name,
                "parent": topology.body_names[parent] if parent >= 0 else "world",
                "joint": topology.joint_names[i],
                "type": str(topology.joint_types[i])
                + (f", mimics {topology.joint_names[master]}" if master >= 0 else ""),
                "mass_kg": float(model.body.mass[i]),
                "lower": float(joint.lower[start]) if is_scalar else None,
                "upper": float(joint.upper[start]) if is_scalar else None,
                "effort": float(joint.effort_limit[start]) if is_scalar else None,
                "damping": float(joint.damping[start]) if stop > start else None,
                "friction": float(joint.friction[start]) if stop > start else None,
            }
        )
    return rows


def _print_model(model: "Model") -> None:
    figures = summary(model)
    counts = [
        pluralize(figures["bodies"], "body", "bodies"),
        pluralize(figures["degrees_of_freedom"], "degree of freedom", "degrees of freedom"),
        pluralize(figures["actuators"], "actuator"),
        pluralize(figures["shapes"], "shape"),
        pluralize(figures["frames"], "frame"),
    ]
    gravity = ", ".join(f"{g:g}" for g in figures["gravity"])
    say(f"{figures['name']}: {', '.join(counts)}, {figures['mass_kg']:.4g} kg, {figures['base']} base", style="bold")
    say(f"gravity ({gravity}) m/s², time step {figures['timestep_s']:g} s; units: kg, rad or m, N·m or N", style="dim")
    print_table(
        ("body", "parent", "joint", "type", "mass", "limits", "effort", "damping", "friction"),
        (_cells(row) for row in bodies(model)),
        right=("mass", "limits", "effort", "damping", "friction"),
    )


def _cells(row: dict) -> list[str]:
    infinity = float("inf")
    has_limits = row["lower"] is not None and (row["lower"] > -infinity or row["upper"] < infinity)
    return [
        *(row[key] for key in ("body", "parent", "joint", "type")),
        f"{row['mass_kg']:.4g}",
        f"{row['lower']:.3g}…{row['upper']:.3g}" if has_limits else "",
        f"{row['effort']:.3g}" if row["effort"] is not None and row["effort"] < infinity else "",
        *(f"{row[key]:.3g}" if row[key] else "" for key in ("damping", "friction")),
    ]

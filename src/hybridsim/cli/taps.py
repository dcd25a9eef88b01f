"""`hybridsim taps`: list the quantities of a model that a network can read or modify."""

import warnings

from hybridsim.cli.options import Loader, ModelLoader, ModelName
from hybridsim.cli.output import print_json, print_table, say
from hybridsim.core.errors import ModelWarning


def taps(model: ModelName, loader: Loader = ModelLoader(), json: bool = False) -> int:
    """List the quantities that networks can read or modify.

    Below the table, the names of the model's bodies, joints and contacts are listed.

    For example:
      hybridsim taps cartpole
      hybridsim taps robot.urdf --base free --json

    Args:
        model: file or built-in mechanism.
        loader: options of the model loader.
        json: print JSON instead of text.
    """
    from hybridsim.contact.candidates import find_candidates
    from hybridsim.io.hulls import with_hulls
    from hybridsim.sim.simulator import axis_names
    from hybridsim.taps.catalogue import CATALOGUE, Axis, Form

    mechanism = with_hulls(loader.load(model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # nothing is simulated
        names = dict(axis_names(mechanism, find_candidates(mechanism))) | {Axis.NONE: ()}
    rows = [
        {
            "name": quantity.name,
            "shape": [len(names[quantity.axis])] * (quantity.axis is not Axis.NONE)
            + [len(quantity.components)] * bool(quantity.components),
            "unit": quantity.unit,
            "rows": list(names[quantity.axis]),
            "components": list(quantity.components),
            "writable": quantity.form is not Form.READ_ONLY,
            "description": quantity.description,
        }
        for quantity in (general.with_names(names) for general in CATALOGUE)
    ]
    if json:
        print_json(rows)
        return 0
    print_table(("quantity", "shape", "components", "description"), (_cells(row) for row in rows))
    for axis, values in names.items():
        if values:
            say(f"{axis} names: {', '.join(values)}")
    say("Address scalars as joint.tau[NAME], body.twist[NAME].omega.z, or with wildcards: joint.tau[*_knee].")
    return 0


def _cells(row: dict) -> list[str]:
    shape = "×".join(str(n) for n in row["shape"]) or "1"
    description = f"{row['description']} [{row['unit']}]" + ("" if row["writable"] else " Read only.")
    return [row["name"], shape, _group_components(row["components"]), description]


def _group_components(components: list[str]) -> str:
    """Short form of component names: `omega.{x,y,z} v.{x,y,z}` for a twist."""
    groups: dict[str, list[str]] = {}
    for component in components:
        name, _, part = component.partition(".")
        groups.setdefault(name, []).append(part)
    return " ".join(f"{name}.{{{','.join(parts)}}}" if parts != [""] else name for name, parts in groups.items())

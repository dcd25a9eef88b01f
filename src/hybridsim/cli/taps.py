"""`hybridsim taps`: the quantities of a model that a network can read or change."""

import json

from rich.console import Console
from rich.table import Table

from hybridsim.cli.options import ModelName, Reading, ReadingOptions


def taps(model: ModelName, reading: Reading = ReadingOptions(), json: bool = False) -> int:  # noqa: B008 - frozen
    """List the quantities that networks can be grafted onto, with the model's own names.

    For example:
      hybridsim taps cartpole
      hybridsim taps robot.urdf --base free --json

    Args:
        model: file or built-in mechanism.
        reading: how to read the file.
        json: print JSON for other programs.
    """
    from hybridsim.sim.simulator import axis_names
    from hybridsim.taps.catalog import CATALOG, Axis, Form

    names = dict(axis_names(reading.load(model))) | {Axis.NONE: ()}
    rows = [
        {
            "name": quantity.name,
            "shape": [len(names[quantity.axis]) or 1] * (quantity.axis is not Axis.NONE)
            + [len(quantity.components)] * bool(quantity.components),
            "unit": quantity.unit,
            "rows": list(names[quantity.axis]),
            "components": list(quantity.components),
            "writable": quantity.form is not Form.INPUT,
            "meaning": quantity.text,
        }
        for quantity in CATALOG
    ]
    if json:
        _print_json(rows)
    else:
        _print_table(rows, {str(axis): values for axis, values in names.items() if values})
    return 0


def _print_json(rows: list[dict]) -> None:
    print(json.dumps(rows, indent=2, ensure_ascii=False))


def _grouped(components: list[str]) -> str:
    """`omega.{x,y,z} v.{x,y,z}` for the six components of a twist."""
    groups: dict[str, list[str]] = {}
    for component in components:
        name, _, part = component.partition(".")
        groups.setdefault(name, []).append(part)
    return " ".join(f"{name}.{{{','.join(parts)}}}" if parts != [""] else name for name, parts in groups.items())


def _print_table(rows: list[dict], names: dict[str, tuple[str, ...]]) -> None:
    console = Console(highlight=False)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("quantity", "shape", "components", "meaning"):
        table.add_column(title, overflow="fold", no_wrap=title == "quantity")
    for row in rows:
        shape = "×".join(str(n) for n in row["shape"]) or "1"
        meaning = f"{row['meaning']} \\[{row['unit']}]" + ("" if row["writable"] else " Read only.")
        table.add_row(row["name"], shape, _grouped(row["components"]), meaning)
    console.print(table)
    for axis, values in names.items():
        console.print(f"[bold]{axis} names[/]: {', '.join(values)}")
    console.print(
        "Address scalars as joint.tau\\[NAME], body.twist\\[NAME].omega.z, or with wildcards: joint.tau\\[*_knee]."
    )

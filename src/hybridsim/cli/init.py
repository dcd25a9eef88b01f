"""`hybridsim init`: write a first project for a model and its recordings."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from hybridsim.cli.options import ModelName, Reading, ReadingOptions, refuse_to_overwrite
from hybridsim.cli.output import print_json, print_table, say
from hybridsim.core.errors import HybridsimError
from hybridsim.core.messages import pluralize

if TYPE_CHECKING:
    from hybridsim.project.starter.explore import Measured, Starter


def init(
    model: ModelName,
    data: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DATA...")],
    out: Path = Path("project.toml"),
    step: float | None = None,
    force: bool = False,
    reading: Reading = ReadingOptions(),  # noqa: B008 - frozen
    json: bool = False,
) -> int:
    """Write a project that fits a model to recordings: columns are matched with joints by their names.

    The project fits as it is; read it and change what was guessed wrongly.

    For example:
      hybridsim init robot.urdf runs/*.csv
      hybridsim init double_pendulum run.csv --out fit/project.toml
      hybridsim init arm.xml log.npz --step 0.002

    Args:
        model: file or built-in mechanism.
        data: recordings (CSV, NPZ, HDF5, Parquet, MCAP), one run each.
        out: project file to write.
        step: time between samples [s], for recordings without a time column.
        force: write over a file that is there?
        reading: how to read the model.
        json: print JSON for other programs.
    """
    import math

    from hybridsim.core.files import write_atomically
    from hybridsim.project.starter.explore import explore
    from hybridsim.project.starter.text import starter_text
    from hybridsim.robots import BUILT_IN

    if not data:
        raise HybridsimError("init needs recordings: hybridsim init MODEL DATA...")
    if step is not None and not (math.isfinite(step) and step > 0.0):
        raise HybridsimError(f"--step must be positive and finite, not {step:g} s")
    for path in (model, *map(str, data)):
        refuse_to_overwrite(path, out)
    if out.exists() and not force:
        raise HybridsimError(f"{out} is there already; --force writes over it, --out chooses another file")
    usual = ReadingOptions()
    given = {f.name: getattr(reading, f.name) for f in fields(reading)}
    starter = explore(
        reading.load(model),
        model,
        data,
        is_built_in=model in BUILT_IN and not Path(model).exists(),
        reading={name: value for name, value in given.items() if value != getattr(usual, name)},
        step=step,
    )
    write_atomically(out, starter_text(starter, out.absolute().parent).encode())
    if json:
        print_json(_report(starter, out))
        return 0
    _print_matches(starter)
    say(f"wrote {out}: {pluralize(len(starter.channels), 'channel')}, {pluralize(len(starter.commands), 'command')}")
    say(f"Read it, then: hybridsim fit {out}")
    return 0


def _print_matches(starter: "Starter") -> None:
    print_table(
        ("column", "is", "unit"), ([one.match.column.name, _meaning(one), _unit(one)] for one in _used(starter))
    )
    for match in starter.matches.spare:
        say(f"not used: {match.column.name} ({match.kind} of {match.target}, as another column)", style="dim")
    for name in starter.matches.unknown:
        say(f"not understood: {name}", style="yellow")
    for note in starter.notes:
        say(f"note: {note}", style="yellow")
    if unseen := [name for name in starter.model.topology.coordinate_names if name not in _targets(starter)]:
        say(f"nothing measures {', '.join(unseen)}: the fit starts from where the model has them", style="yellow")


def _used(starter: "Starter") -> "list[Measured]":
    return [*starter.channels, *starter.commands]


def _targets(starter: "Starter") -> set[str]:
    return {one.match.target for one in starter.channels}


def _meaning(one: "Measured") -> str:
    return f"{one.match.kind} of {one.match.target}"


def _unit(one: "Measured") -> str:
    guess = f" (a guess: {one.unit.reason})" if one.unit.reason else ""
    return f"{one.unit.unit}{guess}{', starts again after a turn' if one.unwrap else ''}"


def _report(starter: "Starter", out: Path) -> dict:
    return {
        "out": str(out),
        "time": starter.time or None,
        "time_unit": starter.time_unit.unit,
        "matched": [
            {
                "column": one.match.column.name,
                "kind": str(one.match.kind),
                "target": one.match.target,
                "unit": one.unit.unit,
                "guessed_from": one.unit.reason,
                "unwrap": one.unwrap,
            }
            for one in _used(starter)
        ],
        "spare": [match.column.name for match in starter.matches.spare],
        "unknown": list(starter.matches.unknown),
        "notes": list(starter.notes),
    }

"""`hybridsim init`: write a starter project for a model and its recordings."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from hybridsim.cli.options import Loader, ModelLoader, ModelName, require_new_files
from hybridsim.cli.output import print_json, print_table, say
from hybridsim.core.errors import HybridsimError
from hybridsim.core.messages import pluralize

if TYPE_CHECKING:
    from hybridsim.project.starter.analyse import MatchedColumn, StarterProject


def init(
    model: ModelName,
    data: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DATA...")],
    out: Path = Path("project.toml"),
    sample_interval: float | None = None,
    force: bool = False,
    loader: Loader = ModelLoader(),
    json: bool = False,
) -> int:
    """Write a starter project for a model and its recordings; columns are matched to joints by name.

    The project can be fitted without editing; review it and correct wrong guesses.

    For example:
      hybridsim init robot.urdf runs/*.csv
      hybridsim init double_pendulum run.csv --out fit/project.toml
      hybridsim init arm.xml log.npz --sample-interval 0.002

    Args:
        model: file or built-in mechanism.
        data: recordings, such as CSV or Parquet files, one run each.
        out: project file to write.
        sample_interval: time between samples [s], for recordings without a time column.
        force: overwrite an existing file.
        loader: options of the model loader.
        json: print JSON instead of text.
    """
    import math

    from hybridsim.core.files import write_atomically
    from hybridsim.project.starter.analyse import analyse_recordings
    from hybridsim.project.starter.text import starter_text
    from hybridsim.robots.built_in import BUILT_IN

    if not data:
        raise HybridsimError("init needs recordings: hybridsim init MODEL DATA...")
    if sample_interval is not None and not (math.isfinite(sample_interval) and sample_interval > 0.0):
        raise HybridsimError(f"--sample-interval must be positive and finite, not {sample_interval:g} s")
    require_new_files([out], [model, *data], force=force)
    default = ModelLoader()
    options = {f.name: getattr(loader, f.name) for f in fields(loader)}
    starter = analyse_recordings(
        loader.load(model),
        model,
        data,
        is_built_in=model in BUILT_IN and not Path(model).exists(),
        load_options={name: value for name, value in options.items() if value != getattr(default, name)},
        sample_interval=sample_interval,
    )
    write_atomically(out, starter_text(starter, out.absolute().parent).encode())
    if json:
        print_json(_summary(starter, out))
        return 0
    _print_matches(starter)
    say(f"wrote {out}: {pluralize(len(starter.channels), 'channel')}, {pluralize(len(starter.commands), 'command')}")
    say(f"Review it, then run: hybridsim fit {out}")
    return 0


def _print_matches(starter: "StarterProject") -> None:
    print_table(
        ("column", "quantity", "unit"),
        ([column.match.column.name, _quantity(column), _unit(column)] for column in _used_columns(starter)),
    )
    columns = {(match.kind, match.target): match.column.name for match in starter.matches.best}
    for match in starter.matches.duplicates:
        reason = f"{columns[match.kind, match.target]} is matched to the {match.kind} of {match.target}"
        say(f"not used: {match.column.name} ({reason})", style="dim")
    for name in starter.matches.unrecognized:
        say(f"not recognized: {name}", style="yellow")
    for note in starter.notes:
        say(f"note: {note}", style="yellow")
    if starter.model.nu and not starter.commands:
        say(
            f"no column is recognized as a command: {pluralize(starter.model.nu, 'actuator')} of the model get zero "
            "commands; see [[command]] in the project",
            style="yellow",
        )
    if unmeasured := [name for name in starter.model.topology.coordinate_names if name not in _targets(starter)]:
        say(
            f"not measured: {', '.join(unmeasured)}; the home configuration is the initial guess of initial states",
            style="yellow",
        )


def _used_columns(starter: "StarterProject") -> "list[MatchedColumn]":
    return [*starter.channels, *starter.commands]


def _targets(starter: "StarterProject") -> set[str]:
    return {column.match.target for column in starter.channels}


def _quantity(column: "MatchedColumn") -> str:
    return f"{column.match.kind} of {column.match.target}"


def _unit(column: "MatchedColumn") -> str:
    guess = f" (guessed: {column.unit.reason})" if column.unit.reason else ""
    return f"{column.unit.unit}{guess}{', wraps at full turns' if column.unwrap else ''}"


def _summary(starter: "StarterProject", out: Path) -> dict:
    return {
        "out": str(out),
        "time": starter.time or None,
        "time_unit": starter.time_unit.unit,
        "matched": [
            {
                "column": column.match.column.name,
                "kind": str(column.match.kind),
                "target": column.match.target,
                "unit": column.unit.unit,
                "reason": column.unit.reason,
                "unwrap": column.unwrap,
            }
            for column in _used_columns(starter)
        ],
        "duplicates": [match.column.name for match in starter.matches.duplicates],
        "unrecognized": list(starter.matches.unrecognized),
        "notes": list(starter.notes),
    }

"""`hybridsim convert`: write a model in another format."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hybridsim.cli.options import ModelName, Reading, ReadingOptions


def convert(
    model: ModelName,
    out: Annotated[Path, tyro.conf.Positional],
    reading: Reading = ReadingOptions(),  # noqa: B008 - frozen
) -> int:
    """Write a model as URDF or MJCF; the ending of OUT decides (.urdf, .xml or .mjcf).

    For example:
      hybridsim convert quadruped quadruped.urdf
      hybridsim convert robot.urdf robot.xml --base free

    Args:
        model: file or built-in mechanism.
        out: file to write.
        reading: how to read the model.
    """
    from hybridsim.io.convert import convert as write

    notes = write(reading.load(model), out)
    console = Console(highlight=False)
    for note in notes:
        console.print(f"note: {note}", style="yellow", markup=False)
    console.print(f"wrote {out}", markup=False)
    return 0

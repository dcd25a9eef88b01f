"""`hybridsim convert`: write a model in another format."""

from pathlib import Path
from typing import Annotated

import tyro

from hybridsim.cli.options import Loader, ModelLoader, ModelName, require_new_files
from hybridsim.cli.output import print_json, say


def convert(
    model: ModelName,
    out: Annotated[Path, tyro.conf.Positional],
    force: bool = False,
    loader: Loader = ModelLoader(),
    json: bool = False,
) -> int:
    """Convert a model to URDF or MJCF; the suffix of OUT selects the format (.urdf, .xml or .mjcf).

    The output contains what the engine models: bodies, joints, collision shapes and actuators. Visual
    shapes, materials, sensors and comments of the original are dropped.

    For example:
      hybridsim convert quadruped quadruped.urdf
      hybridsim convert robot.urdf robot.xml --base free

    Args:
        model: file or built-in mechanism.
        out: file to write.
        force: overwrite an existing file.
        loader: options of the model loader.
        json: print JSON instead of text.
    """
    from hybridsim.io.convert import convert as convert_model

    require_new_files([out], [model], force=force)
    notes = convert_model(loader.load(model), out)
    if json:
        print_json({"out": str(out), "notes": notes})
        return 0
    for note in notes:
        say(f"note: {note}", style="yellow")
    say(f"wrote {out}")
    return 0

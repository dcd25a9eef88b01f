"""`hybridsim blueprint`: what the networks of a blueprint are wired to."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from hybridsim.cli.options import Reading, ReadingOptions
from hybridsim.cli.output import print_json, print_table, say
from hybridsim.core.words import counted


def blueprint(
    action: Annotated[Literal["show"], tyro.conf.Positional],
    file: Annotated[Path, tyro.conf.Positional],
    model: str,
    contact: Literal["none", "impulse", "compliant"] = "none",
    out: Path | None = None,
    weights: Path | None = None,
    reading: Reading = ReadingOptions(),  # noqa: B008 - frozen
    json: bool = False,
) -> int:
    """Show what the networks of a blueprint read and change, as a table and as a picture.

    For example:
      hybridsim blueprint show friction.toml --model arm.urdf
      hybridsim blueprint show runs/arm/blueprint.toml --model arm.urdf --out wiring.svg
      hybridsim blueprint show friction.toml --model arm.urdf --weights weights.svg

    Args:
        action: what to do with it: show.
        file: blueprint in TOML.
        model: file or built-in mechanism that it is for.
        contact: whose quantities its networks may use.
        out: file for the picture; beside the blueprint by default.
        weights: file for a picture of all weights.
        reading: how to read the model file.
        json: print JSON for other programs.
    """
    from hybridsim.core.files import write_atomically
    from hybridsim.project.blueprint_file import load_blueprint
    from hybridsim.sim.simulator import Simulator
    from hybridsim.taps.wiring import wirings
    from hybridsim.viz.weights_picture import weights_picture
    from hybridsim.viz.wiring_picture import wiring_picture

    del action  # there is but one
    sim = Simulator(reading.load(model), contact=contact)
    bound = load_blueprint(file, sim).bind(dict(sim.axis_names))
    found, title = wirings(bound), f"{file.stem} on {sim.model.name}"
    picture = out or file.with_suffix(".svg")
    write_atomically(picture, wiring_picture([(title, found)]).encode())
    if weights:
        write_atomically(weights, weights_picture([(title, bound)]).encode())
    if json:
        rows = [
            {
                "network": one.kind,
                "layers": one.shape,
                "weights": one.weights,
                "mode": one.mode,
                "per": one.per,
                "inputs": {wire.address: wire.strength for wire in one.inputs},
                "outputs": list(one.outputs),
            }
            for one in found
        ]
        print_json({"grafts": rows, "picture": str(picture)})
        return 0
    rows = []
    for number, one in enumerate(found):
        for k, wire in enumerate(one.inputs):
            strength = "–" if wire.strength is None else f"{wire.strength:.3g}"
            about = (str(number), f"{one.kind} {one.shape}".strip(), f"{one.mode} to {', '.join(one.outputs)}")
            rows.append((*(about if k == 0 else ("", "", "")), wire.address, "cut" if wire.is_cut else strength))
    print_table(("graft", "network", "output", "input", "strength"), rows, right=("strength",))
    total = sum(one.weights for one in found)
    say(f"{counted(len(found), 'network')}, {counted(total, 'weight')}. Picture: {picture}")
    return 0

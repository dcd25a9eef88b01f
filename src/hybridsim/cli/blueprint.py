"""`hybridsim blueprint`: what the networks of a blueprint are wired to, and one of them as C."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from hybridsim.cli.options import Reading, ReadingOptions
from hybridsim.cli.output import print_json, print_table, say
from hybridsim.core.errors import HybridsimError
from hybridsim.core.messages import pluralize

if TYPE_CHECKING:
    from hybridsim.sim.simulator import Simulator


def blueprint(
    action: Annotated[Literal["show", "export-c"], tyro.conf.Positional],
    file: Annotated[Path, tyro.conf.Positional],
    model: str,
    contact: Literal["none", "impulse", "compliant"] = "none",
    out: Path | None = None,
    weights: Path | None = None,
    graft: int = 0,
    reading: Reading = ReadingOptions(),  # noqa: B008 - frozen
    json: bool = False,
) -> int:
    """Show what the networks of a blueprint read and change, as a table and as a picture; or write one of them as C.

    For example:
      hybridsim blueprint show friction.toml --model arm.urdf
      hybridsim blueprint show runs/arm/blueprint.toml --model arm.urdf --out wiring.svg
      hybridsim blueprint show friction.toml --model arm.urdf --weights weights.svg
      hybridsim blueprint export-c friction.toml --model arm.urdf --graft 1 --out friction.c

    Args:
        action: what to do with it: show, or export-c.
        file: blueprint in TOML.
        model: file or built-in mechanism that it is for.
        contact: whose quantities its networks may use.
        out: file for the picture, or the C file; beside the blueprint by default.
        weights: file for a picture of all weights, for show.
        graft: number of the network that export-c writes, from 0.
        reading: how to read the model file.
        json: print JSON for other programs.
    """
    from hybridsim.core.files import write_atomically
    from hybridsim.networks.wiring_summary import wirings
    from hybridsim.project.build.blueprint_file import load_blueprint
    from hybridsim.sim.simulator import Simulator
    from hybridsim.viz.weights_picture import weights_picture
    from hybridsim.viz.wiring_picture import wiring_picture

    sim = Simulator(reading.load(model), contact=contact)
    loaded = load_blueprint(file, sim)
    if action == "export-c":
        return _export_c(
            Simulator(sim.model, contact=contact, blueprint=loaded), graft, out or file.with_suffix(".c"), json
        )
    bound = loaded.bind(dict(sim.axis_names))
    found, title = wirings(bound), f"{file.stem} on {sim.model.name}"
    picture = out or file.with_suffix(".svg")
    for path in (picture, *([weights] if weights else [])):
        if path.suffix != ".svg" or path.resolve() == file.resolve():
            raise HybridsimError(f"{path}: pictures are SVG; name a file with the ending .svg")
    if weights and weights.resolve() == picture.resolve():
        raise HybridsimError(f"{picture}: both pictures cannot be in one file; give --out and --weights other names")
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
    say(f"{pluralize(len(found), 'network')}, {pluralize(total, 'weight')}. Picture: {picture}")
    return 0


def _export_c(sim: "Simulator", graft: int, out: Path, json: bool) -> int:
    from hybridsim.sim.c_export.export_network import export_network_c

    source, header = export_network_c(sim, graft, out)
    if json:
        print_json({"graft": graft, "out": str(source), "header": str(header)})
    else:
        say(f"network {graft} as C: {source} and {header}, which tells the meaning of every number")
    return 0

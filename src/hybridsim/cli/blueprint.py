"""`hybridsim blueprint`: show the wiring of a blueprint's networks, or export one of them as C."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from hybridsim.cli.options import ContactName, Loader, ModelLoader
from hybridsim.cli.output import print_json, print_table, say
from hybridsim.core.errors import HybridsimError
from hybridsim.core.messages import pluralize

if TYPE_CHECKING:
    from hybridsim.sim.simulator import Simulator

MODE_VERBS = {"add": "adds to", "scale": "scales", "replace": "replaces"}
"""What a network does with its outputs, by the mode of its graft."""


def blueprint(
    action: Annotated[Literal["show", "export-c"], tyro.conf.Positional],
    file: Annotated[Path, tyro.conf.Positional],
    model: str,
    contact: ContactName = "none",
    out: Path | None = None,
    weights: Path | None = None,
    graft: int = 0,
    loader: Loader = ModelLoader(),
    json: bool = False,
) -> int:
    """Show the inputs and outputs of a blueprint's networks as a table and a diagram, or export one network as C.

    For example:
      hybridsim blueprint show friction.toml --model arm.urdf
      hybridsim blueprint show runs/arm-discovery/blueprint.toml --model arm.urdf --out wiring.svg
      hybridsim blueprint show friction.toml --model arm.urdf --weights weights.svg
      hybridsim blueprint export-c friction.toml --model arm.urdf --graft 1 --out friction.c

    Args:
        action: show or export-c.
        file: blueprint (TOML).
        model: model file or built-in mechanism that the blueprint is for.
        contact: contact model, for networks on contact quantities.
        out: file for the wiring diagram (SVG) or the C source; by default next to the blueprint.
        weights: file for a diagram of all weights (SVG), for show.
        graft: index of the network to export, from 0.
        loader: options of the model loader.
        json: print JSON instead of text.
    """
    from hybridsim.core.files import write_atomically
    from hybridsim.networks.wiring_summary import wiring_summaries
    from hybridsim.project.build.blueprint_file import load_blueprint
    from hybridsim.sim.simulator import Simulator
    from hybridsim.viz.weights_diagram import weights_diagram
    from hybridsim.viz.wiring_diagram import wiring_diagram

    sim = Simulator(loader.load(model), contact=contact)
    loaded = load_blueprint(file, sim)
    if action == "export-c":
        return _export_c(
            Simulator(sim.model, contact=contact, blueprint=loaded), graft, out or file.with_suffix(".c"), json
        )
    bound = loaded.bind(dict(sim.axis_names))
    networks, title = wiring_summaries(bound), f"{file.stem} on {sim.model.name}"
    diagram = out or file.with_suffix(".svg")
    for path in (diagram, *([weights] if weights else [])):
        if path.suffix != ".svg" or path.resolve() == file.resolve():
            raise HybridsimError(f"{path}: diagrams are written as SVG; use a file name that ends in .svg")
    if weights and weights.resolve() == diagram.resolve():
        raise HybridsimError(f"{diagram}: --out and --weights must be different files")
    write_atomically(diagram, wiring_diagram([(title, networks)]).encode())
    if weights:
        write_atomically(weights, weights_diagram([(title, bound)]).encode())
    if json:
        rows = [
            {
                "network": network.kind,
                "layers": network.shape,
                "weights": network.weights,
                "mode": network.mode,
                "per": network.per,
                "inputs": {wire.address: wire.strength for wire in network.inputs},
                "outputs": list(network.outputs),
            }
            for network in networks
        ]
        print_json({"grafts": rows, "diagram": str(diagram)})
        return 0
    rows = []
    for index, network in enumerate(networks):
        for k, wire in enumerate(network.inputs):
            strength = "–" if wire.strength is None else f"{wire.strength:.3g}"
            outputs = f"{MODE_VERBS[network.mode]} {', '.join(network.outputs)}"
            cells = (str(index), f"{network.kind} {network.shape}".strip(), outputs)
            rows.append((*(cells if k == 0 else ("", "", "")), wire.address, "pruned" if wire.is_pruned else strength))
    print_table(("graft", "network", "output", "input", "strength"), rows, right=("strength",))
    total = sum(network.weights for network in networks)
    say(f"{pluralize(len(networks), 'network')}, {pluralize(total, 'weight')}; diagram: {diagram}")
    return 0


def _export_c(sim: "Simulator", graft: int, out: Path, json: bool) -> int:
    from hybridsim.sim.c_export.export_network import export_network_c

    source, header = export_network_c(sim, graft, out)
    if json:
        print_json({"graft": graft, "out": str(source), "header": str(header)})
    else:
        say(f"network {graft} written to {source} and {header}; the header documents inputs, outputs and weights")
    return 0

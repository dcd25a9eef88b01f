"""Diagrams of network weights, as in Figure 10 of the NeuralSim paper: units in columns, a line for every weight.

The thickness and opacity of a line grow with the magnitude of its weight relative to the largest of the layer; positive
weights are blue, negative ones orange, and weights of exactly zero are not drawn.
"""

from collections.abc import Sequence
from html import escape

import numpy as np

from hybridsim.networks.mlp import MLP
from hybridsim.networks.prune import input_addresses
from hybridsim.taps.blueprint import BoundBlueprint, BoundGraft
from hybridsim.viz.panel_row import INK, panel_row

ROW_HEIGHT, GAP, MARGIN, CHARACTER_WIDTH, LAYER_SPACING, RADIUS = 20, 24, 16, 7.2, 84, 5
"""Height of a row, gap between networks, margin, width of a character, layer spacing, radius of a unit [pixels]."""
MAX_LINE_WIDTH = 3.2
"""Line width of the largest weight of a layer [pixels]."""
POSITIVE, NEGATIVE, PRUNED, KEPT = "#2f6f9f", "#c9631f", "#c4cdd5", "#8fbf6a"


def weights_diagram(panels: Sequence[tuple[str, BoundBlueprint]]) -> str:
    """SVG image of the MLPs of blueprints, one panel per blueprint.

    Of other networks, only the type and the outputs are shown.

    Args:
        panels: titles, and blueprints bound to their models.
    """
    return panel_row([_panel(title, blueprint.grafts) for title, blueprint in panels])


def _panel(title: str, grafts: Sequence[BoundGraft]) -> tuple[int, int, str]:
    """Width, height and SVG content of a panel."""
    addresses = [address for graft in grafts for address in input_addresses(graft)]
    layers = max((len(graft.net.weights) for graft in grafts if isinstance(graft.net, MLP)), default=1)
    left = MARGIN + CHARACTER_WIDTH * max((len(address) for address in addresses), default=8) + 14
    right = CHARACTER_WIDTH * max((len(out) for graft in grafts for out in _outputs(graft)), default=8)
    title_width = CHARACTER_WIDTH * 1.2 * len(title)
    width = int(max(left + LAYER_SPACING * layers + 14 + right + MARGIN, 2 * MARGIN + title_width))
    parts, y = [f'<text x="{MARGIN}" y="{MARGIN + 8}" font-weight="bold">{escape(title)}</text>'], MARGIN + 26.0
    for graft in grafts:
        if isinstance(graft.net, MLP):
            body, height = _network(graft, graft.net, left, y)
        else:
            label = f"{type(graft.net).__name__} → {', '.join(_outputs(graft))}"
            body, height = f'<text x="{MARGIN}" y="{y + 14:.1f}">{escape(label)}</text>', ROW_HEIGHT
        parts.append(body)
        y += height + GAP
    if not grafts:
        parts.append(f'<text x="{MARGIN}" y="{y:.1f}">no networks</text>')
        y += ROW_HEIGHT
    return width, int(y - GAP + MARGIN), "".join(parts)


def _outputs(graft: BoundGraft) -> list[str]:
    return [out.address for out in graft.outputs]


def _network(graft: BoundGraft, net: MLP, left: float, y: float) -> tuple[str, float]:
    """SVG content and height of one network."""
    weights = [np.asarray(W) for W in net.weights]
    sizes = [weights[0].shape[1], *(W.shape[0] for W in weights)]
    height = ROW_HEIGHT * max(sizes)
    rows_of_layer = [[y + 0.5 * height + ROW_HEIGHT * (k - 0.5 * (n - 1)) for k in range(n)] for n in sizes]
    columns = [left + LAYER_SPACING * k for k in range(len(sizes))]
    parts = []
    for layer, W in enumerate(weights):
        largest = np.abs(W).max(initial=0.0)
        # in order of magnitude, so that large weights are on top
        for i, j in sorted(np.argwhere(W), key=lambda ij, W=W: abs(W[*ij])):
            colour = POSITIVE if W[i, j] > 0.0 else NEGATIVE
            relative = abs(W[i, j]) / largest
            line_width = max(MAX_LINE_WIDTH * relative, 0.2)
            parts.append(
                f'<line x1="{columns[layer]:.1f}" y1="{rows_of_layer[layer][j]:.1f}" x2="{columns[layer + 1]:.1f}" '
                f'y2="{rows_of_layer[layer + 1][i]:.1f}" stroke="{colour}" stroke-width="{line_width:.2f}" '
                f'stroke-opacity="{0.25 + 0.75 * relative:.2f}"/>'
            )
    is_pruned = [not column.any() for column in weights[0].T]
    for layer, (x, rows) in enumerate(zip(columns, rows_of_layer, strict=True)):
        for k, y_row in enumerate(rows):
            fill = ("white" if is_pruned[k] else KEPT) if layer == 0 else "#e8f0f6"
            edge = PRUNED if layer == 0 and is_pruned[k] else INK
            parts.append(f'<circle cx="{x:.1f}" cy="{y_row:.1f}" r="{RADIUS}" fill="{fill}" stroke="{edge}"/>')
    for address, y_row, pruned in zip(input_addresses(graft), rows_of_layer[0], is_pruned, strict=True):
        fill = "#8794a0" if pruned else INK
        parts.append(
            f'<text x="{left - 12:.1f}" y="{y_row + 4:.1f}" text-anchor="end" fill="{fill}">{escape(address)}</text>'
        )
    names = _outputs(graft) if len(graft.outputs) == sizes[-1] else [", ".join(_outputs(graft))]
    name_rows = rows_of_layer[-1] if len(names) == sizes[-1] else [y + 0.5 * height]
    for name, y_row in zip(names, name_rows, strict=True):
        parts.append(f'<text x="{columns[-1] + 12:.1f}" y="{y_row + 4:.1f}">{escape(name)}</text>')
    return "".join(parts), height

"""Pictures of weights, as the NeuralSim paper's Figure 10: units in columns, and a line for every weight.

A line is as thick as its weight is large among those of its layer, blue where it is positive and orange where it is
negative; where a weight is exactly zero there is none.
"""

from collections.abc import Sequence
from html import escape

import numpy as np

from hybridsim.networks.mlp import MLP
from hybridsim.networks.prune import input_addresses
from hybridsim.taps.blueprint import BoundBlueprint, BoundGraft
from hybridsim.viz.side_by_side import INK, side_by_side

ROW, GAP, MARGIN, SIGN, LAYER, RADIUS = 20, 24, 16, 7.2, 84, 5
"""Height of a unit, space between networks, margin, width of a sign, distance of layers, size of a unit [pixels]."""
THICK = 3.2
"""Thickness of the largest weight of a layer [pixels]."""
POSITIVE, NEGATIVE, CUT, READ = "#2f6f9f", "#c9631f", "#c4cdd5", "#8fbf6a"


def weights_picture(panels: Sequence[tuple[str, BoundBlueprint]]) -> str:
    """An SVG of the perceptrons of blueprints, one blueprint beside the other; networks of other kinds are named.

    Args:
        panels: titles, and blueprints bound to their models.
    """
    return side_by_side([_panel(title, blueprint.grafts) for title, blueprint in panels])


def _panel(title: str, grafts: Sequence[BoundGraft]) -> tuple[int, int, str]:
    """Width, height and content of a panel."""
    reads = [address for graft in grafts for address in input_addresses(graft)]
    layers = max((len(graft.net.weights) for graft in grafts if isinstance(graft.net, MLP)), default=1)
    left = MARGIN + SIGN * max((len(address) for address in reads), default=8) + 14
    right = SIGN * max((len(out) for graft in grafts for out in _outputs(graft)), default=8)
    width = int(max(left + LAYER * layers + 14 + right + MARGIN, 2 * MARGIN + SIGN * 1.2 * len(title)))
    parts, y = [f'<text x="{MARGIN}" y="{MARGIN + 8}" font-weight="bold">{escape(title)}</text>'], MARGIN + 26.0
    for graft in grafts:
        if isinstance(graft.net, MLP):
            body, height = _network(graft, graft.net, left, y)
        else:
            words = f"{type(graft.net).__name__} → {', '.join(_outputs(graft))}"
            body, height = f'<text x="{MARGIN}" y="{y + 14:.1f}">{escape(words)}</text>', ROW
        parts.append(body)
        y += height + GAP
    if not grafts:
        parts.append(f'<text x="{MARGIN}" y="{y:.1f}">no networks</text>')
        y += ROW
    return width, int(y - GAP + MARGIN), "".join(parts)


def _outputs(graft: BoundGraft) -> list[str]:
    return [out.address for out in graft.outputs]


def _network(graft: BoundGraft, net: MLP, left: float, y: float) -> tuple[str, float]:
    """Content and height of one network."""
    weights = [np.asarray(W) for W in net.weights]
    sizes = [weights[0].shape[1], *(W.shape[0] for W in weights)]
    height = ROW * max(sizes)
    places = [[y + 0.5 * height + ROW * (k - 0.5 * (n - 1)) for k in range(n)] for n in sizes]
    columns = [left + LAYER * k for k in range(len(sizes))]
    parts = []
    for layer, W in enumerate(weights):
        largest = np.abs(W).max(initial=0.0)
        # small weights first, so that large ones are on top
        for i, j in sorted(np.argwhere(W), key=lambda ij, W=W: abs(W[*ij])):
            colour = POSITIVE if W[i, j] > 0.0 else NEGATIVE
            share = abs(W[i, j]) / largest
            parts.append(
                f'<line x1="{columns[layer]:.1f}" y1="{places[layer][j]:.1f}" x2="{columns[layer + 1]:.1f}" '
                f'y2="{places[layer + 1][i]:.1f}" stroke="{colour}" stroke-width="{max(THICK * share, 0.2):.2f}" '
                f'stroke-opacity="{0.25 + 0.75 * share:.2f}"/>'
            )
    is_read = [bool(column.any()) for column in weights[0].T]
    for layer, (x, rows) in enumerate(zip(columns, places, strict=True)):
        for k, at in enumerate(rows):
            fill = (READ if is_read[k] else "white") if layer == 0 else "#e8f0f6"
            edge = CUT if layer == 0 and not is_read[k] else INK
            parts.append(f'<circle cx="{x:.1f}" cy="{at:.1f}" r="{RADIUS}" fill="{fill}" stroke="{edge}"/>')
    for address, at, used in zip(input_addresses(graft), places[0], is_read, strict=True):
        fill = INK if used else "#8794a0"
        parts.append(
            f'<text x="{left - 12:.1f}" y="{at + 4:.1f}" text-anchor="end" fill="{fill}">{escape(address)}</text>'
        )
    names = _outputs(graft) if len(graft.outputs) == sizes[-1] else [", ".join(_outputs(graft))]
    middle = places[-1] if len(names) == sizes[-1] else [y + 0.5 * height]
    for name, at in zip(names, middle, strict=True):
        parts.append(f'<text x="{columns[-1] + 12:.1f}" y="{at + 4:.1f}">{escape(name)}</text>')
    return "".join(parts), height

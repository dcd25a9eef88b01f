"""Wiring diagrams of blueprints as SVG: inputs of networks on the left, quantities they modify on the right.

The thickness of a line grows with the norm of the weights of its input; lines of pruned inputs, whose weights are all
zero, are grey and dashed.
"""

from collections.abc import Sequence
from html import escape

from hybridsim.networks.wiring_summary import WiringSummary
from hybridsim.viz.panel_row import INK, panel_row

ROW_HEIGHT, GAP, MARGIN, CHARACTER_WIDTH = 22, 26, 16, 7.2
"""Height of a row, gap between networks, margin, and width of a character [pixels]."""
BOX_WIDTH, MAX_TITLE_LENGTH = 150, 18
"""Width of a network's box [pixels], and maximum number of characters of its title."""
LINE, PRUNED, FILL = "#2f6f9f", "#c4cdd5", "#e8f0f6"
"""Colours of lines, of pruned inputs, and of boxes."""


def wiring_diagram(panels: Sequence[tuple[str, Sequence[WiringSummary]]]) -> str:
    """SVG image with one panel per blueprint.

    Args:
        panels: titles, and the wiring of the networks.
    """
    return panel_row([_panel(title, summaries) for title, summaries in panels])


def _panel(title: str, summaries: Sequence[WiringSummary]) -> tuple[int, int, str]:
    """Width, height and SVG content of a panel."""
    left = MARGIN + CHARACTER_WIDTH * max((len(wire.address) for w in summaries for wire in w.inputs), default=8) + 10
    right = CHARACTER_WIDTH * max((len(out) for w in summaries for out in w.outputs), default=8)
    x_in, x_box = left, left + 90
    x_out = x_box + BOX_WIDTH + 40
    width = int(max(x_out + 10 + right + MARGIN, 2 * MARGIN + CHARACTER_WIDTH * 1.2 * len(title)))
    parts, y = [f'<text x="{MARGIN}" y="{MARGIN + 8}" font-weight="bold">{escape(title)}</text>'], MARGIN + 26
    for wiring in summaries:
        rows = max(len(wiring.inputs), len(wiring.outputs), 3)
        parts.append(_network(wiring, y, rows, x_in, x_box, x_out))
        y += ROW_HEIGHT * rows + GAP
    if not summaries:
        parts.append(f'<text x="{MARGIN}" y="{y}">no networks</text>')
        y += ROW_HEIGHT
    return width, int(y - GAP + MARGIN + 10), "".join(parts)


def _network(wiring: WiringSummary, y: float, rows: int, x_in: float, x_box: float, x_out: float) -> str:
    largest = max((wire.strength or 0.0 for wire in wiring.inputs), default=0.0)
    middle, height = y + 0.5 * ROW_HEIGHT * rows, min(ROW_HEIGHT * rows, 78)
    parts = []
    for wire, y_row in zip(wiring.inputs, _row_positions(len(wiring.inputs), y, rows), strict=True):
        colour, dash, line_width = LINE, "", 1.5
        if wire.is_pruned:
            colour, dash, line_width = PRUNED, ' stroke-dasharray="3 3"', 1.0
        elif wire.strength is not None and largest > 0.0:
            line_width = 0.6 + 4.4 * wire.strength / largest
        fill, text_fill = (PRUNED, "#8794a0") if wire.is_pruned else (INK, INK)
        parts.append(
            f'<text x="{x_in - 8:.1f}" y="{y_row + 4:.1f}" text-anchor="end" fill="{text_fill}">'
            f'{escape(wire.address)}</text><circle cx="{x_in:.1f}" cy="{y_row:.1f}" r="3" fill="{fill}"/>'
            f'<path d="M{x_in:.1f} {y_row:.1f} C{x_in + 45:.1f} {y_row:.1f} {x_box - 45:.1f} {middle:.1f} {x_box:.1f} '
            f'{middle:.1f}" fill="none" stroke="{colour}" stroke-width="{line_width:.2f}"{dash}/>'
        )
    for out, y_row in zip(wiring.outputs, _row_positions(len(wiring.outputs), y, rows), strict=True):
        parts.append(
            f'<path d="M{x_box + BOX_WIDTH:.1f} {middle:.1f} L{x_out:.1f} {y_row:.1f}" '
            f'stroke="{LINE}" stroke-width="1.5"/>'
            f'<circle cx="{x_out:.1f}" cy="{y_row:.1f}" r="3" fill="{INK}"/>'
            f'<text x="{x_out + 8:.1f}" y="{y_row + 4:.1f}">{escape(out)}</text>'
        )
    size = f"{wiring.weights} weight{'' if wiring.weights == 1 else 's'}"
    mode = wiring.mode + (", per element" if wiring.per == "element" else "")
    title = f"{wiring.kind} {wiring.shape}".strip()
    lines = [title if len(title) <= MAX_TITLE_LENGTH else wiring.kind, size, mode]
    parts.append(
        f'<rect x="{x_box:.1f}" y="{middle - 0.5 * height:.1f}" width="{BOX_WIDTH}" height="{height:.1f}" rx="6" '
        f'fill="{FILL}" stroke="{LINE}"/>'
    )
    for k, text in enumerate(lines):
        weight = ' font-weight="bold"' if k == 0 else ""
        parts.append(
            f'<text x="{x_box + 0.5 * BOX_WIDTH:.1f}" y="{middle + 17 * (k - 1) + 4:.1f}" text-anchor="middle"{weight}>'
            f"{escape(text)}</text>"
        )
    return "".join(parts)


def _row_positions(count: int, y: float, rows: int) -> list[float]:
    """Vertical positions of `count` rows, centred among `rows`."""
    first = y + 0.5 * ROW_HEIGHT * (rows - count) + 0.5 * ROW_HEIGHT
    return [first + ROW_HEIGHT * k for k in range(count)]

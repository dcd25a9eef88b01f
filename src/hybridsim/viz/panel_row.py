"""SVG images of panels in a row."""

from collections.abc import Sequence

INK = "#1f2933"
"""Colour of text."""


def panel_row(panels: Sequence[tuple[int, int, str]]) -> str:
    """SVG image of panels in a row.

    Args:
        panels: width, height and SVG content of each panel.
    """
    width = sum(w for w, _, _ in panels)
    height = max((h for _, h, _ in panels), default=0)
    parts, x = [], 0
    for w, _, body in panels:
        parts.append(f'<g transform="translate({x} 0)">{body}</g>')
        x += w
    style = f'font-family="DejaVu Sans, Helvetica, sans-serif" font-size="12" fill="{INK}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'{style}><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )

"""Panels of a picture in SVG, one beside the other."""

from collections.abc import Sequence

INK = "#1f2933"
"""Colour of text."""


def side_by_side(panels: Sequence[tuple[int, int, str]]) -> str:
    """An SVG of panels, each with its width, height and content."""
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

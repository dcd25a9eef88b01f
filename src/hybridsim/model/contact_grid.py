"""Contact points on a regular grid under a flat object, for friction spread over its bottom.

table.add_geom("object", "points", (0.0,), at=(0, 0, -half_height), data=contact_grid(outline, spacing=0.02))
"""

from collections.abc import Sequence

import numpy as np

from hybridsim.model.geometry import Shape

MOST_POINTS = 10_000
"""More contact points than this are a mistake in the units."""
ON_BORDER = 1e-9
"""How far beyond a border [m] a point still counts: grids often end right on it."""


def contact_grid(
    outline: Sequence | np.ndarray, spacing: float = 0.02, *, shape: Shape | str = Shape.POLYGON
) -> np.ndarray:
    """Points (n, 3) in the plane z = 0 on a square grid within an outline, to be the `data` of contact points.

    The grid is centred: on the middle of a rectangle or an ellipse, or of the rectangle around a polygon. An outline
    that no point of the grid falls into gets one point, its centroid.

    Args:
        outline: corners (n, 2) of a polygon [m]; or half extents (2) of a rectangle, or half axes (2) of an ellipse.
        spacing: of the grid [m].
        shape: what the outline is: `polygon`, `box` or `ellipse`.

    Raises:
        ValueError: what is given is no such outline, or too much for the spacing.
    """
    kind, numbers = Shape(shape), np.asarray(outline, dtype=float)
    if kind not in (Shape.POLYGON, Shape.BOX, Shape.ELLIPSE):
        raise ValueError(f"a grid fills a polygon, box or ellipse, not a {kind}")
    if not (np.isfinite(spacing) and spacing > 0.0):
        raise ValueError(f"the spacing of a grid is a positive length, not {spacing}")
    if not np.isfinite(numbers).all():
        raise ValueError("the outline has numbers that are not finite")
    if kind is Shape.POLYGON:
        if numbers.shape == (2,):
            raise ValueError('are these the half lengths of a rectangle or an ellipse? Say shape="box" or "ellipse"')
        if numbers.ndim != 2 or numbers.shape[1] != 2 or len(numbers) < 3:
            raise ValueError(f"a polygon has three corners (x, y) at least, not an array of shape {numbers.shape}")
        low, high = numbers.min(axis=0), numbers.max(axis=0)
    else:
        if numbers.shape != (2,) or (numbers < 0.0).any():
            raise ValueError(f"a {kind} has two half lengths, not {numbers.tolist()}")
        low, high = -numbers, numbers
    grid = _grid(low, high, spacing)
    if kind is Shape.POLYGON:
        inside = _is_within(numbers, grid)
    elif kind is Shape.ELLIPSE:
        inside = np.sum((grid / np.maximum(numbers, ON_BORDER)) ** 2, axis=1) <= 1.0 + ON_BORDER
    else:
        inside = np.ones(len(grid), dtype=bool)
    points = grid[inside]
    if len(points) == 0:
        points = _centroid(numbers)[None] if kind is Shape.POLYGON else np.zeros((1, 2))
    return np.pad(points, ((0, 0), (0, 1)))


def _grid(low: np.ndarray, high: np.ndarray, spacing: float) -> np.ndarray:
    """Points of a square grid within a rectangle, as many on one side of its middle as on the other."""
    counts = np.floor((high - low + 2.0 * ON_BORDER) / spacing) + 1
    if counts.prod() > MOST_POINTS:
        raise ValueError(f"{counts.prod():.0f} points at a spacing of {spacing} m: are the lengths in metres?")
    x, y = (
        0.5 * (a + b) + spacing * (np.arange(int(n)) - 0.5 * (n - 1)) for a, b, n in zip(low, high, counts, strict=True)
    )
    return np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)


def _is_within(outline: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Which points lie within an outline or on it; the outline may be indented."""
    start, end = outline, np.roll(outline, -1, axis=0)
    along = end - start
    from_start = points[:, None] - start[None]
    squared = np.sum(along * along, axis=1)
    t = np.clip(np.sum(from_start * along, axis=-1) / np.where(squared > 0.0, squared, 1.0), 0.0, 1.0)
    on_border = np.linalg.norm(from_start - t[..., None] * along, axis=-1).min(axis=1) <= ON_BORDER
    # a ray from a point inside crosses the outline an odd number of times
    spans = (start[:, 1] > points[:, None, 1]) != (end[:, 1] > points[:, None, 1])
    at = start[:, 0] + from_start[..., 1] * along[:, 0] / np.where(spans, along[:, 1], 1.0)
    crossings = np.sum(spans & (points[:, None, 0] < at), axis=1)
    return on_border | (crossings % 2 == 1)


def _centroid(outline: np.ndarray) -> np.ndarray:
    """Centre of a polygon's area; the mean of its corners if it has none."""
    origin = outline.mean(axis=0)
    a = outline - origin
    b = np.roll(a, -1, axis=0)
    doubled = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    total = doubled.sum()
    if abs(total) <= ON_BORDER**2:
        return origin
    return origin + np.sum((a + b) * doubled[:, None], axis=0) / (3.0 * total)

"""Contact points on a regular grid under a flat object, to model friction distributed over its bottom face.

builder.add_geom("object", "points", (0.0,), at=(0, 0, -half_height), data=contact_grid(outline, spacing=0.02))
"""

from collections.abc import Sequence

import numpy as np

from hybridsim.model.geometry import Shape

MAX_POINTS = 10_000
"""Upper bound on the number of contact points; more points suggest lengths in the wrong unit."""
BOUNDARY_TOLERANCE = 1e-9
"""Distance outside the outline [m] within which a point still counts as inside, since grids often end exactly on it."""


def contact_grid(
    outline: Sequence | np.ndarray, spacing: float = 0.02, *, shape: Shape | str = Shape.POLYGON
) -> np.ndarray:
    """Points (n, 3) of a square grid in the plane z = 0 inside an outline, for use as `data` of a `points` shape.

    The grid is centred on the rectangle or ellipse, or on the bounding rectangle of the polygon. An outline that
    contains no grid point gets a single point, its centroid.

    Args:
        outline: vertices (n, 2) of a polygon [m], half extents (2) of a rectangle, or semi-axes (2) of an ellipse.
        spacing: grid spacing [m].
        shape: type of the outline: `polygon`, `box` or `ellipse`.

    Raises:
        ValueError: the outline is invalid, or the grid would have too many points.
    """
    kind, values = Shape(shape), np.asarray(outline, dtype=float)
    if kind not in (Shape.POLYGON, Shape.BOX, Shape.ELLIPSE):
        raise ValueError(f"the outline of a contact grid must be a polygon, box or ellipse, not {kind!s}")
    if not (np.isfinite(spacing) and spacing > 0.0):
        raise ValueError(f"the grid spacing must be a positive length, not {spacing}")
    if not np.isfinite(values).all():
        raise ValueError("the outline contains values that are not finite")
    if kind is Shape.POLYGON:
        if values.shape == (2,):
            raise ValueError(
                "a polygon needs at least three vertices (x, y), not two values; for the half extents of a rectangle "
                'or the semi-axes of an ellipse pass shape="box" or shape="ellipse"'
            )
        if values.ndim != 2 or values.shape[1] != 2 or len(values) < 3:
            raise ValueError(f"a polygon needs at least three vertices (x, y), not an array of shape {values.shape}")
        low, high = values.min(axis=0), values.max(axis=0)
    else:
        if values.shape != (2,) or (values < 0.0).any():
            lengths = "semi-axes" if kind is Shape.ELLIPSE else "half extents"
            raise ValueError(f"an outline of type {str(kind)!r} needs two nonnegative {lengths}, not {values.tolist()}")
        low, high = -values, values
    grid = _grid(low, high, spacing)
    if kind is Shape.POLYGON:
        inside = _is_inside(values, grid)
    elif kind is Shape.ELLIPSE:
        inside = np.sum((grid / np.maximum(values, BOUNDARY_TOLERANCE)) ** 2, axis=1) <= 1.0 + BOUNDARY_TOLERANCE
    else:
        inside = np.ones(len(grid), dtype=bool)
    points = grid[inside]
    if len(points) == 0:
        points = _centroid(values)[None] if kind is Shape.POLYGON else np.zeros((1, 2))
    return np.pad(points, ((0, 0), (0, 1)))


def _grid(low: np.ndarray, high: np.ndarray, spacing: float) -> np.ndarray:
    """Points of a square grid inside a rectangle, symmetric about its centre."""
    counts = np.floor((high - low + 2.0 * BOUNDARY_TOLERANCE) / spacing) + 1
    if counts.prod() > MAX_POINTS:
        raise ValueError(
            f"the grid would have {counts.prod():.0f} points at a spacing of {spacing} m (at most {MAX_POINTS}); "
            "check that the lengths are in metres"
        )
    x, y = (
        0.5 * (a + b) + spacing * (np.arange(int(n)) - 0.5 * (n - 1)) for a, b, n in zip(low, high, counts, strict=True)
    )
    return np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)


def _is_inside(outline: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Whether each point lies inside a polygon or on its boundary; the polygon may be non-convex."""
    start, end = outline, np.roll(outline, -1, axis=0)
    edge = end - start
    from_start = points[:, None] - start[None]
    edge_squared = np.sum(edge * edge, axis=1)
    t = np.clip(np.sum(from_start * edge, axis=-1) / np.where(edge_squared > 0.0, edge_squared, 1.0), 0.0, 1.0)
    on_boundary = np.linalg.norm(from_start - t[..., None] * edge, axis=-1).min(axis=1) <= BOUNDARY_TOLERANCE
    # a ray from an interior point crosses the outline an odd number of times
    spans = (start[:, 1] > points[:, None, 1]) != (end[:, 1] > points[:, None, 1])
    crossing_x = start[:, 0] + from_start[..., 1] * edge[:, 0] / np.where(spans, edge[:, 1], 1.0)
    crossings = np.sum(spans & (points[:, None, 0] < crossing_x), axis=1)
    return on_boundary | (crossings % 2 == 1)


def _centroid(outline: np.ndarray) -> np.ndarray:
    """Centroid of a polygon; the mean of its vertices if its area is zero."""
    origin = outline.mean(axis=0)
    a = outline - origin
    b = np.roll(a, -1, axis=0)
    twice_areas = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    total = twice_areas.sum()
    if abs(total) <= BOUNDARY_TOLERANCE**2:
        return origin
    return origin + np.sum((a + b) * twice_areas[:, None], axis=0) / (3.0 * total)

"""Height-field terrain on a regular grid. The terrain is the second shape.

Heights are interpolated bilinearly. Contact is tested at points of the other shape: the centre of a sphere, the ends of
a capsule, the corners of a box. The gap is measured along the terrain's normal beneath the point, which is exact on
slopes and approximate at ridges; beyond its border the terrain is extrapolated as constant.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.collision.contact_points import ContactPoints, PlacedShape, contacts_from_first
from hybridsim.core.numerics import MIN_HALF_EXTENT, clamp
from hybridsim.core.types import AnyArray, Scalar


def sphere_terrain(sphere: PlacedShape, terrain: PlacedShape) -> ContactPoints:
    """Contact at one point."""
    return _spheres_terrain(terrain, sphere.X_WG.p[None], sphere.size[0])


def capsule_terrain(capsule: PlacedShape, terrain: PlacedShape) -> ContactPoints:
    """Contact at one point per end."""
    half_axis = capsule.size[1] * capsule.X_WG.R[:, 2]
    return _spheres_terrain(
        terrain, jnp.stack([capsule.X_WG.p + half_axis, capsule.X_WG.p - half_axis]), capsule.size[0]
    )


def box_terrain(box: PlacedShape, terrain: PlacedShape) -> ContactPoints:
    """Contact at eight points, the corners: on terrain any of them may be in contact."""
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, 8).T
    return _spheres_terrain(terrain, box.to_world(signs * box.size[None]), 0.0)


def points_terrain(points: PlacedShape, terrain: PlacedShape) -> ContactPoints:
    """Contact at all points."""
    return _spheres_terrain(terrain, points.to_world(points.data), points.size[0])


def hull_terrain(hull: PlacedShape, terrain: PlacedShape) -> ContactPoints:
    """Contact at all vertices."""
    return _spheres_terrain(terrain, hull.to_world(hull.data), 0.0)


def _spheres_terrain(terrain: PlacedShape, points: Float[AnyArray, "k 3"], radius: Scalar | float) -> ContactPoints:
    def contact(p):
        height, slope_x, slope_y = terrain_height(terrain, p[0], p[1])
        normal = jnp.stack([-slope_x, -slope_y, jnp.ones_like(slope_x)])
        normal = normal / jnp.sqrt(normal @ normal)
        return (p[2] - height) * normal[2] - radius, normal

    gap, normal = jax.vmap(contact)(terrain.to_shape(points))
    normal = normal @ terrain.X_WG.R.T
    return contacts_from_first(gap, normal, points - radius * normal)


def terrain_height(terrain: PlacedShape, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Height [m] and slopes along x and y of a terrain at a point of its base plane."""
    heights = jnp.asarray(terrain.data)
    rows, columns = heights.shape
    if rows < 2 or columns < 2:
        raise ValueError(f"a terrain needs at least two rows and two columns of heights, not {rows} and {columns}")
    # in grid cells, from the corner
    size = jnp.maximum(terrain.size, MIN_HALF_EXTENT)
    cells_per_x, cells_per_y = 0.5 * (rows - 1) / size[0], 0.5 * (columns - 1) / size[1]
    i, j = (x + size[0]) * cells_per_x, (y + size[1]) * cells_per_y
    row, column = jnp.floor(clamp(i, 0.0, rows - 2.0)), jnp.floor(clamp(j, 0.0, columns - 2.0))
    s, t = clamp(i - row, 0.0, 1.0), clamp(j - column, 0.0, 1.0)
    corner = jax.lax.dynamic_slice(heights, (row.astype(int), column.astype(int)), (2, 2))
    near, far = corner[:, 0] + t * (corner[:, 1] - corner[:, 0])
    left, right = corner[0] + s * (corner[1] - corner[0])
    is_beyond_x, is_beyond_y = (i < 0.0) | (i > rows - 1.0), (j < 0.0) | (j > columns - 1.0)
    slope_x = jnp.where(is_beyond_x, 0.0, (far - near) * cells_per_x)
    slope_y = jnp.where(is_beyond_y, 0.0, (right - left) * cells_per_y)
    return near + s * (far - near), slope_x, slope_y

"""Shapes against a half space. The plane is the second shape; contact normals are its normal."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.collision.contact_points import FAR, ContactPoints, PlacedShape, contacts_from_first, pick
from hybridsim.contact.collision.reduce_manifold import reduce_manifold
from hybridsim.core.numerics import direction_and_length
from hybridsim.core.types import AnyArray, Scalar


def _spheres_plane(plane: PlacedShape, points: Float[AnyArray, "k 3"], radius: Scalar | float = 0.0) -> ContactPoints:
    """Balls against a plane."""
    normal = plane.X_WG.R[:, 2]
    gap = (points - plane.X_WG.p[None]) @ normal - radius
    return contacts_from_first(gap, jnp.broadcast_to(normal, points.shape), points - radius * normal[None])


def sphere_plane(sphere: PlacedShape, plane: PlacedShape) -> ContactPoints:
    """Contact at one point."""
    return _spheres_plane(plane, sphere.X_WG.p[None], sphere.size[0])


def capsule_plane(capsule: PlacedShape, plane: PlacedShape) -> ContactPoints:
    """Contact at one point per end."""
    half_axis = capsule.size[1] * capsule.X_WG.R[:, 2]
    return _spheres_plane(plane, jnp.stack([capsule.X_WG.p + half_axis, capsule.X_WG.p - half_axis]), capsule.size[0])


DIAGONALS = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0], [1.0, -1.0, 1.0], [1.0, -1.0, -1.0]])
"""Vectors from the centre of a box to four corners, one of each opposite pair, in half extents."""


def box_plane(box: PlacedShape, plane: PlacedShape) -> ContactPoints:
    """Contact at four points: the lower end of each diagonal; these are the four lowest corners.

    A corner keeps its index as long as it is below the centre. If indices were assigned per face, the warm start of a
    contact would go to another corner when the box tips over an edge.
    """
    ends = DIAGONALS @ (box.size[:, None] * box.X_WG.R.T)
    ends = jnp.where((ends @ plane.X_WG.R[:, 2] > 0.0)[:, None], -ends, ends)
    return _spheres_plane(plane, box.X_WG.p[None] + ends)


UPRIGHT_TILT = 1e-4
"""Tilt [rad] of a cylinder below which its first rim point is blended with a fixed one: the lowest point runs around
the rim when an upright cylinder tilts slightly, and its derivative would be unbounded there."""


RIM_POINTS = np.array([[1.0, 0.0], [-0.5, np.sqrt(0.75)], [-0.5, -np.sqrt(0.75)]])
"""Three points of the unit circle, 120° apart."""


def cylinder_plane(cylinder: PlacedShape, plane: PlacedShape) -> ContactPoints:
    """Contact at four points: three on the lower rim, the lowest one first, and the lowest one of the other rim."""
    R, up = cylinder.X_WG.R, plane.X_WG.R[:, 2]
    radius, half = cylinder.size[0], cylinder.size[1]
    axis = jnp.where(R[:, 2] @ up > 0.0, -R[:, 2], R[:, 2])  # downwards
    radial = -(R[:, :2].T @ up)
    # when upright, blend with a direction fixed in the cylinder
    weight = jnp.maximum(1.0 - jnp.sum(radial * radial) / UPRIGHT_TILT**2, 0.0)
    radial = radial + UPRIGHT_TILT * weight**2 * np.array([1.0, 0.0])
    radial = radial / jnp.sqrt(jnp.sum(radial * radial) + UPRIGHT_TILT**4)
    lowest = R[:, :2] @ radial
    sideways = R[:, :2] @ jnp.stack([-radial[1], radial[0]])
    lower, upper = cylinder.X_WG.p + half * axis, cylinder.X_WG.p - half * axis
    rim = radius * (RIM_POINTS @ jnp.stack([lowest, sideways]))
    return _spheres_plane(plane, jnp.concatenate([lower[None] + rim, (upper + rim[0])[None]]))


def ellipsoid_plane(ellipsoid: PlacedShape, plane: PlacedShape) -> ContactPoints:
    """Contact at one point."""
    up = plane.X_WG.R[:, 2]
    scaled = ellipsoid.size * (ellipsoid.X_WG.R.T @ up)
    direction, _ = direction_and_length(scaled, jnp.zeros(3))
    lowest = ellipsoid.X_WG.point(-ellipsoid.size * direction)
    return _spheres_plane(plane, lowest[None])


def points_plane(points: PlacedShape, plane: PlacedShape) -> ContactPoints:
    """Contact at all points."""
    return _spheres_plane(plane, points.to_world(points.data), points.size[0])


def hull_plane(hull: PlacedShape, plane: PlacedShape) -> ContactPoints:
    """Contact at four points: deep vertices, spread apart."""
    vertices = hull.to_world(hull.data)
    from_plane = plane.to_shape(vertices)
    chosen, is_valid = reduce_manifold(from_plane[:, :2], from_plane[:, 2], np.ones(len(vertices), dtype=bool))
    points = _spheres_plane(plane, jnp.stack([pick(vertices, chosen[k]) for k in range(4)]))
    return eqx.tree_at(lambda p: p.gap, points, jnp.where(is_valid, points.gap, FAR))

"""Shapes against a half space. The plane is the second shape; normals are its own."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.collision.contact_points import FAR, ContactPoints, PlacedShape, from_first, pick
from hybridsim.contact.collision.reduce_manifold import reduce_manifold
from hybridsim.core.numerics import unit
from hybridsim.core.types import AnyArray, Scalar


def _above(plane: PlacedShape, points: Float[AnyArray, "k 3"], radius: Scalar | float = 0.0) -> ContactPoints:
    """Balls above a plane."""
    normal = plane.X_WG.R[:, 2]
    gap = (points - plane.X_WG.p[None]) @ normal - radius
    return from_first(gap, jnp.broadcast_to(normal, points.shape), points - radius * normal[None])


def sphere_plane(sphere: PlacedShape, plane: PlacedShape) -> ContactPoints:
    """One point."""
    return _above(plane, sphere.X_WG.p[None], sphere.size[0])


def capsule_plane(capsule: PlacedShape, plane: PlacedShape) -> ContactPoints:
    """One point for each end."""
    reach = capsule.size[1] * capsule.X_WG.R[:, 2]
    return _above(plane, jnp.stack([capsule.X_WG.p + reach, capsule.X_WG.p - reach]), capsule.size[0])


DIAGONALS = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0], [1.0, -1.0, 1.0], [1.0, -1.0, -1.0]])
"""From the centre of a box to four corners, one of each pair of opposite ones, by half edges."""


def box_plane(box: PlacedShape, plane: PlacedShape) -> ContactPoints:
    """Four points: the lower end of each diagonal, which are the four lowest corners.

    A corner keeps its number for as long as it is below the centre. Numbered by faces, corners would change theirs when
    the box tips over an edge, and what a contact remembers of its last step would go to another corner.
    """
    ends = DIAGONALS @ (box.size[:, None] * box.X_WG.R.T)
    ends = jnp.where((ends @ plane.X_WG.R[:, 2] > 0.0)[:, None], -ends, ends)
    return _above(plane, box.X_WG.p[None] + ends)


UPRIGHT_TILT = 1e-4
"""Tilt [rad] of a cylinder below which its first rim point is not quite the lowest one: that one runs round the rim
when an upright cylinder tilts ever so little, and its derivative would be beyond all bounds just there."""


THIRDS = np.array([[1.0, 0.0], [-0.5, np.sqrt(0.75)], [-0.5, -np.sqrt(0.75)]])
"""Three points of a circle, far apart."""


def cylinder_plane(cylinder: PlacedShape, plane: PlacedShape) -> ContactPoints:
    """Four points: three on the rim of the lower end, the lowest one first, and the lowest one of the other rim."""
    R, up = cylinder.X_WG.R, plane.X_WG.R[:, 2]
    radius, half = cylinder.size[0], cylinder.size[1]
    axis = jnp.where(R[:, 2] @ up > 0.0, -R[:, 2], R[:, 2])  # downwards
    radial = -(R[:, :2].T @ up)
    # upright, a direction that is fixed to the cylinder takes over
    fixed = jnp.maximum(1.0 - jnp.sum(radial * radial) / UPRIGHT_TILT**2, 0.0)
    radial = radial + UPRIGHT_TILT * fixed**2 * np.array([1.0, 0.0])
    radial = radial / jnp.sqrt(jnp.sum(radial * radial) + UPRIGHT_TILT**4)
    lowest = R[:, :2] @ radial
    beside = R[:, :2] @ jnp.stack([-radial[1], radial[0]])
    lower, upper = cylinder.X_WG.p + half * axis, cylinder.X_WG.p - half * axis
    rim = radius * (THIRDS @ jnp.stack([lowest, beside]))
    return _above(plane, jnp.concatenate([lower[None] + rim, (upper + rim[0])[None]]))


def ellipsoid_plane(ellipsoid: PlacedShape, plane: PlacedShape) -> ContactPoints:
    """One point."""
    up = plane.X_WG.R[:, 2]
    scaled = ellipsoid.size * (ellipsoid.X_WG.R.T @ up)
    direction, _ = unit(scaled, jnp.zeros(3))
    lowest = ellipsoid.X_WG.point(-ellipsoid.size * direction)
    return _above(plane, lowest[None])


def points_plane(points: PlacedShape, plane: PlacedShape) -> ContactPoints:
    """All of them."""
    return _above(plane, points.to_world(points.data), points.size[0])


def hull_plane(hull: PlacedShape, plane: PlacedShape) -> ContactPoints:
    """Four points: the lowest ones, far apart."""
    corners = hull.to_world(hull.data)
    from_plane = plane.to_shape(corners)
    chosen, there = reduce_manifold(from_plane[:, :2], from_plane[:, 2], np.ones(len(corners), dtype=bool))
    points = _above(plane, jnp.stack([pick(corners, chosen[k]) for k in range(4)]))
    return eqx.tree_at(lambda p: p.gap, points, jnp.where(there, points.gap, FAR))

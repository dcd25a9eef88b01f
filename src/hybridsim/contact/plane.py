"""Shapes against a half space. The plane is the second shape; normals are its own."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.contact.points import SIGNS_2, Placed, Points, from_first
from hybridsim.contact.spread import spread_indices
from hybridsim.core.types import AnyArray, Scalar, Vec3


def _above(plane: Placed, points: Float[AnyArray, "k 3"], radius: Scalar | float = 0.0) -> Points:
    """Balls above a plane."""
    normal = plane.X_WG.R[:, 2]
    gap = (points - plane.X_WG.p) @ normal - radius
    return from_first(gap, jnp.broadcast_to(normal, points.shape), points - radius * normal)


def sphere_plane(sphere: Placed, plane: Placed) -> Points:
    """One point."""
    return _above(plane, sphere.X_WG.p[None], sphere.size[0])


def capsule_plane(capsule: Placed, plane: Placed) -> Points:
    """One point for each end."""
    reach = capsule.size[1] * capsule.X_WG.R[:, 2]
    return _above(plane, jnp.stack([capsule.X_WG.p + reach, capsule.X_WG.p - reach]), capsule.size[0])


def box_plane(box: Placed, plane: Placed) -> Points:
    """Four points: the corners of the face that reaches lowest."""
    edges = box.size[:, None] * box.X_WG.R.T  # half edges as rows
    down, first, second = lowest_face(edges, plane.X_WG.R[:, 2])
    corners = box.X_WG.p + down + SIGNS_2[:, :1] * first + SIGNS_2[:, 1:] * second
    return _above(plane, corners)


def lowest_face(edges: Float[AnyArray, "3 3"], up: Vec3) -> tuple[Vec3, Vec3, Vec3]:
    """From a box's centre to the middle of the face that reaches lowest, and half of that face's edges."""
    height = edges @ up
    size = jnp.abs(height)
    x_wins = (size[0] >= size[1]) & (size[0] >= size[2])
    y_wins = ~x_wins & (size[1] >= size[2])

    def chosen(shift: int):
        a, b, c = (edges[(k + shift) % 3] for k in range(3))
        return jnp.where(x_wins, a, jnp.where(y_wins, b, c))

    largest = jnp.where(x_wins, height[0], jnp.where(y_wins, height[1], height[2]))
    down = jnp.where(largest > 0.0, -chosen(0), chosen(0))
    return down, chosen(1), chosen(2)


UPRIGHT = 1e-6
"""Tilt [rad] of a cylinder below which its lowest rim point is not the tilt's but one fixed to the cylinder."""


def cylinder_plane(cylinder: Placed, plane: Placed) -> Points:
    """Four points: three on the rim of the lower end, the lowest one first, and the lowest one of the other rim."""
    R, up = cylinder.X_WG.R, plane.X_WG.R[:, 2]
    radius, half = cylinder.size[0], cylinder.size[1]
    axis = jnp.where(R[:, 2] @ up > 0.0, -R[:, 2], R[:, 2])  # downwards
    radial = -(R[:, :2].T @ up) + np.array([UPRIGHT, 0.0])
    radial = radial / jnp.sqrt(jnp.sum(radial * radial) + UPRIGHT**4)
    lowest = R[:, :2] @ radial
    beside = R[:, :2] @ jnp.stack([-radial[1], radial[0]])
    lower, upper = cylinder.X_WG.p + half * axis, cylinder.X_WG.p - half * axis
    third = radius * (-0.5 * lowest + np.sqrt(0.75) * np.array([[1.0], [-1.0]]) * beside)
    points = jnp.concatenate([(lower + radius * lowest)[None], lower + third, (upper + radius * lowest)[None]])
    return _above(plane, points)


def ellipsoid_plane(ellipsoid: Placed, plane: Placed) -> Points:
    """One point."""
    up = plane.X_WG.R[:, 2]
    scaled = ellipsoid.size * (ellipsoid.X_WG.R.T @ up)
    depth = jnp.sqrt(jnp.sum(scaled * scaled))
    lowest = ellipsoid.X_WG.point(-ellipsoid.size * scaled / depth)
    return _above(plane, lowest[None])


def points_plane(points: Placed, plane: Placed) -> Points:
    """All of them."""
    return _above(plane, points.X_WG.p + points.data @ points.X_WG.R.T, points.size[0])


def hull_plane(hull: Placed, plane: Placed) -> Points:
    """Four points: the lowest ones, far apart."""
    corners = hull.X_WG.p + hull.data @ hull.X_WG.R.T
    from_plane = (corners - plane.X_WG.p) @ plane.X_WG.R
    return _above(plane, corners[spread_indices(from_plane[:, :2], from_plane[:, 2])])

"""Spheres and capsules against each other."""

import jax.numpy as jnp

from hybridsim.contact.collision.contact_points import ContactPoints, PlacedShape, sphere_contacts
from hybridsim.core.numerics import clamp, cross, direction_and_length
from hybridsim.core.types import Scalar, Vec3


def sphere_sphere(a: PlacedShape, b: PlacedShape) -> ContactPoints:
    """Contact at one point."""
    return sphere_contacts(a.X_WG.p[None], a.size[0], b.X_WG.p[None], b.size[0], b.X_WG.R[:, 2])


def sphere_capsule(sphere: PlacedShape, capsule: PlacedShape) -> ContactPoints:
    """Contact at one point."""
    axis = capsule.X_WG.R[:, 2]
    t = clamp(axis @ (sphere.X_WG.p - capsule.X_WG.p), -capsule.size[1], capsule.size[1])
    near = capsule.X_WG.p + t * axis
    return sphere_contacts(sphere.X_WG.p[None], sphere.size[0], near[None], capsule.size[0], capsule.X_WG.R[:, 0])


def capsule_capsule(a: PlacedShape, b: PlacedShape) -> ContactPoints:
    """Contact at one point; between parallel capsules, in the middle of the section where they overlap."""
    axis_a, axis_b = a.X_WG.R[:, 2], b.X_WG.R[:, 2]
    near_a, near_b = nearest_points_on_segments(a.X_WG.p, axis_a, a.size[1], b.X_WG.p, axis_b, b.size[1])
    # for intersecting axes the normal is perpendicular to both
    fallback, _ = direction_and_length(cross(axis_a, axis_b), b.X_WG.R[:, 0])
    return sphere_contacts(near_a[None], a.size[0], near_b[None], b.size[0], fallback)


PARALLEL_BLEND = 1e-10
"""Squared sine of the angle at which the solutions for parallel and crossing segments have equal weight: with a sharp
threshold, or none, the nearest points of parallel segments would jump along them under a minute rotation."""


def nearest_points_on_segments(p: Vec3, u: Vec3, half_p: Scalar, q: Vec3, v: Vec3, half_q: Scalar) -> tuple[Vec3, Vec3]:
    """Nearest points of two segments.

    Args:
        p: middle of the first [m].
        u: its direction, a unit vector.
        half_p: half its length [m].
        q: middle of the second [m].
        v: its direction, a unit vector.
        half_q: half its length [m].
    """
    d = p - q
    cosine, along_u, along_v = u @ v, u @ d, v @ d
    sine_squared = 1.0 - cosine * cosine
    # weighted mean of the nearest point of the first line to the second, which is ill-conditioned for nearly parallel
    # segments, and the middle of the section where parallel segments overlap
    projection = jnp.abs(cosine) * half_q
    first, last = jnp.maximum(-half_p, -along_u - projection), jnp.minimum(half_p, -along_u + projection)
    middle = 0.5 * (first + last)
    s = clamp((cosine * along_v - along_u + PARALLEL_BLEND * middle) / (sine_squared + PARALLEL_BLEND), -half_p, half_p)
    t = clamp(along_v + s * cosine, -half_q, half_q)
    s = clamp(t * cosine - along_u, -half_p, half_p)
    return p + s * u, q + t * v

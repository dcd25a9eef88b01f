"""Contact points of two shapes: gaps, normals and nearest points."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Shaped

from hybridsim.core.numerics import direction_and_length
from hybridsim.core.types import AnyArray, Scalar, Vec3
from hybridsim.model.geometry import Faces
from hybridsim.spatial.transform import Pose


class PlacedShape(eqx.Module):
    """A shape in the world."""

    X_WG: Pose
    """Pose of the shape."""
    size: Float[AnyArray, "*stack 3"]
    """Size [m] as defined by `Shape`; a stack of shapes has leading axes."""
    data: AnyArray | None = None
    """Points or heights [m] as in `Geometry.data`."""
    faces: Faces = eqx.field(static=True, default=())
    """Triangles of a convex hull."""

    def to_world(self, points: Float[AnyArray, "n 3"]) -> Float[AnyArray, "n 3"]:
        """World coordinates [m] of points given in the shape's frame."""
        return self.X_WG.p[None] + points @ self.X_WG.R.T

    def to_shape(self, points: Float[AnyArray, "n 3"]) -> Float[AnyArray, "n 3"]:
        """Coordinates [m] in the shape's frame of points given in the world."""
        return (points - self.X_WG.p[None]) @ self.X_WG.R


class ContactPoints(eqx.Module):
    """Contact points of a first and a second shape, one per row.

    `on_first - on_second` is `gap · normal`, except in rows without a contact: their gap is `FAR`, and their points lie
    near the shapes, to keep lever arms short.
    """

    gap: Float[AnyArray, " k"]
    """Signed distance, negative in penetration [m]."""
    normal: Float[AnyArray, "k 3"]
    """Unit vector from the second shape towards the first, in world axes."""
    on_first: Float[AnyArray, "k 3"]
    """Nearest point of the first shape, in the world [m]."""
    on_second: Float[AnyArray, "k 3"]
    """Nearest point of the second shape, in the world [m]."""

    def swap(self) -> "ContactPoints":
        """Exchange the roles of the two shapes."""
        return ContactPoints(self.gap, -self.normal, self.on_second, self.on_first)


FAR = 1e3
"""Gap of an absent contact [m]: the list of candidate pairs has a fixed length, and manifolds can have fewer points."""


def contacts_from_first(
    gap: Float[AnyArray, " k"], normal: Float[AnyArray, "k 3"], on_first: Float[AnyArray, "k 3"]
) -> ContactPoints:
    """Contact points from gaps, normals and the points on the first shape."""
    return ContactPoints(gap, normal, on_first, on_first - gap[:, None] * normal)


def contacts_from_second(
    gap: Float[AnyArray, " k"], normal: Float[AnyArray, "k 3"], on_second: Float[AnyArray, "k 3"]
) -> ContactPoints:
    """Contact points from gaps, normals and the points on the second shape."""
    return ContactPoints(gap, normal, on_second + gap[:, None] * normal, on_second)


def sphere_contacts(
    centre: Float[AnyArray, "k 3"], radius: Scalar, other: Float[AnyArray, "k 3"], other_radius: Scalar, fallback: Vec3
) -> ContactPoints:
    """Contacts between balls (solid spheres); `fallback` is the normal of concentric ones."""
    normal, distance = jax.vmap(lambda offset: direction_and_length(offset, fallback))(centre - other)
    gap = distance - radius - other_radius
    return contacts_from_first(gap, normal, centre - radius * normal)


def pick(rows: Shaped[AnyArray, " n *rest"], index: Int[AnyArray, ""]) -> Shaped[AnyArray, "*rest"]:
    """Row at an index that is in bounds, such as one from an argmax."""
    return jnp.asarray(rows).at[index].get(mode="promise_in_bounds")


def cycle_axes(rows: Float[AnyArray, " 3 *rest"], axis: Int[AnyArray, ""]) -> Float[AnyArray, " 3 *rest"]:
    """Components along x, y and z, cycled so that a given axis comes first: for y the order is y, z, x."""
    return jnp.where(axis == 0, rows, jnp.where(axis == 1, jnp.roll(rows, -1, axis=0), jnp.roll(rows, -2, axis=0)))


def tangents(normal: Vec3) -> tuple[Vec3, Vec3]:
    """Two unit vectors that form a right-handed frame with a normal; x and y for a normal along z.

    Formula of Duff et al. (2017): no division by small values, and discontinuous only at z = 0.
    """
    x, y, z = normal
    sign = jnp.where(z < 0.0, -1.0, 1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    first = jnp.stack([1.0 + sign * x * x * a, sign * b, -sign * x])
    return first, jnp.stack([b, sign + y * y * a, -y])


SQUARE_CORNERS = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
"""Corners of a square."""

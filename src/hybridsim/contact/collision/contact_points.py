"""Where two shapes touch, or would: gaps, normals and nearest points."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Shaped

from hybridsim.core.numerics import unit
from hybridsim.core.types import AnyArray, Scalar, Vec3
from hybridsim.model.geometry import Faces
from hybridsim.spatial.transform import Pose


class PlacedShape(eqx.Module):
    """A shape in the world."""

    X_WG: Pose
    """Pose of the shape."""
    size: Float[AnyArray, "*stack 3"]
    """Size [m] as `Shape` defines it; a stack of shapes carries leading axes."""
    data: AnyArray | None = None
    """Points or heights [m] as `Geometry.data` has them."""
    faces: Faces = eqx.field(static=True, default=())
    """Triangles of a convex hull."""

    def to_world(self, points: Float[AnyArray, "n 3"]) -> Float[AnyArray, "n 3"]:
        """Points of the shape's frame in the world [m]."""
        return self.X_WG.p[None] + points @ self.X_WG.R.T

    def to_shape(self, points: Float[AnyArray, "n 3"]) -> Float[AnyArray, "n 3"]:
        """Points of the world in the shape's frame [m]."""
        return (points - self.X_WG.p[None]) @ self.X_WG.R


class ContactPoints(eqx.Module):
    """Possible contacts between a first shape and a second one, one per row.

    `on_first - on_second` is `gap · normal`, except in rows that stand for no contact: their gap is `FAR`, and their
    points lie somewhere near the shapes, so that no lever arm gets long.
    """

    gap: Float[AnyArray, " k"]
    """Distance, negative for a penetration [m]."""
    normal: Float[AnyArray, "k 3"]
    """Unit vector from the second shape towards the first, in world axes."""
    on_first: Float[AnyArray, "k 3"]
    """The first shape's nearest point, in the world [m]."""
    on_second: Float[AnyArray, "k 3"]
    """The second shape's nearest point, in the world [m]."""

    def swap(self) -> "ContactPoints":
        """The same contacts with the shapes' roles exchanged."""
        return ContactPoints(self.gap, -self.normal, self.on_second, self.on_first)


FAR = 1e3
"""Gap of a contact that does not exist [m]: candidates are a fixed list, and not all of its points are there always."""


def from_first(
    gap: Float[AnyArray, " k"], normal: Float[AnyArray, "k 3"], on_first: Float[AnyArray, "k 3"]
) -> ContactPoints:
    """Contacts of which the first shape's points are known."""
    return ContactPoints(gap, normal, on_first, on_first - gap[:, None] * normal)


def from_second(
    gap: Float[AnyArray, " k"], normal: Float[AnyArray, "k 3"], on_second: Float[AnyArray, "k 3"]
) -> ContactPoints:
    """Contacts of which the second shape's points are known."""
    return ContactPoints(gap, normal, on_second + gap[:, None] * normal, on_second)


def ball_contacts(
    center: Float[AnyArray, "k 3"], radius: Scalar, other: Float[AnyArray, "k 3"], other_radius: Scalar, aside: Vec3
) -> ContactPoints:
    """Contacts between balls; those with one and the same centre are pushed along `aside`."""
    normal, distance = jax.vmap(lambda away: unit(away, aside))(center - other)
    gap = distance - radius - other_radius
    return from_first(gap, normal, center - radius * normal)


def pick(rows: Shaped[AnyArray, " n *rest"], index: Int[AnyArray, ""]) -> Shaped[AnyArray, "*rest"]:
    """One row, by a number that comes from an argmax and is therefore never out of bounds."""
    return jnp.asarray(rows).at[index].get(mode="promise_in_bounds")


def cycle_axes(rows: Float[AnyArray, " 3 *rest"], axis: Int[AnyArray, ""]) -> Float[AnyArray, " 3 *rest"]:
    """What belongs to x, y and z, turned round so that a given axis comes first: of y the order is y, z, x."""
    return jnp.where(axis == 0, rows, jnp.where(axis == 1, jnp.roll(rows, -1, axis=0), jnp.roll(rows, -2, axis=0)))


def tangents(normal: Vec3) -> tuple[Vec3, Vec3]:
    """Two unit vectors that make a right-handed frame with a normal; x and y for a normal along z.

    The formula of Duff et al. (2017): no division by small numbers, and a jump at z = 0 only.
    """
    x, y, z = normal
    sign = jnp.where(z < 0.0, -1.0, 1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    first = jnp.stack([1.0 + sign * x * x * a, sign * b, -sign * x])
    return first, jnp.stack([b, sign + y * y * a, -y])


SQUARE_CORNERS = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
"""Corners of a square."""

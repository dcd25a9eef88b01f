"""Collision shapes attached to bodies: data only."""

from dataclasses import dataclass
from enum import StrEnum

import equinox as eqx
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray
from hybridsim.spatial.transform import Pose


class Shape(StrEnum):
    """Kinds of collision shapes and the meaning of their `size` [m]."""

    SPHERE = "sphere"
    """(radius, -, -)"""
    CAPSULE = "capsule"
    """(radius, half length of the cylinder part, -), along z."""
    CYLINDER = "cylinder"
    """(radius, half length, -), along z."""
    BOX = "box"
    """Half extents along x, y, z."""
    ELLIPSOID = "ellipsoid"
    """Half axes along x, y, z."""
    PLANE = "plane"
    """Half space below z = 0; the size is not used."""
    MESH = "mesh"
    """Scale along x, y, z of a triangle mesh read from a file; what collides is its convex hull."""
    POINTS = "points"
    """Contact points with a common radius: (radius, -, -)."""
    HEIGHTFIELD = "heightfield"
    """Half extents along x and y of a terrain given by its heights on a regular grid."""
    POLYGON = "polygon"
    """(-, -, half height along z) of a prism over a polygon in the plane z = 0. Meets upright cylinders only."""
    ELLIPSE = "ellipse"
    """Half axes along x and y of an elliptic cylinder, and its half height along z. Meets upright cylinders only."""


Faces = tuple[tuple[int, int, int], ...]
"""Triangles of a convex hull, counterclockwise from outside, by the numbers of its points."""

DEFAULT_FRICTION = 1.0
DEFAULT_RECOVERY_TIME = 0.02
DEFAULT_SOFTNESS = 0.2
NOT_TOLD = float("inf")
"""Stiffness and damping of a surface that has none of its own: it does not give way, what it touches may."""


@dataclass(frozen=True)
class GeomInfo:
    """What is static about one shape."""

    name: str
    body: int
    """Index of the body, or -1 for the world."""
    shape: Shape
    mesh_file: str = ""
    """Resolved path of the mesh file, for meshes."""
    group: int = 1
    """Collision group bits."""
    mask: int = 1
    """Groups that this shape collides with."""
    link: str = ""
    """Name of the body that the shape was described with; another one than `body` if that one was merged."""
    priority: int = 0
    """Where two shapes touch, the surface of the one with the higher priority counts."""
    data: int = -1
    """Place of the shape's points or heights in `Geometry.data`; -1 if it has none."""
    faces: Faces = ()
    """Triangles of a convex hull."""
    has_friction: bool = True
    """Was its friction told? Where two shapes touch, one that was counts before one that has the default."""


class Geometry(eqx.Module):
    """All collision shapes of a model, and what their surfaces are like.

    Where two shapes touch, the larger friction and restitution, stiffness and damping in series and the means of the
    other numbers count, unless the pair has a friction of its own.
    """

    infos: tuple[GeomInfo, ...] = eqx.field(static=True)
    placement: Pose
    """X_BG of every shape in its body; leading axis: shapes."""
    size: Float[AnyArray, "ng 3"]
    """Size [m] as `Shape` defines it."""
    friction: Float[AnyArray, " ng"]
    """Coulomb friction coefficient."""
    restitution: Float[AnyArray, " ng"]
    """Speed after an impact by the speed before it (impulse contact)."""
    recovery_time: Float[AnyArray, " ng"]
    """Time in which a penetration is undone [s] (impulse contact)."""
    softness: Float[AnyArray, " ng"]
    """By how much a contact gives way, by the bodies' apparent inverse mass (impulse contact)."""
    stiffness: Float[AnyArray, " ng"]
    """Stiffness at a depth of 1 mm [N/m]; infinite where nothing is told (compliant contact)."""
    damping: Float[AnyArray, " ng"]
    """Damping at a depth of 1 mm [N·s/m]; infinite where nothing is told (compliant contact)."""
    data: tuple[AnyArray, ...] = ()
    """Points (n, 3) of points, hulls and polygons, heights (rows along x, columns along y) of terrains [m]."""
    excluded_pairs: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    """Pairs of links (see `GeomInfo.link`) whose shapes never collide."""
    explicit_pairs: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    """Pairs of shapes that collide whatever their groups say."""
    carried_pairs: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    """Pairs of a link that is part of the world and one that hangs on it by a joint, which do not collide."""
    friction_pairs: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    """Pairs of shapes that have a friction of their own."""
    pair_friction: Float[AnyArray, " nfp"] = eqx.field(default_factory=lambda: np.zeros(0))
    """Coulomb friction coefficient of each of these pairs."""


def no_geometry() -> Geometry:
    """Geometry of a model without shapes."""
    nothing = np.zeros(0)
    poses = Pose(np.zeros((0, 3, 3)), np.zeros((0, 3)))
    return Geometry((), poses, np.zeros((0, 3)), nothing, nothing, nothing, nothing, nothing, nothing)

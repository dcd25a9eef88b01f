"""Collision shapes attached to bodies: data only."""

from dataclasses import dataclass
from enum import StrEnum

import equinox as eqx
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray
from hybridsim.spatial.transform import Pose


class Shape(StrEnum):
    """Types of collision shapes and the meaning of their `size` [m]."""

    SPHERE = "sphere"
    """(radius, -, -)"""
    CAPSULE = "capsule"
    """(radius, half length of the cylindrical part, -), along z."""
    CYLINDER = "cylinder"
    """(radius, half length, -), along z."""
    BOX = "box"
    """Half extents along x, y, z."""
    ELLIPSOID = "ellipsoid"
    """Semi-axes along x, y, z."""
    PLANE = "plane"
    """Half-space z < 0; the size is ignored."""
    MESH = "mesh"
    """Scale along x, y, z of a triangle mesh read from a file; its convex hull collides."""
    POINTS = "points"
    """Contact points with a common radius: (radius, -, -)."""
    HEIGHTFIELD = "heightfield"
    """Half extents along x and y of a height field: a terrain defined by heights on a regular grid."""
    POLYGON = "polygon"
    """(-, -, half height) of a prism over a polygon in the plane z = 0. Collides with upright cylinders only."""
    ELLIPSE = "ellipse"
    """Semi-axes along x and y and half height along z of an elliptic cylinder. Collides with upright cylinders only."""


Faces = tuple[tuple[int, int, int], ...]
"""Triangles of a convex hull as vertex indices, counterclockwise seen from outside."""

DEFAULT_FRICTION = 1.0
DEFAULT_RECOVERY_TIME = 0.02
DEFAULT_SOFTNESS = 0.2
UNSPECIFIED = float("inf")
"""Stiffness and damping of a surface without specified values: rigid, so that only the other surface is compliant."""


@dataclass(frozen=True)
class GeomInfo:
    """Static (hashable) properties of one shape."""

    name: str
    body: int
    """Index of the body; -1 for the world."""
    shape: Shape
    mesh_file: str = ""
    """Resolved path of the mesh file; empty for other shapes."""
    group: int = 1
    """Collision group bits."""
    mask: int = 1
    """Bits of the groups that this shape collides with."""
    link: str = ""
    """Name of the link that the shape was defined on; differs from the name of the body if that link was merged."""
    priority: int = 0
    """In a contact, the surface parameters of the shape with the higher priority apply."""
    data_index: int = -1
    """Index of the shape's vertices or heights in `Geometry.data`; -1 if it has none."""
    faces: Faces = ()
    """Triangles of a convex hull."""
    is_friction_specified: bool = True
    """Whether friction was specified. In a contact, a specified friction takes precedence over a default one."""


class Geometry(eqx.Module):
    """Collision shapes of a model and their surface parameters.

    A contact between two shapes uses the larger coefficients of friction and restitution, stiffness and damping in
    series, and the mean of the other parameters. A coefficient of friction specified for the pair takes precedence.
    """

    infos: tuple[GeomInfo, ...] = eqx.field(static=True)
    placement: Pose
    """X_BG: pose of every shape in its body; leading axis: shapes."""
    size: Float[AnyArray, "ng 3"]
    """Size [m] as `Shape` defines it."""
    friction: Float[AnyArray, " ng"]
    """Coulomb friction coefficient."""
    restitution: Float[AnyArray, " ng"]
    """Ratio of the separation speed to the approach speed (impulse contact)."""
    recovery_time: Float[AnyArray, " ng"]
    """Time constant of the correction of penetration [s] (impulse contact)."""
    softness: Float[AnyArray, " ng"]
    """Compliance of a contact relative to the apparent inverse mass (impulse contact)."""
    stiffness: Float[AnyArray, " ng"]
    """Secant stiffness (force per penetration) at 1 mm [N/m]; infinite where unspecified (compliant contact)."""
    damping: Float[AnyArray, " ng"]
    """Damping at 1 mm penetration [N·s/m]; infinite where unspecified (compliant contact)."""
    data: tuple[AnyArray, ...] = ()
    """Vertices (n, 3) of point sets, hulls and polygons, or heights of a height field, rows along x, columns along y
    [m]."""
    excluded_pairs: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    """Pairs of links (see `GeomInfo.link`) whose shapes never collide."""
    explicit_pairs: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    """Pairs of shapes that collide regardless of their groups."""
    parent_child_pairs: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    """Pairs of a link merged into the world and a link connected to it by a joint, which do not collide."""
    friction_pairs: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    """Pairs of shapes with their own friction coefficient."""
    pair_friction: Float[AnyArray, " nfp"] = eqx.field(default_factory=lambda: np.zeros(0))
    """Coulomb friction coefficient of each pair in `friction_pairs`."""


def empty_geometry() -> Geometry:
    """Geometry of a model without collision shapes."""
    empty = np.zeros(0)
    poses = Pose(np.zeros((0, 3, 3)), np.zeros((0, 3)))
    return Geometry((), poses, np.zeros((0, 3)), empty, empty, empty, empty, empty, empty)

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
    """Scale along x, y, z of a triangle mesh read from a file."""


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


class Geometry(eqx.Module):
    """All collision shapes of a model."""

    infos: tuple[GeomInfo, ...] = eqx.field(static=True)
    placement: Pose
    """X_BG of every shape in its body; leading axis: shapes."""
    size: Float[AnyArray, "ng 3"]
    """Size [m] as `Shape` defines it."""
    friction: Float[AnyArray, " ng"]
    """Coulomb friction coefficient."""
    excluded_pairs: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    """Pairs of links (see `GeomInfo.link`) whose shapes never collide."""
    explicit_pairs: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    """Pairs of shapes that collide whatever their groups say."""


def no_geometry() -> Geometry:
    """Geometry of a model without shapes."""
    return Geometry((), Pose(np.zeros((0, 3, 3)), np.zeros((0, 3))), np.zeros((0, 3)), np.zeros(0))

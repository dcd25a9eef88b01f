"""Volumes and mass properties of collision shapes, for links without specified inertia."""

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hybridsim.core.files import read_bounded
from hybridsim.model.geometry import Shape
from hybridsim.model.inertial import Inertial, solid_box, solid_capsule, solid_cylinder, solid_ellipsoid
from hybridsim.model.specs import GeomSpec

if TYPE_CHECKING:
    import trimesh

MESH_TYPES = ("stl", "obj", "ply", "off", "dae", "glb")
MAX_MESH_BYTES = 200_000_000


class MeshError(Exception):
    """A mesh that cannot be read, or a shape without a volume."""


def volume(geom: GeomSpec) -> float:
    """Volume of a primitive shape [m³]; 0 for meshes, which are not read, and for all other shapes."""
    x, y, z = (float(s) for s in geom.size)
    match geom.shape:
        case Shape.BOX:
            return 8.0 * x * y * z
        case Shape.SPHERE:
            return 4.0 / 3.0 * math.pi * x**3
        case Shape.ELLIPSOID:
            return 4.0 / 3.0 * math.pi * x * y * z
        case Shape.CYLINDER:
            return 2.0 * math.pi * x**2 * y
        case Shape.CAPSULE:
            return 2.0 * math.pi * x**2 * y + 4.0 / 3.0 * math.pi * x**3
        case _:
            return 0.0


def solid_inertial(geom: GeomSpec, density: float) -> tuple[Inertial, bool]:
    """Mass properties of a shape of uniform density, in the body frame.

    Args:
        geom: the shape.
        density: density [kg/m³].

    Returns:
        The mass properties, and whether the mesh is closed; for an open mesh they are those of its convex hull.

    Raises:
        MeshError: the mesh cannot be read, or the shape has no volume that could be computed.
    """
    x, y, z = (float(s) for s in geom.size)
    mass, closed = density * volume(geom), True
    match geom.shape:
        case Shape.BOX:
            inertial = solid_box(mass, (x, y, z))
        case Shape.SPHERE:
            inertial = solid_ellipsoid(mass, (x, x, x))
        case Shape.ELLIPSOID:
            inertial = solid_ellipsoid(mass, (x, y, z))
        case Shape.CYLINDER:
            inertial = solid_cylinder(mass, x, y)
        case Shape.CAPSULE:
            inertial = solid_capsule(mass, x, y)
        case Shape.MESH:
            inertial, closed = _solid_mesh(Path(geom.mesh_file), geom.size, density)
        case _:
            raise MeshError(f"no volume can be computed for shapes of type {geom.shape}")
    return inertial.transform(geom.placement), closed


def load_mesh(path: Path, scale: np.ndarray) -> "trimesh.Trimesh":
    """Scaled mesh in the frame of its file.

    Args:
        path: the file.
        scale: factors along x, y and z.

    Raises:
        MeshError: the file does not exist, is too large, is in an unsupported format or is invalid.
    """
    kind = path.suffix.lower().lstrip(".")
    if kind not in MESH_TYPES:
        raise MeshError(f"{path.name!r} is not in a supported mesh format ({', '.join(MESH_TYPES)})")
    try:
        # slow to import
        import trimesh

        content = read_bounded(path, MAX_MESH_BYTES)
        if len(content) > MAX_MESH_BYTES:
            raise MeshError(f"{path.name!r} is larger than {MAX_MESH_BYTES // 10**6} MB")
        # from memory and without a resolver, so that a mesh file cannot open further files
        mesh = trimesh.load_mesh(io.BytesIO(content), file_type=kind, skip_materials=True)
        if isinstance(mesh, trimesh.Scene):
            mesh = mesh.to_mesh()
        mesh.merge_vertices(merge_tex=True, merge_norm=True)
        mesh.apply_scale(scale)
    except MeshError:
        raise
    except Exception as error:  # mesh parsers may raise anything on untrusted files
        raise MeshError(f"{path.name!r} cannot be read as a mesh: {error}") from None
    return mesh


def _solid_mesh(path: Path, scale: np.ndarray, density: float) -> tuple[Inertial, bool]:
    mesh = load_mesh(path, scale)
    try:
        closed = bool(mesh.is_watertight and mesh.is_winding_consistent and abs(mesh.volume) > 0.0)
        if not closed:
            mesh = mesh.convex_hull
        signed_volume, com, inertia = float(mesh.volume), np.array(mesh.center_mass), np.array(mesh.moment_inertia)
    except Exception as error:  # trimesh may raise anything on degenerate meshes
        raise MeshError(f"cannot compute the volume of {path.name!r}: {error}") from None
    sign = -1.0 if signed_volume < 0.0 else 1.0  # inverted winding
    if not signed_volume or not np.isfinite([signed_volume, *com, *inertia.ravel()]).all():
        raise MeshError(f"{path.name!r} has no volume")
    return Inertial(sign * signed_volume * density, com, sign * inertia * density), closed

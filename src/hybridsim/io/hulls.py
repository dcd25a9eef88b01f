"""Convex hulls of meshes, for collision detection.

Mesh files have far more vertices than collision detection needs. A hull is reduced to a few of its vertices greedily:
each step adds the vertex farthest outside the hull of those selected so far.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from hybridsim.core.errors import ModelError, Problem
from hybridsim.io.solids import MeshError, load_mesh
from hybridsim.model.geometry import Faces, Geometry, GeomInfo, Shape
from hybridsim.model.model import Model

FLATNESS_RATIO = 1e-6
"""Thickness of a hull relative to its length below which it is considered flat."""


def with_hulls(model: Model, *, max_points: int = 32) -> Model:
    """Copy of the model with convex hulls of its meshes, read from their files.

    Shapes that already have a hull, and those that cannot collide, such as purely visual ones, are unchanged. A reduced
    hull lies inside that of the mesh. By how much is not reported: where contact must be precise, compare the results
    for several values of `max_points`.

    Args:
        model: the mechanism.
        max_points: maximum number of vertices per hull; the cost of a contact grows with it.

    Raises:
        ModelError: a file cannot be read, or its mesh is flat.
        ValueError: `max_points` is less than four.
    """
    if max_points < 4:
        raise ValueError(f"max_points must be at least 4, not {max_points}")
    geometry = model.geometry
    infos, data = list(geometry.infos), list(geometry.data)
    # meshes that are used several times are read once and share their vertices
    cache: dict[tuple[str, tuple[float, ...]], tuple[int, Faces]] = {}
    problems = []
    for k, info in enumerate(infos):
        if info.shape is not Shape.MESH or info.data_index >= 0 or not _can_collide(geometry, info):
            continue
        scale = np.asarray(geometry.size[k], dtype=float)
        key = info.mesh_file, tuple(scale.tolist())
        try:
            if key not in cache:
                points, faces = mesh_hull(info.mesh_file, scale, max_points)
                cache[key] = len(data), faces
                data.append(points)
        except MeshError as error:
            message = f"shape {info.name!r} has no convex hull: {error}"
            fix = "replace the mesh, or use a box, sphere or capsule"
            problems.append(Problem(message, fix, info.mesh_file, code="mesh.unusable", element=info.name))
            continue
        index, faces = cache[key]
        infos[k] = replace(info, data_index=index, faces=faces)
    if problems:
        raise ModelError(problems)
    return replace(model, geometry=replace(geometry, infos=tuple(infos), data=tuple(data)))


def _can_collide(geometry: Geometry, info: GeomInfo) -> bool:
    return bool(info.group or info.mask) or any(info.name in pair for pair in geometry.explicit_pairs)


def mesh_hull(mesh_file: str, scale: np.ndarray, max_points: int) -> tuple[np.ndarray, Faces]:
    """Vertices (n, 3) of the convex hull of a mesh in the mesh frame [m], and its triangles.

    Vertices of a triangle are in counterclockwise order seen from outside.

    Args:
        mesh_file: path of the mesh.
        scale: factors along x, y and z.
        max_points: maximum number of vertices.

    Raises:
        MeshError: the file cannot be read, or its mesh is flat.
    """
    if not mesh_file:
        raise MeshError("no mesh file is specified")
    path = Path(mesh_file)
    mesh = load_mesh(path, scale)
    points = np.asarray(mesh.vertices, dtype=float)
    if len(points) < 4 or not np.isfinite(points).all():
        raise MeshError(f"{path.name!r} has fewer than four vertices, or non-finite ones")
    try:
        points, faces = _hull(points)
    except Exception:  # Qhull reports degenerate input in several ways
        raise MeshError(f"{path.name!r} is flat") from None
    extent = np.sort(np.linalg.svd(points - points.mean(axis=0), compute_uv=False))
    if extent[0] < FLATNESS_RATIO * extent[-1]:
        raise MeshError(f"{path.name!r} is flat")
    return (points, faces) if len(points) <= max_points else _hull(reduce_hull(points, max_points))


def _hull(points: np.ndarray) -> tuple[np.ndarray, Faces]:
    """Vertices and triangles of the convex hull of points."""
    from trimesh.convex import convex_hull  # slow to import

    hull = convex_hull(points)
    faces = tuple((int(a), int(b), int(c)) for a, b, c in hull.faces)
    return np.array(hull.vertices, dtype=float), faces


def reduce_hull(vertices: np.ndarray, count: int) -> np.ndarray:
    """Subset of the vertices of a hull that spans nearly all of it.

    Args:
        vertices: all vertices (n, 3), not all in one plane.
        count: size of the subset, at least four.
    """
    selected = _tetrahedron(vertices)
    while len(selected) < count:
        points, faces = _hull(vertices[selected])
        a, b, c = (points[np.array(faces)[:, k]] for k in range(3))
        normals = np.cross(b - a, c - a)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        distances = (vertices @ normals.T - np.sum(a * normals, axis=1)).max(axis=1)
        distances[selected] = -np.inf
        selected.append(int(distances.argmax()))
    return vertices[selected]


def _tetrahedron(vertices: np.ndarray) -> list[int]:
    """Four distant vertices: two ends, the farthest from the line through them, and the farthest from their plane."""
    middle = vertices.mean(axis=0)
    first = int(np.linalg.norm(vertices - middle, axis=1).argmax())
    offset = vertices - vertices[first]
    second = int(np.linalg.norm(offset, axis=1).argmax())
    direction = offset[second] / np.linalg.norm(offset[second])
    perpendicular = offset - np.outer(offset @ direction, direction)
    third = int(np.linalg.norm(perpendicular, axis=1).argmax())
    fourth = int(np.abs(offset @ np.cross(direction, perpendicular[third])).argmax())
    return [first, second, third, fourth]

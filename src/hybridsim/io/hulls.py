"""Convex hulls of a model's meshes: what of them collides.

A file's mesh has far more corners than contact needs. The hull is cut down to a few of its corners, by adding again and
again the one that is farthest outside what those chosen so far span.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from hybridsim.core.errors import ModelError, Problem
from hybridsim.io.solids import MeshError, load_mesh
from hybridsim.model.geometry import Faces, Geometry, GeomInfo, Shape
from hybridsim.model.model import Model

FLAT = 1e-6
"""Thickness of a hull, by its length, below which it is flat."""


def with_hulls(model: Model, *, max_points: int = 32) -> Model:
    """The model with the convex hulls of its meshes, read from their files.

    Shapes that have a hull already keep it, and those that no shape can touch, as those that are only seen, need none.

    Args:
        model: the mechanism.
        max_points: how many corners a hull keeps at most. The cost of a contact grows with it.

    Raises:
        ModelError: a file cannot be read, or its mesh is flat.
        ValueError: fewer than four corners are asked for.
    """
    if max_points < 4:
        raise ValueError(f"a hull has four corners at least, not {max_points}")
    geometry = model.geometry
    infos, data = list(geometry.infos), list(geometry.data)
    # meshes that are used more than once are read once, and share their points
    known: dict[tuple[str, tuple[float, ...]], tuple[int, Faces]] = {}
    problems = []
    for k, info in enumerate(infos):
        if info.shape is not Shape.MESH or info.data >= 0 or not _can_touch(geometry, info):
            continue
        scale = np.asarray(geometry.size[k], dtype=float)
        key = info.mesh_file, tuple(scale.tolist())
        try:
            if key not in known:
                points, faces = hull_of(info.mesh_file, scale, max_points)
                known[key] = len(data), faces
                data.append(points)
        except MeshError as error:
            message = f"shape {info.name!r} has no convex hull: {error}"
            fix = "replace the mesh, or take a box, sphere or capsule instead"
            problems.append(Problem(message, fix, info.mesh_file, code="mesh.solid", element=info.name))
            continue
        place, faces = known[key]
        infos[k] = replace(info, data=place, faces=faces)
    if problems:
        raise ModelError(problems)
    return replace(model, geometry=replace(geometry, infos=tuple(infos), data=tuple(data)))


def _can_touch(geometry: Geometry, info: GeomInfo) -> bool:
    return bool(info.group or info.mask) or any(info.name in pair for pair in geometry.explicit_pairs)


def hull_of(mesh_file: str, scale: np.ndarray, max_points: int) -> tuple[np.ndarray, Faces]:
    """Corners (n, 3) of a mesh's hull in its own frame [m], and its triangles, counterclockwise from outside.

    Args:
        mesh_file: path of the mesh.
        scale: factors along x, y and z.
        max_points: how many corners to keep at most.

    Raises:
        MeshError: the file cannot be read, or its mesh is flat.
    """
    if not mesh_file:
        raise MeshError("it has no mesh file")
    path = Path(mesh_file)
    mesh = load_mesh(path, scale)
    points = np.asarray(mesh.vertices, dtype=float)
    if len(points) < 4 or not np.isfinite(points).all():
        raise MeshError(f"{path.name!r} has fewer than four corners, or some that are not finite")
    try:
        points, faces = _hull(points)
    except Exception:  # Qhull has many words for it
        raise MeshError(f"{path.name!r} is flat") from None
    extent = np.sort(np.linalg.svd(points - points.mean(axis=0), compute_uv=False))
    if extent[0] < FLAT * extent[-1]:
        raise MeshError(f"{path.name!r} is flat")
    return (points, faces) if len(points) <= max_points else _hull(reduced(points, max_points))


def _hull(points: np.ndarray) -> tuple[np.ndarray, Faces]:
    """Corners of the hull of some points, and its triangles."""
    from trimesh.convex import convex_hull  # takes a while to import

    hull = convex_hull(points)
    faces = tuple((int(a), int(b), int(c)) for a, b, c in hull.faces)
    return np.array(hull.vertices, dtype=float), faces


def reduced(corners: np.ndarray, count: int) -> np.ndarray:
    """Some corners of a hull that span nearly all of it.

    Args:
        corners: all of them (n, 3), in general position.
        count: how many to keep, four at least.
    """
    chosen = _tetrahedron(corners)
    while len(chosen) < count:
        points, faces = _hull(corners[chosen])
        a, b, c = (points[np.array(faces)[:, k]] for k in range(3))
        normals = np.cross(b - a, c - a)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        beyond = (corners @ normals.T - np.sum(a * normals, axis=1)).max(axis=1)
        beyond[chosen] = -np.inf
        chosen.append(int(beyond.argmax()))
    return corners[chosen]


def _tetrahedron(corners: np.ndarray) -> list[int]:
    """Four corners, far apart: two ends, the farthest from the line through them, and from the plane of these."""
    middle = corners.mean(axis=0)
    first = int(np.linalg.norm(corners - middle, axis=1).argmax())
    away = corners - corners[first]
    second = int(np.linalg.norm(away, axis=1).argmax())
    along = away[second] / np.linalg.norm(away[second])
    aside = away - np.outer(away @ along, along)
    third = int(np.linalg.norm(aside, axis=1).argmax())
    fourth = int(np.abs(away @ np.cross(along, aside[third])).argmax())
    return [first, second, third, fourth]

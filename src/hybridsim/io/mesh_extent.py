"""How large a mesh is at least, from a glance at the beginning of its file."""

import re
from pathlib import Path

import numpy as np

GLANCE = 200_000
"""Bytes that are looked at. Part of a mesh that is too large is reason enough for an alarm."""

_STL_HEADER, _STL_TRIANGLE = 84, 50
_STL_TYPE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_VERTEX = {
    ".stl": re.compile(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)\s"),
    ".obj": re.compile(rb"^v\s+(\S+)\s+(\S+)\s+(\S+)\s", re.MULTILINE),
}


def extent_at_least(path: str | Path, scale: np.ndarray) -> float:
    """Longest side of the box around the first vertices of an STL or OBJ file [m]; 0 if there is nothing to see.

    Args:
        path: the mesh file.
        scale: factors along x, y and z.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in _VERTEX:
        return 0.0
    try:
        with path.open("rb") as stream:
            data = stream.read(GLANCE)
        size = path.stat().st_size
    except OSError:
        return 0.0
    vertices = _binary_stl(data, size) if kind == ".stl" else None
    if vertices is None:
        vertices = _written_out(data, _VERTEX[kind])
    with np.errstate(all="ignore"):
        extent = np.ptp(vertices * scale, axis=0).max() if len(vertices) else 0.0
    return float(extent) if np.isfinite(extent) else 0.0


def _binary_stl(data: bytes, size: int) -> np.ndarray | None:
    """Vertices, or None if the file is not binary; some text files begin like binary ones, so the size decides."""
    if len(data) < _STL_HEADER:
        return None
    triangles = int.from_bytes(data[_STL_HEADER - 4 : _STL_HEADER], "little")
    if size != _STL_HEADER + _STL_TRIANGLE * triangles:
        return None
    seen = (len(data) - _STL_HEADER) // _STL_TRIANGLE
    corners = np.frombuffer(data, _STL_TYPE, count=seen, offset=_STL_HEADER)["corners"]
    return corners.reshape(-1, 3).astype(float)


def _written_out(data: bytes, vertex: re.Pattern[bytes]) -> np.ndarray:
    try:
        return np.array(vertex.findall(data), dtype=float).reshape(-1, 3)
    except ValueError:
        return np.zeros((0, 3))

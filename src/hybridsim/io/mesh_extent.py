"""Lower bound on the extent of a mesh, from the first part of its file."""

import re
from pathlib import Path

import numpy as np

from hybridsim.core.files import read_bounded

MAX_READ_BYTES = 200_000
"""Number of bytes that are read; a part of a mesh suffices to detect that it is too large."""

_STL_HEADER, _STL_TRIANGLE = 84, 50
_STL_TYPE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_VERTEX = {
    ".stl": re.compile(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)\s"),
    ".obj": re.compile(rb"^v\s+(\S+)\s+(\S+)\s+(\S+)\s", re.MULTILINE),
}


def extent_lower_bound(path: str | Path, scale: np.ndarray) -> float:
    """Lower bound on the extent of the mesh in an STL or OBJ file [m]; 0 if no vertex can be read.

    It is the longest side of the bounding box of the first vertices.

    Args:
        path: the mesh file.
        scale: factors along x, y and z.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in _VERTEX:
        return 0.0
    try:
        data = read_bounded(path, MAX_READ_BYTES - 1)
        size = path.stat().st_size
    except OSError:
        return 0.0
    vertices = _binary_stl(data, size) if kind == ".stl" else None
    if vertices is None:
        vertices = _text_vertices(data, _VERTEX[kind])
    with np.errstate(all="ignore"):
        extent = np.ptp(vertices * scale, axis=0).max() if len(vertices) else 0.0
    return float(extent) if np.isfinite(extent) else 0.0


def _binary_stl(data: bytes, size: int) -> np.ndarray | None:
    """Vertices of a binary STL file; None for other files, recognized by the file size since headers are ambiguous."""
    if len(data) < _STL_HEADER:
        return None
    triangles = int.from_bytes(data[_STL_HEADER - 4 : _STL_HEADER], "little")
    if size != _STL_HEADER + _STL_TRIANGLE * triangles:
        return None
    count = (len(data) - _STL_HEADER) // _STL_TRIANGLE
    corners = np.frombuffer(data, _STL_TYPE, count=count, offset=_STL_HEADER)["corners"]
    return corners.reshape(-1, 3).astype(float)


def _text_vertices(data: bytes, vertex: re.Pattern[bytes]) -> np.ndarray:
    try:
        return np.array(vertex.findall(data), dtype=float).reshape(-1, 3)
    except ValueError:
        return np.zeros((0, 3))

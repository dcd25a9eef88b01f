"""Random and degenerate placements of two shapes, and collision routines with derivatives compiled for a batch."""

from dataclasses import dataclass
from functools import cache

import jax
import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from hybridsim.contact.collision.contact_points import FAR, ContactPoints, PlacedShape
from hybridsim.contact.collision.dispatch import ROUTINES
from hybridsim.model.geometry import Faces, Shape
from hybridsim.spatial.transform import Pose

BATCH = 2048
"""Placements per batch, the same in all tests of a pair of shapes, so that its routine is compiled once."""

CUBE = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
BENT_CUBE = CUBE * np.array([0.2, 0.3, 0.4]) + 0.03 * np.random.default_rng(2).normal(size=(8, 3))
"""Perturbed box; no four of its corners are coplanar."""


def hull_faces(corners: np.ndarray) -> Faces:
    """Triangles of a convex hull, counterclockwise from outside."""
    hull = ConvexHull(corners)
    assert len(hull.vertices) == len(corners)
    centre = corners.mean(axis=0)

    def is_inward(a, b, c):
        return np.cross(corners[b] - corners[a], corners[c] - corners[a]) @ (corners[a] - centre) < 0.0

    return tuple(
        (int(a), int(c), int(b)) if is_inward(a, b, c) else (int(a), int(b), int(c)) for a, b, c in hull.simplices
    )


CUBE_FACES = hull_faces(BENT_CUBE)
ARROW = np.array([[0.3, 0.0], [0.1, 0.25], [0.05, 0.1], [-0.25, 0.2], [-0.1, 0.0], [-0.3, -0.2], [0.2, -0.15]])
"""Concave polygon, counterclockwise."""
HEIGHTS = 0.1 * np.random.default_rng(5).normal(size=(5, 6))

DATA = {
    Shape.POINTS: np.random.default_rng(3).normal(size=(5, 3)) * 0.2,
    Shape.MESH: BENT_CUBE,
    Shape.HEIGHTFIELD: HEIGHTS,
    Shape.POLYGON: np.pad(ARROW, ((0, 0), (0, 1))),
}

AXIS_ALIGNED = {Shape.MESH: CUBE * np.array([0.2, 0.3, 0.2])}
"""Data for degenerate placements."""

Kinds = tuple[Shape, Shape]


@dataclass(frozen=True)
class Placements:
    """Placements of two shapes: rotations (n, 3, 3), positions (n, 3) and sizes (n, 3) of both."""

    R: tuple[np.ndarray, np.ndarray]
    p: tuple[np.ndarray, np.ndarray]
    size: tuple[np.ndarray, np.ndarray]
    data: tuple[np.ndarray | None, np.ndarray | None]
    """Shape data, shared by all placements."""

    def transform(self, R: np.ndarray, p: np.ndarray) -> "Placements":
        """Apply a rigid transform to both shapes."""
        return Placements(tuple(R @ x for x in self.R), tuple(x @ R.T + p for x in self.p), self.size, self.data)

    def swap(self) -> "Placements":
        """Exchange the two shapes."""
        return Placements(self.R[::-1], self.p[::-1], self.size[::-1], self.data[::-1])


def _placed(kind: Shape, R, p, size, data=None) -> PlacedShape:
    """A shape at a pose in the world."""
    faces = CUBE_FACES if kind is Shape.MESH else ()
    return PlacedShape(Pose(R, p), size, data, faces)


def _contacts(kinds: Kinds, R, p, size, data, delta=None) -> ContactPoints:
    """Contacts of one placement, after a displacement of its parameters."""
    placed = []
    for k in (0, 1):
        X, shape_data = Pose(R[k], p[k]), data[k]
        if delta is None:
            placed.append(_placed(kinds[k], X.R, X.p, size[k], shape_data))
        else:
            X = X.displace(delta["pose"][k])
            shape_data = None if shape_data is None else shape_data + delta["data"][k]
            placed.append(_placed(kinds[k], X.R, X.p, size[k] + delta["size"][k], shape_data))
    return ROUTINES[kinds].contacts(*placed)


@cache
def compiled_contacts_and_derivatives(kinds: Kinds):
    """Compiled contacts of a batch, with tangents along a direction and the cotangents of weights."""

    def value_and_derivatives(R, p, size, data, delta, direction, weights):
        def f(delta):
            return _contacts(kinds, R, p, size, data, delta)

        # one linearization for both modes halves the program
        value, jvp = jax.linearize(f, delta)
        (cotangents,) = jax.linear_transpose(jvp, delta)(weights)
        return value, jvp(direction), cotangents

    return jax.jit(jax.vmap(value_and_derivatives, in_axes=(0, 0, 0, None, 0, 0, 0)))


@cache
def compiled_contacts(kinds: Kinds):
    """Compiled contacts of a batch."""

    def values(R, p, size, data):
        return _contacts(kinds, R, p, size, data)

    return jax.jit(jax.vmap(values, in_axes=(0, 0, 0, None)))


def zero_deltas(kinds: Kinds) -> dict:
    """Zero displacements of all parameters, for one batch."""
    zeros = np.zeros((BATCH, 2, 6))
    data = tuple(None if (x := DATA.get(k)) is None else np.zeros((BATCH, *x.shape)) for k in kinds)
    return {"pose": zeros, "size": np.zeros((BATCH, 2, 3)), "data": data}


def random_deltas(kinds: Kinds, seed: int) -> dict:
    """Random displacements of all parameters, for one batch."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda x: rng.normal(size=x.shape), zero_deltas(kinds))


def evaluate(
    kinds: Kinds, placements: Placements, delta: dict | None = None, direction: dict | None = None, seed: int = 0
):
    """Contacts of a batch, tangents along a direction, cotangents of random weights, and these weights."""
    zeros = zero_deltas(kinds)
    points = ROUTINES[kinds].max_points or len(DATA[kinds[0]])
    rng = np.random.default_rng(seed)
    shapes = ContactPoints(np.zeros(points), *[np.zeros((points, 3))] * 3)
    weights = jax.tree.map(lambda x: rng.normal(size=(BATCH, *x.shape)), shapes)
    value, tangents, cotangents = compiled_contacts_and_derivatives(kinds)(
        placements.R, placements.p, placements.size, placements.data, delta or zeros, direction or zeros, weights
    )
    return value, tangents, cotangents, weights


def contacts(kinds: Kinds, placements: Placements) -> ContactPoints:
    """Contacts of a batch, as NumPy arrays."""
    points = compiled_contacts(kinds)(placements.R, placements.p, placements.size, placements.data)
    return jax.tree.map(np.asarray, points)


def random_placements(kinds: Kinds, seed: int, *, n: int = BATCH) -> Placements:
    """Generic placements with sizes between 0.1 and 0.4, about half of which overlap."""
    rng = np.random.default_rng(seed)
    R = [Rotation.random(n, rng=rng).as_matrix() for _ in range(2)]
    size = [rng.uniform(0.1, 0.4, size=(n, 3)) for _ in range(2)]
    p_b = rng.normal(size=(n, 3))
    offset = rng.normal(size=(n, 3)) * 0.4
    if kinds[1] is Shape.HEIGHTFIELD:
        size[1] = rng.uniform(0.8, 1.2, size=(n, 3))
    if kinds[1] is Shape.CYLINDER:
        # polygons collide with upright cylinders only
        R[1] = R[0] @ Rotation.from_euler("z", rng.uniform(-3.0, 3.0, size=(n, 1))).as_matrix()
    p_a = p_b + np.einsum("nij,nj->ni", R[1], offset)
    return Placements((R[0], R[1]), (p_a, p_b), (size[0], size[1]), (DATA.get(kinds[0]), DATA.get(kinds[1])))


NOISE = np.array([0.0, 0.0, 0.0, 1e-300, 1e-170, 1e-30, 1e-17, 1e-13, 1e-12, 1e-10, 1e-7])
"""Perturbations of degenerate placements: zero, or of the magnitude of a threshold in the code."""


def degenerate_placements(kinds: Kinds, seed: int) -> Placements:
    """Placements with aligned axes, points on faces, edges, corners and axes, zero sizes, and deep penetration."""
    rng = np.random.default_rng(seed)
    n = BATCH

    def noise(*shape):
        return rng.choice(NOISE, size=shape) * rng.choice([-1.0, 1.0], size=shape)

    def rotations():
        quarter = Rotation.from_euler("xyz", rng.integers(0, 4, size=(n, 3)) * (0.5 * np.pi)).as_matrix()
        quarter = np.round(quarter)
        about = Rotation.from_rotvec(np.eye(3)[rng.integers(0, 3, size=n)] * rng.uniform(-3, 3, size=(n, 1)))
        eighth = Rotation.from_rotvec(np.eye(3)[rng.integers(0, 3, size=n)] * (0.25 * np.pi)).as_matrix()
        kinds = [np.broadcast_to(np.eye(3), (n, 3, 3)), quarter, about.as_matrix(), eighth]
        chosen = np.stack(kinds)[rng.integers(0, len(kinds), size=n), np.arange(n)]
        tilt = noise(n, 3) * (rng.random((n, 1)) < 0.5)
        return chosen @ Rotation.from_rotvec(tilt).as_matrix()

    sizes = [rng.choice([0.0, 0.1, 0.2, 0.2, 0.3, 1.0], size=(n, 3)) for _ in range(2)]
    data = tuple(AXIS_ALIGNED.get(k, DATA.get(k)) for k in kinds)
    vertices = [np.zeros((1, 3)) if d is None or d.shape[1] != 3 else d for d in data]
    corner = [d[rng.integers(0, len(d), size=n)] for d in vertices]
    signs = [rng.choice([-1.0, 0.0, 1.0], size=(n, 3)) for _ in range(4)]
    offset = signs[0] * sizes[0] + signs[1] * sizes[1] + np.abs(signs[2]) * corner[0] - np.abs(signs[3]) * corner[1]
    offset = offset * (rng.random((n, 1)) < 0.9) + noise(n, 3)
    R_b = rotations()
    R_a = np.where(rng.random((n, 1, 1)) < 0.5, R_b @ rotations(), rotations())
    p_b = rng.choice([0.0, 0.0, 0.5, 1.0], size=(n, 3))
    p_a = p_b + np.einsum("nij,nj->ni", R_b, offset)
    return Placements((R_a, R_b), (p_a, p_b), (sizes[0], sizes[1]), data)


def is_present(points: ContactPoints) -> np.ndarray:
    """Whether each contact of a batch exists."""
    return np.asarray(points.gap) < 0.5 * FAR


def min_gaps(points: ContactPoints) -> np.ndarray:
    """Smallest gap of each placement."""
    return np.asarray(points.gap).min(axis=1)


def at_min_gap(points: ContactPoints, values) -> np.ndarray:
    """Values of the contact with the smallest gap in each placement."""
    rows = np.asarray(points.gap).argmin(axis=1)
    return np.asarray(values)[np.arange(len(rows)), rows]


def contacts_of_pair(routine, first: PlacedShape, second: PlacedShape) -> ContactPoints:
    """Contacts of one pair of shapes, as NumPy arrays."""
    return jax.tree.map(np.asarray, jax.jit(routine)(first, second))


def placed_shape(
    kind: Shape | str, size, at=(0.0, 0.0, 0.0), rotvec=(0.0, 0.0, 0.0), data=None, faces=()
) -> PlacedShape:
    """A shape in the world, its size padded to three entries."""
    padded = np.zeros(3)
    padded[: len(size)] = size
    R = Rotation.from_rotvec(np.asarray(rotvec, dtype=float)).as_matrix()
    return PlacedShape(Pose(R, np.array(at, dtype=float)), padded, data, faces)

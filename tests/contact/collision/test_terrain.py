"""Terrain: planes and slopes are exact, heights are bilinear, and constant beyond the border."""

import jax
import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

from hybridsim.contact.collision.plane import box_plane, capsule_plane, points_plane, sphere_plane
from hybridsim.contact.collision.terrain import (
    box_terrain,
    capsule_terrain,
    hull_terrain,
    points_terrain,
    sphere_terrain,
    terrain_height,
)
from support.contact_pairs import CUBE, HEIGHTS, contacts_of_pair, placed_shape

FLAT = placed_shape("heightfield", [2.0, 1.0], data=np.zeros((3, 4)))
ROTVEC = np.array([0.2, -0.4, 0.3])


def _slope(a: float, b: float):
    """Terrain z = a·x + b·y, and the equivalent plane."""
    x, y = np.linspace(-2.0, 2.0, 5), np.linspace(-1.0, 1.0, 4)
    terrain = placed_shape("heightfield", [2.0, 1.0], data=a * x[:, None] + b * y[None])
    normal = np.array([-a, -b, 1.0]) / np.sqrt(1.0 + a * a + b * b)
    axis = np.cross([0.0, 0.0, 1.0], normal)
    sine = np.linalg.norm(axis)
    plane = placed_shape("plane", [], rotvec=axis / max(sine, 1e-12) * np.arcsin(sine))
    return terrain, plane


@pytest.mark.parametrize(("a", "b"), [(0.0, 0.0), (0.3, 0.0), (-0.2, 0.5)])
def test_a_slope_agrees_with_a_plane(a, b):
    terrain, plane = _slope(a, b)
    data = np.array([[0.1, 0.0, -0.05], [-0.1, 0.05, 0.1]])
    for on_terrain, on_plane, body in (
        (sphere_terrain, sphere_plane, placed_shape("sphere", [0.1], at=[0.3, 0.2, 0.2])),
        (capsule_terrain, capsule_plane, placed_shape("capsule", [0.1, 0.3], at=[0.3, 0.2, 0.2], rotvec=ROTVEC)),
        (points_terrain, points_plane, placed_shape("points", [0.02], at=[0.3, 0.2, 0.2], rotvec=ROTVEC, data=data)),
    ):
        ours, expected = contacts_of_pair(on_terrain, body, terrain), contacts_of_pair(on_plane, body, plane)
        for name in ("gap", "normal", "on_first", "on_second"):
            assert np.allclose(getattr(ours, name), getattr(expected, name), atol=1e-12)
    box = placed_shape("box", [0.1, 0.2, 0.3], at=[0.3, 0.2, 0.2], rotvec=ROTVEC)
    ours, expected = contacts_of_pair(box_terrain, box, terrain), contacts_of_pair(box_plane, box, plane)
    assert ours.gap.shape == (8,) and ours.gap.min() == pytest.approx(expected.gap.min())
    hull = placed_shape("mesh", [1, 1, 1], at=[0.3, 0.2, 0.2], rotvec=ROTVEC, data=CUBE * [0.1, 0.2, 0.3])
    assert np.allclose(np.sort(contacts_of_pair(hull_terrain, hull, terrain).gap), np.sort(ours.gap))


def test_heights_are_bilinear():
    rows, columns = HEIGHTS.shape
    terrain = placed_shape("heightfield", [2.0, 1.0], data=HEIGHTS)
    grid = np.linspace(-2.0, 2.0, rows), np.linspace(-1.0, 1.0, columns)
    rng = np.random.default_rng(0)
    points = rng.uniform([-2.0, -1.0], [2.0, 1.0], size=(300, 2))
    points = np.concatenate([points, np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, 2)])
    height, slope_x, slope_y = jax.jit(jax.vmap(lambda p: terrain_height(terrain, p[0], p[1])))(points)
    assert np.allclose(height, RegularGridInterpolator(grid, HEIGHTS)(points), atol=1e-13)
    within = points[:300]
    slopes = jax.jit(jax.vmap(jax.grad(lambda p: terrain_height(terrain, p[0], p[1])[0])))(within)
    assert np.allclose(np.stack([slope_x, slope_y], axis=1)[:300], slopes)


def test_terrain_is_constant_beyond_its_border():
    terrain = placed_shape("heightfield", [2.0, 1.0], data=HEIGHTS)
    height = jax.jit(lambda x, y: terrain_height(terrain, x, y))
    at_border, beyond = height(np.array(2.0), np.array(0.3)), height(np.array(7.0), np.array(0.3))
    assert float(beyond[0]) == pytest.approx(float(at_border[0])) and float(beyond[1]) == 0.0
    assert float(beyond[2]) == pytest.approx(float(at_border[2]))
    corner = height(np.array(-5.0), np.array(5.0))
    assert float(corner[0]) == pytest.approx(HEIGHTS[0, -1]) and corner[1] == corner[2] == 0.0


def test_normals_of_a_rotated_terrain():
    terrain = placed_shape("heightfield", [2.0, 1.0], at=[1.0, 2.0, 3.0], rotvec=ROTVEC, data=np.zeros((2, 2)))
    R, p = terrain.X_WG.R, terrain.X_WG.p
    result = contacts_of_pair(sphere_terrain, placed_shape("sphere", [0.1], at=p + R @ [0.3, 0.2, 0.4]), terrain)
    assert result.gap == pytest.approx([0.3]) and np.allclose(result.normal, R[:, 2])
    assert np.allclose(result.on_second, p + R @ [0.3, 0.2, 0.0])


def test_a_terrain_needs_a_grid():
    with pytest.raises(ValueError, match="at least two rows and two columns of heights, not 1 and 4"):
        contacts_of_pair(
            sphere_terrain,
            placed_shape("sphere", [0.1]),
            placed_shape("heightfield", [1.0, 1.0], data=np.zeros((1, 4))),
        )

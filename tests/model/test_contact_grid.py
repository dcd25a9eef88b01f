"""Grids of contact points under flat objects."""

import numpy as np
import pytest

from hybridsim.contact.candidates import find_candidates
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.contact_grid import MAX_POINTS, contact_grid

L_SHAPE = np.array([[0.0, 0.0], [0.1, 0.0], [0.1, 0.04], [0.04, 0.04], [0.04, 0.1], [0.0, 0.1]])


def _set(points) -> set[tuple[float, ...]]:
    return {tuple(p) for p in np.round(points, 9).tolist()}


def test_rectangle():
    points = contact_grid((0.04, 0.02), shape="box")
    assert points.shape == (15, 3) and (points[:, 2] == 0.0).all()
    assert _set(points) == {
        (round(x, 9), round(y, 9), 0.0) for x in (-0.04, -0.02, 0, 0.02, 0.04) for y in (-0.02, 0, 0.02)
    }


@pytest.mark.parametrize("half", [(0.045, 0.045), (0.049, 0.011), (0.3, 0.001)])
def test_grid_is_centred_and_maximal(half):
    points = contact_grid(half, 0.02, shape="box")
    assert np.allclose(points.mean(axis=0), 0.0)
    margin = np.array(half) - np.abs(points[:, :2]).max(axis=0)
    assert (margin >= -1e-9).all() and (margin < 0.01).all()


def test_ellipse():
    half, spacing = np.array([0.0525, 0.065]), 0.005
    points = contact_grid(half, spacing, shape="ellipse")
    inside = np.sum((points[:, :2] / half) ** 2, axis=1)
    assert inside.max() <= 1.0 + 1e-9 and inside.max() > 0.9
    assert np.allclose(points.mean(axis=0), 0.0)
    assert len(points) * spacing**2 == pytest.approx(np.pi * half.prod(), rel=0.03)


@pytest.mark.parametrize("outline", [L_SHAPE, L_SHAPE[::-1]], ids=["counterclockwise", "clockwise"])
def test_nonconvex_polygon(outline):
    points = contact_grid(outline, 0.02)
    grid = np.arange(6) * 0.02
    expected = {(round(x, 9), round(y, 9), 0.0) for x in grid for y in grid if x < 0.05 or y < 0.05}
    assert _set(points) == expected


def test_area_and_centroid_of_a_rotated_polygon():
    angle = 0.4
    R = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    points = contact_grid(L_SHAPE @ R, 0.002)
    assert len(points) * 4e-6 == pytest.approx(0.1 * 0.04 + 0.06 * 0.04, rel=0.03)
    centroid = np.array([(0.004 * 0.05 + 0.0024 * 0.02) / 0.0064] * 2) @ R
    assert np.allclose(points.mean(axis=0)[:2], centroid, atol=5e-4)


def test_outline_smaller_than_the_spacing_yields_its_centroid():
    sliver = np.array([[0.0, 0.0], [0.001, 0.0], [0.01, 0.009], [0.01, 0.01]])
    assert contact_grid(sliver, 0.02).shape == (1, 3)
    assert np.allclose(contact_grid((0.0, 0.0), shape="ellipse"), [[0.0, 0.0, 0.0]])
    assert np.allclose(contact_grid((0.001, 0.001), shape="box"), [[0.0, 0.0, 0.0]])


def test_outline_that_misses_the_grid_yields_its_centroid():
    """A thin frame around the centre of its bounding rectangle, where the only grid point would be."""
    horseshoe = np.array([[0, 0], [9, 0], [9, 9], [8, 9], [8, 1], [1, 1], [1, 9], [0, 9.0]]) * 1e-3
    points = contact_grid(horseshoe, 0.02)
    areas, centroids = np.array([9.0, 8.0, 8.0]), np.array([[4.5, 0.5], [8.5, 5.0], [0.5, 5.0]])
    assert np.allclose(points, [[*(areas @ centroids / areas.sum() * 1e-3), 0.0]])


@pytest.mark.parametrize(
    ("outline", "options", "message"),
    [
        ((0.1, 0.1), {}, 'pass shape="box" or shape="ellipse"'),
        ([[0, 0], [1, 0]], {}, "three vertices"),
        (np.zeros((4, 3)), {}, r"not an array of shape \(4, 3\)"),
        ((0.1, -0.1), {"shape": "box"}, "two nonnegative half extents"),
        ((0.1, 0.1, 0.1), {"shape": "ellipse"}, "two nonnegative semi-axes"),
        ((0.1, np.nan), {"shape": "box"}, "not finite"),
        ((0.1, 0.1), {"shape": "sphere"}, "not sphere"),
        ((0.1, 0.1), {"shape": "box", "spacing": 0.0}, "positive length"),
        ((0.1, 0.1), {"shape": "box", "spacing": np.inf}, "positive length"),
        ((90.0, 90.0), {"shape": "box"}, "check that the lengths are in metres"),
    ],
)
def test_invalid_outline_is_rejected(outline, options, message):
    with pytest.raises(ValueError, match=message):
        contact_grid(outline, **options)


def test_grid_points_become_contact_candidates():
    table = ModelBuilder("table")
    table.add_body("object", kind="planar", mass=1.0, inertia=(1e-3, 1e-3, 1e-3))
    grid = contact_grid((0.045, 0.045), shape="box")
    table.add_geom("object", "points", (0.0,), data=grid)
    table.add_geom("world", "plane", (), name="table")
    assert find_candidates(table.build()).nc == len(grid) == 25 < MAX_POINTS

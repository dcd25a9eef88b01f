"""Shapes against a half space: MuJoCo, closed forms and samples of the surface."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hybridsim.contact.collision.plane import (
    UPRIGHT_TILT,
    box_plane,
    capsule_plane,
    cylinder_plane,
    ellipsoid_plane,
    hull_plane,
    points_plane,
    sphere_plane,
)
from hybridsim.model.geometry import Shape
from support.contact_pairs import (
    CUBE,
    at_min_gap,
    contacts,
    contacts_of_pair,
    is_present,
    min_gaps,
    placed_shape,
    random_placements,
)
from support.mujoco_pairs import references

PLACEMENTS = 250
FLOOR = placed_shape("plane", [])
STANDING, LYING = np.zeros(3), np.array([0.0, np.pi / 2, 0.0])


@pytest.mark.parametrize(
    "kind", [Shape.SPHERE, Shape.CAPSULE, Shape.BOX, Shape.CYLINDER, Shape.ELLIPSOID, Shape.MESH], ids=str
)
def test_mujoco_agrees(kind):
    kinds = (kind, Shape.PLANE)
    placements = random_placements(kinds, 21)
    ours, theirs = contacts(kinds, placements), references(kinds, placements, PLACEMENTS)
    gap = min_gaps(ours)[:PLACEMENTS]
    is_open, touches = gap > 0.0, theirs.in_contact
    assert is_open.sum() > 25 and (touches == ~is_open).all()
    tolerance = 1e-6 if kind is Shape.MESH else 1e-12  # MuJoCo stores meshes in single precision
    assert np.abs(gap - theirs.distance)[is_open].max() < tolerance
    assert np.abs(gap - theirs.depth)[touches].max() < tolerance
    normal, middle = (at_min_gap(ours, x)[:PLACEMENTS] for x in (ours.normal, 0.5 * (ours.on_first + ours.on_second)))
    assert np.abs(normal - theirs.normal)[touches].max() < tolerance
    assert np.abs(middle - theirs.position)[touches].max() < tolerance


def test_sphere():
    result = contacts_of_pair(sphere_plane, placed_shape("sphere", [0.2], at=[1.0, 2.0, 0.5]), FLOOR)
    assert result.gap == pytest.approx([0.3])
    assert np.allclose(result.on_first, [[1.0, 2.0, 0.3]]) and np.allclose(result.on_second, [[1.0, 2.0, 0.0]])


def test_capsule_has_a_contact_at_each_end():
    tilt = 0.3
    result = contacts_of_pair(
        capsule_plane, placed_shape("capsule", [0.1, 0.4], at=[0, 0, 0.5], rotvec=[0, tilt, 0]), FLOOR
    )
    assert result.gap == pytest.approx([0.4 + 0.4 * np.cos(tilt), 0.4 - 0.4 * np.cos(tilt)])


@pytest.mark.parametrize("seed", range(20))
def test_box_has_its_four_lowest_corners(seed):
    rng = np.random.default_rng(seed)
    size, R = rng.uniform(0.02, 0.5, size=3), Rotation.random(rng=rng)
    result = contacts_of_pair(box_plane, placed_shape("box", size, at=[0, 0, 0.3], rotvec=R.as_rotvec()), FLOOR)
    heights = np.sort(R.apply(CUBE * size)[:, 2] + 0.3)
    np.testing.assert_allclose(np.sort(result.gap), heights[:4], atol=1e-12)


def test_corner_indices_persist_when_a_box_tips_over_an_edge():
    before, after = (
        contacts_of_pair(box_plane, placed_shape("box", [0.1, 0.2, 0.15], at=[0, 0, 0.3], rotvec=[0, tilt, 0]), FLOOR)
        for tilt in np.arctan2(0.15, 0.1) + np.array([-0.01, 0.01])
    )
    edge = before.gap < before.gap.min() + 1e-3
    assert edge.sum() == 2
    np.testing.assert_allclose(before.on_first[edge], after.on_first[edge], atol=0.02 * 0.25)


@pytest.mark.parametrize("yaw", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("upside_down", [0.0, np.pi])
def test_standing_cylinder_has_a_tripod(yaw, upside_down):
    R = Rotation.from_euler("zx", [yaw, upside_down])
    result = contacts_of_pair(
        cylinder_plane, placed_shape("cylinder", [0.1, 0.4], at=[0, 0, 0.39], rotvec=R.as_rotvec()), FLOOR
    )
    assert result.gap[:3] == pytest.approx([-0.01] * 3) and result.gap[3] == pytest.approx(0.79)
    tripod = result.on_first[:3, :2]
    assert np.allclose(np.linalg.norm(tripod, axis=1), 0.1) and np.allclose(tripod.mean(axis=0), 0.0)


def test_lying_cylinder_has_contacts_at_both_ends():
    result = contacts_of_pair(
        cylinder_plane, placed_shape("cylinder", [0.1, 0.4], at=[0, 0, 0.09], rotvec=LYING), FLOOR
    )
    assert result.gap[[0, 3]] == pytest.approx([-0.01, -0.01]) and (result.gap[[1, 2]] > 0.1).all()
    assert np.allclose(np.sort(result.on_first[[0, 3], 0]), [-0.4, 0.4])


@pytest.mark.parametrize(
    "tilt", [1e-9, 1e-6, 0.3 * UPRIGHT_TILT, 0.9 * UPRIGHT_TILT, UPRIGHT_TILT, 1.1 * UPRIGHT_TILT, 1e-3, 0.1, 1.5]
)
@pytest.mark.parametrize("toward", [0.0, 2.0, np.pi])
def test_lowest_point_of_a_tilted_cylinder_is_on_its_rim(tilt, toward):
    rotvec = tilt * np.array([np.cos(toward), np.sin(toward), 0.0])
    result = contacts_of_pair(cylinder_plane, placed_shape("cylinder", [0.1, 0.4], rotvec=rotvec), FLOOR)
    # when upright, one leg of the tripod is at most 60° off the lowest direction
    slack = 0.5 * 0.1 * tilt if tilt < UPRIGHT_TILT else 1e-13
    assert -0.4 * np.cos(tilt) - 0.1 * np.sin(tilt) - 1e-13 <= result.gap.min()
    assert result.gap.min() <= -0.4 * np.cos(tilt) - 0.1 * np.sin(tilt) + slack


def test_ellipsoid_against_samples_of_its_surface():
    size, R = np.array([0.1, 0.3, 0.5]), Rotation.from_rotvec([0.5, -0.4, 1.0])
    result = contacts_of_pair(
        ellipsoid_plane, placed_shape("ellipsoid", size, at=[0, 0, 0.2], rotvec=R.as_rotvec()), FLOOR
    )
    u, v = np.meshgrid(np.linspace(0, np.pi, 1000), np.linspace(0, 2 * np.pi, 1000))
    surface = np.stack([np.sin(u) * np.cos(v), np.sin(u) * np.sin(v), np.cos(u)], axis=-1).reshape(-1, 3) * size
    heights = R.apply(surface)[:, 2] + 0.2
    assert result.gap == pytest.approx([heights.min()], abs=1e-5)
    local = R.inv().apply(result.on_first[0] - [0, 0, 0.2])
    assert np.allclose(local, surface[heights.argmin()], atol=5e-3)
    on_surface = local / size
    assert np.linalg.norm(on_surface) == pytest.approx(1.0)


def test_points_have_a_common_radius():
    data = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, -0.2], [0.0, 0.3, 0.1]])
    result = contacts_of_pair(points_plane, placed_shape("points", [0.05], at=[0, 0, 1.0], data=data), FLOOR)
    assert result.gap == pytest.approx([0.95, 0.75, 1.05])


def test_hull_on_a_tilted_plane():
    """Heights are along the normal of the plane."""
    corners = CUBE * np.array([0.2, 0.3, 0.1])
    rotvec = np.array([0.4, -0.8, 0.3])
    R = Rotation.from_rotvec(rotvec)
    plane = placed_shape("plane", [], at=[1.0, 2.0, 3.0], rotvec=rotvec)
    at = plane.X_WG.p + R.apply([0.5, 0.5, 0.09])
    hull = placed_shape("mesh", [1, 1, 1], at=at, rotvec=rotvec, data=corners)
    result = contacts_of_pair(hull_plane, hull, plane)
    assert result.gap == pytest.approx([-0.01] * 4)
    assert np.allclose(result.normal, R.as_matrix()[:, 2])
    bottom = R.inv().apply(result.on_first - plane.X_WG.p)
    assert {tuple(x) for x in np.round(bottom, 9)} == {
        (0.5 + x, 0.5 + y, -0.01) for x in (-0.2, 0.2) for y in (-0.3, 0.3)
    }


def test_hull_on_its_tip_has_one_contact():
    corners = CUBE * 0.1
    tip = Rotation.align_vectors([[0, 0, -1.0]], [[1.0, 1.0, 1.0]])[0]
    result = contacts_of_pair(
        hull_plane, placed_shape("mesh", [1, 1, 1], at=[0, 0, 0.17], rotvec=tip.as_rotvec(), data=corners), FLOOR
    )
    exists = is_present(result)
    assert exists.tolist() == [True, False, False, False]
    assert result.gap[0] == pytest.approx(0.17 - 0.1 * np.sqrt(3.0))

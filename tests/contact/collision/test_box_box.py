"""Boxes against boxes: the separating axis theorem by brute force, MuJoCo, and polygons that faces have in common."""

from dataclasses import replace

import numpy as np
import pytest

from hybridsim.contact.collision.box_box import EDGE_ADVANTAGE, LIP, box_box
from hybridsim.model.geometry import Shape
from support.contact_pairs import contacts, lowest, one, present, random_scene, shape
from support.mujoco_pairs import references
from support.polygons import area, clipped, corners_of, rectangle

KINDS = (Shape.BOX, Shape.BOX)
PLACEMENTS = 250


def _separations(scene):
    """Gaps along all fifteen axes of all placements, face normals first, and the axes, from the second box away."""
    (R_a, R_b), (p_a, p_b), (size_a, size_b) = scene.R, scene.p, scene.size
    rows_a, rows_b = np.swapaxes(R_a, 1, 2), np.swapaxes(R_b, 1, 2)
    crosses = np.cross(rows_a[:, :, None], rows_b[:, None]).reshape(-1, 9, 3)
    axes = np.concatenate([rows_a, rows_b, crosses], axis=1)
    axes = axes / np.linalg.norm(axes, axis=-1, keepdims=True)
    along = np.einsum("nki,ni->nk", axes, p_a - p_b)
    reach = sum((np.abs(axes @ R) @ s[..., None])[..., 0] for R, s in ((R_a, size_a), (R_b, size_b)))
    return np.abs(along) - reach, axes * np.where(along < 0.0, -1.0, 1.0)[..., None]


@pytest.fixture(scope="module")
def scene():
    return random_scene(KINDS, 41)


@pytest.fixture(scope="module")
def margin(scene):
    """What two edges must separate more than a face."""
    return EDGE_ADVANTAGE * np.minimum(*(s.sum(axis=1) for s in scene.size))


def test_depth_is_the_least_overlap(scene, margin):
    gaps, axes = _separations(scene)
    least, faces = gaps.max(axis=1), gaps[:, :6].max(axis=1)
    found = contacts(KINDS, scene)
    gap, overlaps = lowest(found), least < 0.0
    is_edge = least > faces + margin
    assert (overlaps & is_edge).sum() > 100 and (overlaps & ~is_edge).sum() > 100
    exact = overlaps & (is_edge | (least == faces))
    assert np.abs(gap - least)[exact].max() < 1e-12
    # where edges separate a little more than a face, the face counts
    assert (np.abs(gap - least) <= margin)[overlaps].all()
    best = axes[np.arange(len(axes)), gaps.argmax(axis=1)]
    assert np.abs(found.normal[:, 0] - best)[exact].max() < 1e-12


def test_mujoco_agrees(scene, margin):
    """MuJoCo prefers faces too, by another margin; its general algorithm gives the exact depth and distance."""
    theirs, gap = references(KINDS, scene, PLACEMENTS), lowest(contacts(KINDS, scene))[:PLACEMENTS]
    assert (theirs.touches == (gap < 0.0)).all() and 50 < theirs.touches.sum() < PLACEMENTS - 50
    assert np.abs(gap - theirs.depth)[theirs.touches].max() < 5e-3
    assert (np.abs(gap - theirs.distance) < 1e-8 + margin[:PLACEMENTS])[theirs.touches].all()


def test_boxes_that_are_apart(scene, margin):
    """The gap is at least the distance along the best axis, a lower bound of the true distance.

    It is no more than that where the boxes are not above each other's faces. Elsewhere it is the distance straight
    above a face, which is more than the true one if an edge beside the face is nearer.
    """
    theirs, found = references(KINDS, scene, PLACEMENTS), contacts(KINDS, scene)
    gap, least = lowest(found)[:PLACEMENTS], _separations(scene)[0].max(axis=1)[:PLACEMENTS]
    apart = least > 0.0
    assert (gap >= least - margin[:PLACEMENTS])[apart].all()
    bounds = np.abs(gap - least) < 1e-12
    assert (gap <= theirs.distance + 1e-9)[apart & bounds].all() and (apart & bounds).sum() > 50


@pytest.mark.parametrize("distance", [1e-3, 2e-2])
def test_boxes_that_nearly_touch_have_the_true_distance(scene, margin, distance):
    gaps, axes = _separations(scene)
    least, best = gaps.max(axis=1), axes[np.arange(len(axes)), gaps.argmax(axis=1)]
    p_a = scene.p[0] + np.where(least < 0.0, distance - least, 0.0)[:, None] * best
    near = replace(scene, p=(p_a, scene.p[1]))
    gap, overlapped = lowest(contacts(KINDS, near)), least < 0.0
    # pushed apart along the axis of least overlap, the distance along it is the true one
    assert (np.abs(gap - distance) <= 1e-5 + margin)[overlapped].all()
    exact = overlapped & (least == gaps[:, :6].max(axis=1))
    assert np.abs(gap - distance)[exact].max() < 1e-12


STACKS = {
    "aligned": ([0.3, 0.2], [0.3, 0.2], (0.0, 0.0)),
    "shifted": ([0.3, 0.2], [0.3, 0.2], (0.2, -0.15)),
    "smaller above": ([0.1, 0.05], [0.3, 0.2], (0.05, 0.02)),
    "larger above": ([0.5, 0.6], [0.3, 0.2], (0.05, 0.02)),
    "bars crossing": ([0.5, 0.05], [0.06, 0.4], (0.1, -0.05)),
    "corner above corner": ([0.3, 0.2], [0.2, 0.2], (0.4, 0.3)),
}


@pytest.mark.parametrize("tilt", [0.0, 1e-10, 1e-5])
@pytest.mark.parametrize("yaw", [0.0, 0.01, 0.3, np.pi / 8, np.pi / 4, 1.2, np.pi / 2, 2.5])
@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_stacked_boxes_touch_in_the_corners_of_what_they_share(stack, yaw, tilt):
    upper, lower, shift = STACKS[stack]
    rng = np.random.default_rng(0)
    R_tilt = tilt * rng.normal(size=3)
    # the pair lies anywhere in the world
    world = shape("box", [1], at=[3.0, -2.0, 1.0], rotvec=[0.4, 1.0, -0.6]).X_WG
    a = shape("box", [*upper, 0.1], at=[*shift, 0.2 - 1e-4], rotvec=[0.0, 0.0, yaw])
    b = shape("box", [*lower, 0.1], rotvec=R_tilt)
    polygon = clipped(rectangle(upper, yaw, shift), rectangle(lower))
    found = one(box_box, *(replace_pose(x, world @ x.X_WG) for x in (a, b)))
    there = present(found)
    if len(polygon) < 3 or not there.any():
        assert found.gap.min() > -1e-12  # beside each other at this angle, or nearly
        assert len(polygon) < 3 or area(polygon) < (2.0 * LIP * 0.1) ** 2
        return
    places = np.array([world.inv_point(p) for p in 0.5 * (found.on_first + found.on_second)[there]])
    assert np.allclose(found.gap[there], -1e-4, atol=2 * tilt + 1e-12)
    assert np.allclose(found.normal, world.R[:, 2], atol=5 * tilt + 1e-12)
    # every point is a corner of the polygon, and they span most of it, or all if it has four corners
    from_corners = np.linalg.norm(places[:, None, :2] - polygon[None], axis=-1)
    assert from_corners.min(axis=1).max() < tilt + 1e-9
    spanned = area(corners_of(places[:, :2]))
    assert there.sum() == min(4, len(polygon))
    assert spanned >= (0.999 if len(polygon) <= 4 else 0.55) * area(polygon)


def replace_pose(shape, X):
    return replace(shape, X_WG=X)


def test_edges_meet_in_one_point():
    """A bar on its edge across another one on its edge."""
    a = shape("box", [0.5, 0.1, 0.1], at=[0.0, 0.05, 0.1 * np.sqrt(2.0) - 0.01], rotvec=[np.pi / 4, 0.0, 0.0])
    b = shape("box", [0.1, 0.5, 0.1], at=[0.02, 0.0, -0.1 * np.sqrt(2.0)], rotvec=[0.0, np.pi / 4, 0.0])
    found = one(box_box, a, b)
    assert present(found).tolist() == [True, False, False, False]
    assert found.gap[0] == pytest.approx(-0.01) and np.allclose(found.normal[0], [0.0, 0.0, 1.0])
    assert np.allclose(found.on_first[0], [0.02, 0.05, -0.01]) and np.allclose(found.on_second[0], [0.02, 0.05, 0.0])


def test_small_box_on_the_rim_of_a_large_one_meets_its_edge():
    """The preference for faces is a matter of the smaller box: a table's size does not make its rim blunt."""
    table = shape("box", [5.0, 5.0, 0.05])
    cube = shape("box", [0.05] * 3, at=[5.035, 0.0, 0.085], rotvec=np.array([0.0, np.pi / 4, 0.0]))
    turned = shape("box", [0.05] * 3, at=[5.035, 0.0, 0.085], rotvec=np.array([0.5, np.pi / 4, 0.1]))
    for box in (cube, turned):
        found = one(box_box, box, table)
        assert 0.0 > found.gap.min() > -0.02 and found.normal[found.gap.argmin()][0] > 0.3


def test_box_on_its_corner_touches_once():
    R = np.array([np.arctan(np.sqrt(0.5)), 0.0, 0.0])
    tip = (
        shape("box", [0.1] * 3).X_WG.R
        @ shape("box", [1], rotvec=R).X_WG.R
        @ shape("box", [1], rotvec=[0, np.pi / 4, 0]).X_WG.R
    )
    low = (tip @ (np.array(np.meshgrid(*[[-0.1, 0.1]] * 3)).reshape(3, 8)))[2].min()
    cube = shape("box", [0.1] * 3, at=[0.1, 0.2, 0.1 - low - 0.005])
    cube = replace_pose(cube, type(cube.X_WG)(tip, cube.X_WG.p))
    found = one(box_box, cube, shape("box", [0.5, 0.5, 0.1]))
    assert present(found).tolist() == [True, False, False, False] and found.gap[0] == pytest.approx(-0.005)


def test_boxes_that_pass_each_other_diagonally_do_not_touch():
    found = one(box_box, shape("box", [0.1] * 3, at=[0.5, 0.4, 0.0]), shape("box", [0.1] * 3))
    assert not present(found).any()


@pytest.mark.parametrize("depth", [-1e-4, 1e-12, 1e-4, 9e-4])
@pytest.mark.parametrize("apart", [-5e-4, 0.0, 5e-4])
def test_a_lip_is_no_wall(depth, apart):
    """Beside a box and sunk in less than a lip below its top: nothing to run into."""
    box, neighbour = shape("box", [0.1] * 3, at=[0.2 + apart, 0.0, 0.2 - depth]), shape("box", [0.1] * 3)
    assert not present(one(box_box, box, neighbour)).any()
    deep = shape("box", [0.1] * 3, at=[0.2 + apart, 0.0, 0.19])
    found = one(box_box, deep, neighbour)
    assert present(found).any() and np.allclose(found.normal[present(found)], [1.0, 0.0, 0.0])

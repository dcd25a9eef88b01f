"""Boxes against boxes: brute-force separating axis test, MuJoCo, and intersection polygons of faces."""

from dataclasses import replace

import numpy as np
import pytest

from hybridsim.contact.collision.box_box import EDGE_MARGIN, MIN_LATERAL_OVERLAP, box_box
from hybridsim.model.geometry import Shape
from support.contact_pairs import contacts, contacts_of_pair, is_present, min_gaps, placed_shape, random_placements
from support.mujoco_pairs import references
from support.polygons import area, clip, hull_corners, rectangle

KINDS = (Shape.BOX, Shape.BOX)
PLACEMENTS = 250


def _separations(placements):
    """Gaps along all fifteen axes of all placements, face normals first, and the axes, away from the second box."""
    (R_a, R_b), (p_a, p_b), (size_a, size_b) = placements.R, placements.p, placements.size
    rows_a, rows_b = np.swapaxes(R_a, 1, 2), np.swapaxes(R_b, 1, 2)
    crosses = np.cross(rows_a[:, :, None], rows_b[:, None]).reshape(-1, 9, 3)
    axes = np.concatenate([rows_a, rows_b, crosses], axis=1)
    axes = axes / np.linalg.norm(axes, axis=-1, keepdims=True)
    along = np.einsum("nki,ni->nk", axes, p_a - p_b)
    reach = sum((np.abs(axes @ R) @ s[..., None])[..., 0] for R, s in ((R_a, size_a), (R_b, size_b)))
    return np.abs(along) - reach, axes * np.where(along < 0.0, -1.0, 1.0)[..., None]


@pytest.fixture(scope="module")
def placements():
    return random_placements(KINDS, 41)


@pytest.fixture(scope="module")
def margin(placements):
    """Margin by which the gap of an edge axis must exceed that of a face."""
    return EDGE_MARGIN * np.minimum(*(s.sum(axis=1) for s in placements.size))


def test_depth_is_the_least_overlap(placements, margin):
    gaps, axes = _separations(placements)
    least, faces = gaps.max(axis=1), gaps[:, :6].max(axis=1)
    result = contacts(KINDS, placements)
    gap, overlaps = min_gaps(result), least < 0.0
    is_edge = least > faces + margin
    assert (overlaps & is_edge).sum() > 100 and (overlaps & ~is_edge).sum() > 100
    exact = overlaps & (is_edge | (least == faces))
    assert np.abs(gap - least)[exact].max() < 1e-12
    # where edges separate only slightly more than a face, the face is preferred
    assert (np.abs(gap - least) <= margin)[overlaps].all()
    best = axes[np.arange(len(axes)), gaps.argmax(axis=1)]
    assert np.abs(result.normal[:, 0] - best)[exact].max() < 1e-12


def test_mujoco_agrees(placements, margin):
    """MuJoCo also prefers faces, by another margin; its general algorithm gives the exact depth and distance."""
    theirs, gap = references(KINDS, placements, PLACEMENTS), min_gaps(contacts(KINDS, placements))[:PLACEMENTS]
    assert (theirs.in_contact == (gap < 0.0)).all() and 50 < theirs.in_contact.sum() < PLACEMENTS - 50
    assert np.abs(gap - theirs.depth)[theirs.in_contact].max() < 5e-3
    assert (np.abs(gap - theirs.distance) < 1e-8 + margin[:PLACEMENTS])[theirs.in_contact].all()


def test_gap_of_separated_boxes(placements, margin):
    """The gap is at least the distance along the best axis, a lower bound of the true distance.

    It equals that bound where the boxes are not above each other's faces. Elsewhere it is the distance normal to a
    face, which exceeds the true one if an edge beside the face is nearer.
    """
    theirs, result = references(KINDS, placements, PLACEMENTS), contacts(KINDS, placements)
    gap, least = min_gaps(result)[:PLACEMENTS], _separations(placements)[0].max(axis=1)[:PLACEMENTS]
    is_separated = least > 0.0
    assert (gap >= least - margin[:PLACEMENTS])[is_separated].all()
    bounds = np.abs(gap - least) < 1e-12
    assert (gap <= theirs.distance + 1e-9)[is_separated & bounds].all() and (is_separated & bounds).sum() > 50


@pytest.mark.parametrize("distance", [1e-3, 2e-2])
def test_gap_of_nearly_touching_boxes_is_the_true_distance(placements, margin, distance):
    gaps, axes = _separations(placements)
    least, best = gaps.max(axis=1), axes[np.arange(len(axes)), gaps.argmax(axis=1)]
    p_a = placements.p[0] + np.where(least < 0.0, distance - least, 0.0)[:, None] * best
    near = replace(placements, p=(p_a, placements.p[1]))
    gap, overlapped = min_gaps(contacts(KINDS, near)), least < 0.0
    # after the boxes are moved apart along the axis of least overlap, the distance along that axis is the true one
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
def test_manifold_of_stacked_boxes(stack, yaw, tilt):
    upper, lower, shift = STACKS[stack]
    rng = np.random.default_rng(0)
    R_tilt = tilt * rng.normal(size=3)
    # arbitrary pose of the pair in the world
    world = placed_shape("box", [1], at=[3.0, -2.0, 1.0], rotvec=[0.4, 1.0, -0.6]).X_WG
    a = placed_shape("box", [*upper, 0.1], at=[*shift, 0.2 - 1e-4], rotvec=[0.0, 0.0, yaw])
    b = placed_shape("box", [*lower, 0.1], rotvec=R_tilt)
    polygon = clip(rectangle(upper, yaw, shift), rectangle(lower))
    result = contacts_of_pair(box_box, *(replace_pose(x, world @ x.X_WG) for x in (a, b)))
    exists = is_present(result)
    if len(polygon) < 3 or not exists.any():
        assert result.gap.min() > -1e-12  # no overlap at this angle, or nearly none
        assert len(polygon) < 3 or area(polygon) < (2.0 * MIN_LATERAL_OVERLAP * 0.1) ** 2
        return
    points = np.array([world.inv_point(p) for p in 0.5 * (result.on_first + result.on_second)[exists]])
    assert np.allclose(result.gap[exists], -1e-4, atol=2 * tilt + 1e-12)
    assert np.allclose(result.normal, world.R[:, 2], atol=5 * tilt + 1e-12)
    # every point is a corner of the intersection polygon; they span most of it, or all if it has four corners
    from_corners = np.linalg.norm(points[:, None, :2] - polygon[None], axis=-1)
    assert from_corners.min(axis=1).max() < tilt + 1e-9
    spanned = area(hull_corners(points[:, :2]))
    assert exists.sum() == min(4, len(polygon))
    assert spanned >= (0.999 if len(polygon) <= 4 else 0.55) * area(polygon)


def replace_pose(placed_shape, X):
    return replace(placed_shape, X_WG=X)


def test_edge_contact_is_a_single_point():
    """A bar on its edge across another one on its edge."""
    a = placed_shape("box", [0.5, 0.1, 0.1], at=[0.0, 0.05, 0.1 * np.sqrt(2.0) - 0.01], rotvec=[np.pi / 4, 0.0, 0.0])
    b = placed_shape("box", [0.1, 0.5, 0.1], at=[0.02, 0.0, -0.1 * np.sqrt(2.0)], rotvec=[0.0, np.pi / 4, 0.0])
    result = contacts_of_pair(box_box, a, b)
    assert is_present(result).tolist() == [True, False, False, False]
    assert result.gap[0] == pytest.approx(-0.01) and np.allclose(result.normal[0], [0.0, 0.0, 1.0])
    assert np.allclose(result.on_first[0], [0.02, 0.05, -0.01]) and np.allclose(result.on_second[0], [0.02, 0.05, 0.0])


def test_small_box_on_the_edge_of_a_large_one():
    """The preference for faces scales with the smaller box, not with the table."""
    table = placed_shape("box", [5.0, 5.0, 0.05])
    cube = placed_shape("box", [0.05] * 3, at=[5.035, 0.0, 0.085], rotvec=np.array([0.0, np.pi / 4, 0.0]))
    rotated = placed_shape("box", [0.05] * 3, at=[5.035, 0.0, 0.085], rotvec=np.array([0.5, np.pi / 4, 0.1]))
    for box in (cube, rotated):
        result = contacts_of_pair(box_box, box, table)
        assert 0.0 > result.gap.min() > -0.02 and result.normal[result.gap.argmin()][0] > 0.3


def test_box_on_its_corner_has_one_contact():
    R = np.array([np.arctan(np.sqrt(0.5)), 0.0, 0.0])
    tip = (
        placed_shape("box", [0.1] * 3).X_WG.R
        @ placed_shape("box", [1], rotvec=R).X_WG.R
        @ placed_shape("box", [1], rotvec=[0, np.pi / 4, 0]).X_WG.R
    )
    low = (tip @ (np.array(np.meshgrid(*[[-0.1, 0.1]] * 3)).reshape(3, 8)))[2].min()
    cube = placed_shape("box", [0.1] * 3, at=[0.1, 0.2, 0.1 - low - 0.005])
    cube = replace_pose(cube, type(cube.X_WG)(tip, cube.X_WG.p))
    result = contacts_of_pair(box_box, cube, placed_shape("box", [0.5, 0.5, 0.1]))
    assert is_present(result).tolist() == [True, False, False, False] and result.gap[0] == pytest.approx(-0.005)


def test_diagonally_separated_boxes_have_no_contact():
    result = contacts_of_pair(
        box_box, placed_shape("box", [0.1] * 3, at=[0.5, 0.4, 0.0]), placed_shape("box", [0.1] * 3)
    )
    assert not is_present(result).any()


@pytest.mark.parametrize("depth", [-1e-4, 1e-12, 1e-4, 9e-4])
@pytest.mark.parametrize("lateral_gap", [-5e-4, 0.0, 5e-4])
def test_small_lateral_overlap_is_ignored(depth, lateral_gap):
    """A box beside another one, less than the minimum lateral overlap below its top, does not hit its side."""
    box, neighbour = (
        placed_shape("box", [0.1] * 3, at=[0.2 + lateral_gap, 0.0, 0.2 - depth]),
        placed_shape("box", [0.1] * 3),
    )
    assert not is_present(contacts_of_pair(box_box, box, neighbour)).any()
    deep = placed_shape("box", [0.1] * 3, at=[0.2 + lateral_gap, 0.0, 0.19])
    result = contacts_of_pair(box_box, deep, neighbour)
    assert is_present(result).any() and np.allclose(result.normal[is_present(result)], [1.0, 0.0, 0.0])

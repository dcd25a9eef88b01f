"""Convex hulls against MuJoCo, and the hull of a box against the box itself."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from hybridsim.contact.collision.box_box import EDGE_MARGIN, box_box
from hybridsim.contact.collision.hull import hull_box, hull_distance, hull_sphere
from hybridsim.model.geometry import Shape
from support.contact_pairs import (
    AXIS_ALIGNED,
    BATCH,
    CUBE,
    CUBE_FACES,
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
SINGLE = 1e-6
"""MuJoCo stores meshes in single precision."""


def test_spheres_as_in_mujoco():
    kinds = (Shape.MESH, Shape.SPHERE)
    placements = random_placements(kinds, 51)
    ours, theirs = contacts(kinds, placements), references(kinds, placements, PLACEMENTS)
    gap = min_gaps(ours)[:PLACEMENTS]
    touches = theirs.in_contact
    assert 50 < touches.sum() < PLACEMENTS - 50 and (touches == (gap < 0.0)).all()
    assert np.abs(gap - theirs.distance)[~touches].max() < SINGLE
    assert np.abs(gap - theirs.depth)[touches].max() < SINGLE
    assert np.abs(ours.normal[:PLACEMENTS, 0] - theirs.normal)[touches].max() < 1e-5


def test_boxes_as_in_mujoco():
    """Depths are exact up to the preference for faces; the gap of separated shapes is a bound as for two boxes."""
    kinds = (Shape.MESH, Shape.BOX)
    placements = random_placements(kinds, 52)
    ours, theirs = contacts(kinds, placements), references(kinds, placements, PLACEMENTS)
    gap, touches = min_gaps(ours)[:PLACEMENTS], theirs.in_contact
    assert 50 < touches.sum() < PLACEMENTS - 50 and (touches == (gap < 0.0)).all()
    margin = EDGE_MARGIN * placements.size[1][:PLACEMENTS].sum(axis=1)
    assert (np.abs(gap - theirs.distance) < margin + SINGLE)[touches].all()
    assert np.quantile(np.abs(gap - theirs.distance)[touches], 0.9) < SINGLE
    # at most the margin below the true distance, unless nothing is above the box's face
    several = is_present(ours)[:PLACEMENTS].sum(axis=1) > 1
    assert (gap > theirs.distance - margin - SINGLE)[~touches & several].all()


@pytest.fixture(scope="module")
def box_hull_placements():
    """A box-shaped hull and a box, in generic placements."""
    placements = random_placements((Shape.MESH, Shape.BOX), 53)
    return replace(placements, data=(AXIS_ALIGNED[Shape.MESH], None))


def test_hull_of_a_box_against_boxes_agrees_with_box_box(box_hull_placements):
    size = np.broadcast_to(np.abs(AXIS_ALIGNED[Shape.MESH][0]), (BATCH, 3))
    as_box = replace(box_hull_placements, size=(size, box_hull_placements.size[1]), data=(None, None))
    hull, box = contacts((Shape.MESH, Shape.BOX), box_hull_placements), contacts((Shape.BOX, Shape.BOX), as_box)
    gap = min_gaps(box)
    # separated and not above each other, both return a bound, but not the same one
    overlaps = gap < 0.0
    assert overlaps.sum() > 500
    same = overlaps & (np.abs(at_min_gap(hull, hull.normal) - at_min_gap(box, box.normal)).max(axis=1) < 1e-6)
    assert np.abs(min_gaps(hull) - gap)[same].max() < 1e-9 and same.sum() > 0.97 * overlaps.sum()
    assert np.abs(min_gaps(hull) - gap)[overlaps].max() < EDGE_MARGIN


@pytest.mark.parametrize("yaw", [0.0, 0.3, np.pi / 8, np.pi / 4])
@pytest.mark.parametrize("small", [True, False])
def test_manifold_of_hull_on_box_agrees_with_stacked_boxes(yaw, small):
    half = np.array([0.1, 0.2, 0.1] if small else [0.6, 0.7, 0.1])
    at, rotvec = [0.05, -0.02, 0.199], [0.0, 0.0, yaw]
    base = placed_shape("box", [0.3, 0.25, 0.1])
    hull = contacts_of_pair(hull_box, placed_shape("mesh", [1, 1, 1], at, rotvec, CUBE * half, CUBE_FACES), base)
    box = contacts_of_pair(box_box, placed_shape("box", half, at, rotvec), base)
    assert is_present(hull).all() and is_present(box).all()
    assert hull.gap == pytest.approx([-0.001] * 4)
    # the same four points, in any order
    distances = np.linalg.norm(hull.on_first[:, None] - box.on_first[None], axis=-1)
    if yaw == 0.0 or small or yaw == pytest.approx(0.3):
        assert distances.min(axis=1).max() < 1e-9 and sorted(distances.argmin(axis=1)) == [0, 1, 2, 3]
    assert (np.abs(hull.on_second) <= [0.3 + 1e-9, 0.25 + 1e-9, 0.1 + 1e-9]).all()


def test_a_box_on_a_face_of_a_hull():
    """The hull's face is the smaller one and tilted, so the normal is its own."""
    tilt = 0.2
    wedge = placed_shape("mesh", [1, 1, 1], rotvec=[tilt, 0.0, 0.0], data=CUBE * 0.1, faces=CUBE_FACES)
    up = wedge.X_WG.R[:, 2]
    plate = placed_shape("box", [0.5, 0.5, 0.02], at=up * 0.119, rotvec=[tilt, 0.0, 0.0])
    result = contacts_of_pair(hull_box, wedge, plate)
    assert is_present(result).all() and result.gap == pytest.approx([-0.001] * 4)
    assert np.allclose(result.normal, -up)
    assert np.allclose(np.sort(np.abs((result.on_first @ wedge.X_WG.R)[:, :2]), axis=None), 0.1)


@pytest.mark.parametrize("aside", [0.0, 0.25])
def test_hull_edge_across_a_box_edge(aside):
    bar = placed_shape(
        "mesh",
        [1, 1, 1],
        [0.0, aside, 0.2 * np.sqrt(0.5) - 0.01],
        [np.pi / 4, 0, 0],
        CUBE * [0.5, 0.1, 0.1],
        CUBE_FACES,
    )
    other = placed_shape("box", [0.1, 0.5, 0.1], [0.02, 0.0, -0.1 * np.sqrt(2.0)], [0.0, np.pi / 4, 0.0])
    result = contacts_of_pair(hull_box, bar, other)
    assert is_present(result).tolist() == [True, False, False, False]
    assert result.gap[0] == pytest.approx(-0.01) and np.allclose(result.normal[0], [0.0, 0.0, 1.0])
    assert np.allclose(result.on_second[0], [0.02, aside, 0.0])


def test_hull_of_a_box_against_spheres_agrees_with_sphere_box():
    size = np.abs(AXIS_ALIGNED[Shape.MESH][0])
    placements = random_placements((Shape.MESH, Shape.SPHERE), 54)
    placements = replace(placements, data=(AXIS_ALIGNED[Shape.MESH], None))
    hull = contacts((Shape.MESH, Shape.SPHERE), placements)
    as_box = replace(placements.swap(), size=(placements.size[1], np.broadcast_to(size, (BATCH, 3))), data=(None, None))
    box = contacts((Shape.SPHERE, Shape.BOX), as_box)
    assert np.abs(hull.gap - box.gap).max() < 1e-12
    assert np.abs(hull.normal + box.normal).max() < 1e-9
    assert np.abs(hull.on_first - box.on_second).max() < 1e-9


@pytest.mark.parametrize("height", [1e-3, 1e-9, 1e-13, 0.0, -1e-13, -1e-9, -1e-3])
def test_direction_near_a_face_is_its_normal(height):
    hull = placed_shape("mesh", [1, 1, 1], data=CUBE * 0.1, faces=CUBE_FACES)
    distance, outward, nearest = jax.jit(hull_distance)(hull, np.array([0.03, -0.02, 0.1 + height]))
    assert float(distance) == pytest.approx(height, abs=1e-16)
    assert np.allclose(outward, [0.0, 0.0, 1.0], atol=1e-12) and np.allclose(nearest, [0.03, -0.02, 0.1])


def test_degenerate_triangles_are_ignored():
    faces = (*CUBE_FACES, (0, 0, 1), (2, 2, 2))
    hull = placed_shape("mesh", [1, 1, 1], data=CUBE * 0.1, faces=faces)
    result = contacts_of_pair(hull_sphere, hull, placed_shape("sphere", [0.02], at=[0.0, 0.0, 0.05]))
    assert result.gap == pytest.approx([-0.07])
    box = contacts_of_pair(hull_box, hull, placed_shape("box", [0.3, 0.3, 0.1], at=[0.0, 0.0, -0.199]))
    assert is_present(box).all() and box.gap == pytest.approx([-0.001] * 4)

"""Convex hulls: MuJoCo, and the hull of a box against what the box itself does."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from hybridsim.contact.collision.box_box import EDGE_ADVANTAGE, box_box
from hybridsim.contact.collision.hull import hull_box, hull_distance, hull_sphere
from hybridsim.model.geometry import Shape
from support.contact_pairs import (
    BATCH,
    CUBE,
    CUBE_FACES,
    STRAIGHT,
    at_lowest,
    contacts,
    lowest,
    one,
    present,
    random_scene,
    shape,
)
from support.mujoco_pairs import references

PLACEMENTS = 250
SINGLE = 1e-6
"""MuJoCo keeps meshes in single precision."""


def test_spheres_as_in_mujoco():
    kinds = (Shape.MESH, Shape.SPHERE)
    scene = random_scene(kinds, 51)
    ours, theirs = contacts(kinds, scene), references(kinds, scene, PLACEMENTS)
    gap = lowest(ours)[:PLACEMENTS]
    touches = theirs.touches
    assert 50 < touches.sum() < PLACEMENTS - 50 and (touches == (gap < 0.0)).all()
    assert np.abs(gap - theirs.distance)[~touches].max() < SINGLE
    assert np.abs(gap - theirs.depth)[touches].max() < SINGLE
    assert np.abs(ours.normal[:PLACEMENTS, 0] - theirs.normal)[touches].max() < 1e-5


def test_boxes_as_in_mujoco():
    """Depths are exact up to the preference for faces; apart, the gap is a bound as for two boxes."""
    kinds = (Shape.MESH, Shape.BOX)
    scene = random_scene(kinds, 52)
    ours, theirs = contacts(kinds, scene), references(kinds, scene, PLACEMENTS)
    gap, touches = lowest(ours)[:PLACEMENTS], theirs.touches
    assert 50 < touches.sum() < PLACEMENTS - 50 and (touches == (gap < 0.0)).all()
    margin = EDGE_ADVANTAGE * scene.size[1][:PLACEMENTS].sum(axis=1)
    assert (np.abs(gap - theirs.distance) < margin + SINGLE)[touches].all()
    assert np.quantile(np.abs(gap - theirs.distance)[touches], 0.9) < SINGLE
    # never more than a margin below the true distance, unless nothing is above the box's face
    several = present(ours)[:PLACEMENTS].sum(axis=1) > 1
    assert (gap > theirs.distance - margin - SINGLE)[~touches & several].all()


@pytest.fixture(scope="module")
def straight_scene():
    """A hull that is a box, and a box, generically placed."""
    scene = random_scene((Shape.MESH, Shape.BOX), 53)
    return replace(scene, data=(STRAIGHT[Shape.MESH], None))


def test_the_hull_of_a_box_meets_boxes_as_the_box_does(straight_scene):
    size = np.broadcast_to(np.abs(STRAIGHT[Shape.MESH][0]), (BATCH, 3))
    as_box = replace(straight_scene, size=(size, straight_scene.size[1]), data=(None, None))
    hull, box = contacts((Shape.MESH, Shape.BOX), straight_scene), contacts((Shape.BOX, Shape.BOX), as_box)
    gap = lowest(box)
    # apart and not above each other, both give a bound, but not the same one
    overlaps = gap < 0.0
    assert overlaps.sum() > 500
    same = overlaps & (np.abs(at_lowest(hull, hull.normal) - at_lowest(box, box.normal)).max(axis=1) < 1e-6)
    assert np.abs(lowest(hull) - gap)[same].max() < 1e-9 and same.sum() > 0.97 * overlaps.sum()
    assert np.abs(lowest(hull) - gap)[overlaps].max() < EDGE_ADVANTAGE


@pytest.mark.parametrize("yaw", [0.0, 0.3, np.pi / 8, np.pi / 4])
@pytest.mark.parametrize("small", [True, False])
def test_stacks_of_hull_and_box_share_the_points_of_stacked_boxes(yaw, small):
    half = np.array([0.1, 0.2, 0.1] if small else [0.6, 0.7, 0.1])
    at, rotvec = [0.05, -0.02, 0.199], [0.0, 0.0, yaw]
    base = shape("box", [0.3, 0.25, 0.1])
    hull = one(hull_box, shape("mesh", [1, 1, 1], at, rotvec, CUBE * half, CUBE_FACES), base)
    box = one(box_box, shape("box", half, at, rotvec), base)
    assert present(hull).all() and present(box).all()
    assert hull.gap == pytest.approx([-0.001] * 4)
    # the same four places, in whatever order
    apart = np.linalg.norm(hull.on_first[:, None] - box.on_first[None], axis=-1)
    if yaw == 0.0 or small or yaw == pytest.approx(0.3):
        assert apart.min(axis=1).max() < 1e-9 and sorted(apart.argmin(axis=1)) == [0, 1, 2, 3]
    assert (np.abs(hull.on_second) <= [0.3 + 1e-9, 0.25 + 1e-9, 0.1 + 1e-9]).all()


def test_a_box_stands_on_a_face_of_a_hull():
    """The hull's face is the smaller one and tilted, so its normal counts."""
    tilt = 0.2
    wedge = shape("mesh", [1, 1, 1], rotvec=[tilt, 0.0, 0.0], data=CUBE * 0.1, faces=CUBE_FACES)
    up = wedge.X_WG.R[:, 2]
    plate = shape("box", [0.5, 0.5, 0.02], at=up * 0.119, rotvec=[tilt, 0.0, 0.0])
    found = one(hull_box, wedge, plate)
    assert present(found).all() and found.gap == pytest.approx([-0.001] * 4)
    assert np.allclose(found.normal, -up)
    assert np.allclose(np.sort(np.abs((found.on_first @ wedge.X_WG.R)[:, :2]), axis=None), 0.1)


@pytest.mark.parametrize("aside", [0.0, 0.25])
def test_hull_edge_across_a_box_edge(aside):
    bar = shape(
        "mesh",
        [1, 1, 1],
        [0.0, aside, 0.2 * np.sqrt(0.5) - 0.01],
        [np.pi / 4, 0, 0],
        CUBE * [0.5, 0.1, 0.1],
        CUBE_FACES,
    )
    other = shape("box", [0.1, 0.5, 0.1], [0.02, 0.0, -0.1 * np.sqrt(2.0)], [0.0, np.pi / 4, 0.0])
    found = one(hull_box, bar, other)
    assert present(found).tolist() == [True, False, False, False]
    assert found.gap[0] == pytest.approx(-0.01) and np.allclose(found.normal[0], [0.0, 0.0, 1.0])
    assert np.allclose(found.on_second[0], [0.02, aside, 0.0])


def test_spheres_meet_the_hull_of_a_box_as_they_meet_the_box():
    size = np.abs(STRAIGHT[Shape.MESH][0])
    scene = random_scene((Shape.MESH, Shape.SPHERE), 54)
    scene = replace(scene, data=(STRAIGHT[Shape.MESH], None))
    hull = contacts((Shape.MESH, Shape.SPHERE), scene)
    as_box = replace(scene.swapped(), size=(scene.size[1], np.broadcast_to(size, (BATCH, 3))), data=(None, None))
    box = contacts((Shape.SPHERE, Shape.BOX), as_box)
    assert np.abs(hull.gap - box.gap).max() < 1e-12
    assert np.abs(hull.normal + box.normal).max() < 1e-9
    assert np.abs(hull.on_first - box.on_second).max() < 1e-9


@pytest.mark.parametrize("height", [1e-3, 1e-9, 1e-13, 0.0, -1e-13, -1e-9, -1e-3])
def test_direction_next_to_a_face_is_its_normal(height):
    hull = shape("mesh", [1, 1, 1], data=CUBE * 0.1, faces=CUBE_FACES)
    distance, away, nearest = jax.jit(hull_distance)(hull, np.array([0.03, -0.02, 0.1 + height]))
    assert float(distance) == pytest.approx(height, abs=1e-16)
    assert np.allclose(away, [0.0, 0.0, 1.0], atol=1e-12) and np.allclose(nearest, [0.03, -0.02, 0.1])


def test_triangles_without_area_do_not_count():
    faces = (*CUBE_FACES, (0, 0, 1), (2, 2, 2))
    hull = shape("mesh", [1, 1, 1], data=CUBE * 0.1, faces=faces)
    found = one(hull_sphere, hull, shape("sphere", [0.02], at=[0.0, 0.0, 0.05]))
    assert found.gap == pytest.approx([-0.07])
    box = one(hull_box, hull, shape("box", [0.3, 0.3, 0.1], at=[0.0, 0.0, -0.199]))
    assert present(box).all() and box.gap == pytest.approx([-0.001] * 4)

"""Spheres and capsules against boxes: MuJoCo, samples of the axis, and capsules that lie on faces and edges."""

import jax
import numpy as np
import pytest

from hybridsim.contact.collision.box import (
    box_distance,
    capsule_box,
    clip_to_face,
    nearest_parameter_to_box,
    sphere_box,
)
from hybridsim.model.geometry import Shape
from support.contact_pairs import contacts, contacts_of_pair, is_present, min_gaps, placed_shape, random_placements
from support.mujoco_pairs import references

PLACEMENTS = 300
BOX = placed_shape("box", [0.5, 0.3, 0.2])
SIZE = np.array([0.5, 0.3, 0.2])


def test_spheres_as_in_mujoco():
    kinds = (Shape.SPHERE, Shape.BOX)
    placements = random_placements(kinds, 31)
    ours, theirs = contacts(kinds, placements), references(kinds, placements, PLACEMENTS)
    gap, touches = min_gaps(ours)[:PLACEMENTS], theirs.in_contact
    assert 50 < touches.sum() < PLACEMENTS - 50 and (touches == (gap < 0.0)).all()
    assert np.abs(gap - theirs.distance)[~touches].max() < 1e-12
    assert np.abs(gap - theirs.depth)[touches].max() < 1e-12
    assert np.abs(ours.normal[:PLACEMENTS, 0] - theirs.normal)[touches].max() < 1e-12
    middle = 0.5 * (ours.on_first + ours.on_second)[:PLACEMENTS, 0]
    assert np.abs(middle - theirs.position)[touches].max() < 1e-12


def _axis_separations(placements):
    """Gap of a capsule's axis and a box along the best separating axis, negative for an overlap."""
    R_box, half = placements.R[1], placements.size[1]
    middle = np.einsum("nji,nj->ni", R_box, placements.p[0] - placements.p[1])
    along = np.einsum("nji,nj->ni", R_box, placements.R[0][:, :, 2]) * placements.size[0][:, 1:2]
    crosses = np.cross(np.eye(3)[None], along[:, None])
    crosses = crosses / np.linalg.norm(crosses, axis=-1, keepdims=True)
    across = np.abs(np.einsum("nki,ni->nk", crosses, middle)) - np.einsum("nki,ni->nk", np.abs(crosses), half)
    return np.concatenate([np.abs(middle) - half - np.abs(along), across], axis=1).max(axis=1)


def test_capsules_as_in_mujoco():
    """For axes outside the box; MuJoCo resolves deeper penetrations differently."""
    kinds = (Shape.CAPSULE, Shape.BOX)
    placements = random_placements(kinds, 32)
    theirs = references(kinds, placements, PLACEMENTS)
    gap, outside = min_gaps(contacts(kinds, placements))[:PLACEMENTS], _axis_separations(placements)[:PLACEMENTS] > 0.0
    assert outside.sum() > 150 and (outside & (gap < 0.0)).sum() > 50
    assert np.abs(gap - theirs.distance)[outside].max() < 1e-8
    assert (theirs.in_contact == (gap < 0.0)).all()


def test_depth_of_axes_inside_a_box_is_bounded():
    kinds = (Shape.CAPSULE, Shape.BOX)
    placements = random_placements(kinds, 34)
    separation, radius = _axis_separations(placements), placements.size[0][:, 0]
    gap, inside = min_gaps(contacts(kinds, placements)), separation < 0.0
    assert inside.sum() > 200
    assert (gap <= -radius + 1e-12)[inside].all() and (gap >= separation - radius - 1e-12)[inside].all()


def test_nearest_point_of_a_segment_against_samples():
    rng = np.random.default_rng(33)
    half, t = np.array([0.5, 0.3, 0.2]), np.linspace(-1.0, 1.0, 2001)
    middle, along = rng.normal(size=(500, 3)) * 0.6, rng.normal(size=(500, 3)) * 0.5
    nearest, _ = jax.jit(jax.vmap(lambda m, a: nearest_parameter_to_box(m, a, half)))(middle, along)

    def distance(t):
        p = middle[:, None] + t[..., None] * along[:, None]
        return np.linalg.norm(p - np.clip(p, -half, half), axis=-1)

    result, sampled = distance(np.asarray(nearest)[:, None])[:, 0], distance(t[None]).min(axis=1)
    assert (np.abs(nearest) <= 1.0 + 1e-12).all()
    assert (result <= sampled + 1e-12).all() and (result >= sampled - 1e-3).all()


@pytest.mark.parametrize(
    ("p", "distance", "normal"),
    [
        ([0.7, 0.0, 0.0], 0.2, [1.0, 0.0, 0.0]),
        ([0.5, 0.0, 0.0], 0.0, [1.0, 0.0, 0.0]),
        ([-0.5, 0.3, 0.0], 0.0, [-1.0, 0.0, 0.0]),
        ([0.0, 0.0, 0.0], -0.2, [0.0, 0.0, 1.0]),
        ([0.0, -0.25, -0.1], -0.05, [0.0, -1.0, 0.0]),
        ([0.53, -0.34, 0.1], 0.05, [0.6, -0.8, 0.0]),
    ],
)
def test_distance_of_points(p, distance, normal):
    result, direction, surface = jax.jit(box_distance)(np.array(p), SIZE)
    assert float(result) == pytest.approx(distance) and np.allclose(direction, normal)
    assert np.allclose(np.array(p) - result * direction, surface)


def test_sphere_in_the_middle_is_pushed_through_the_nearest_face():
    result = contacts_of_pair(sphere_box, placed_shape("sphere", [0.1]), BOX)
    assert result.gap == pytest.approx([-0.3]) and np.allclose(np.abs(result.normal), [[0.0, 0.0, 1.0]])


def _lying_capsule(half_length, *, at=(0.0, 0.0), tilt=0.0, height=0.29):
    """A capsule along x with radius 0.1 over a box whose top is at 0.2."""
    return placed_shape("capsule", [0.1, half_length], at=[*at, height], rotvec=[0.0, np.pi / 2 + tilt, 0.0])


@pytest.mark.parametrize("tilt", [0.0, 1e-12, -1e-12, 1e-9, 1e-6, -1e-6, 1e-3, -1e-3])
@pytest.mark.parametrize(
    ("half_length", "at", "ends"), [(0.2, 0.0, (-0.2, 0.2)), (0.9, 0.0, (-0.5, 0.5)), (0.4, 0.3, (-0.1, 0.5))]
)
def test_capsule_on_a_face_rests_on_two_points(tilt, half_length, at, ends):
    """As far apart as capsule and face allow, even with a small tilt."""
    result = contacts_of_pair(capsule_box, _lying_capsule(half_length, at=(at, 0.1), tilt=tilt), BOX)
    assert is_present(result).all()
    assert np.allclose(np.sort(result.on_second[:, 0]), ends, atol=2e-4)
    assert np.allclose(result.gap, -0.01, atol=2e-3) and np.allclose(result.normal, [0.0, 0.0, 1.0], atol=2e-3)


def test_capsule_along_an_edge_rests_on_two_points():
    diagonal = np.array([0.0, np.sqrt(0.5), np.sqrt(0.5)])
    at = np.array([0.0, 0.3, 0.2]) + 0.09 * diagonal
    result = contacts_of_pair(
        capsule_box, placed_shape("capsule", [0.1, 0.7], at=at, rotvec=[0.0, np.pi / 2, 0.0]), BOX
    )
    assert is_present(result).all() and np.allclose(result.gap, -0.01)
    assert np.allclose(np.sort(result.on_second[:, 0]), [-0.5, 0.5])
    assert np.allclose(result.normal, diagonal)


def test_capsule_across_an_edge_has_one_contact():
    at = np.array([0.5, 0.0, 0.2]) + 0.09 * np.array([np.sqrt(0.5), 0.0, np.sqrt(0.5)])
    result = contacts_of_pair(
        capsule_box, placed_shape("capsule", [0.1, 0.4], at=at, rotvec=[0.0, 0.75 * np.pi, 0.0]), BOX
    )
    exists = is_present(result)
    assert exists.sum() == 1 and result.gap[exists] == pytest.approx([-0.01])


def test_capsule_on_its_end_has_one_contact():
    result = contacts_of_pair(capsule_box, placed_shape("capsule", [0.1, 0.4], at=[0.0, 0.0, 0.69]), BOX)
    assert result.gap[0] == pytest.approx(-0.01) and not is_present(result)[1]


def test_capsule_without_length_is_a_sphere():
    capsule = contacts_of_pair(
        capsule_box, placed_shape("capsule", [0.1, 0.0], at=[0.55, 0.1, 0.3], rotvec=[0.3, 0.2, 0.1]), BOX
    )
    sphere = contacts_of_pair(sphere_box, placed_shape("sphere", [0.1], at=[0.55, 0.1, 0.3]), BOX)
    assert capsule.gap[0] == pytest.approx(sphere.gap[0]) and not is_present(capsule)[1]
    assert np.allclose(capsule.normal[0], sphere.normal[0])


def test_clipping_of_segments_to_a_rectangle():
    start = np.array([[-2.0, 0.0], [0.0, 0.0], [-2.0, 2.0], [0.0, 1.0], [0.0, 1.1]])
    end = np.array([[2.0, 0.0], [0.5, 0.5], [2.0, 2.1], [2.0, 1.0], [2.0, 1.1]])
    times, is_crossing = jax.jit(clip_to_face)(start, end - start, np.array([1.0, 1.0]))
    assert np.asarray(is_crossing).T.tolist() == [
        [True, True],
        [False, False],
        [False, False],
        [False, True],
        [False, False],
    ]
    assert np.allclose(np.asarray(times)[:, 0], [0.25, 0.75]) and float(times[1, 3]) == pytest.approx(0.5)

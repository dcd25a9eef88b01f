"""Spheres and capsules against MuJoCo, and parallel and crossing capsules."""

import jax
import numpy as np
import pytest

from hybridsim.contact.collision.sphere_capsule import (
    capsule_capsule,
    nearest_points_on_segments,
    sphere_capsule,
    sphere_sphere,
)
from hybridsim.model.geometry import Shape
from support.contact_pairs import contacts, contacts_of_pair, min_gaps, placed_shape, random_placements
from support.mujoco_pairs import references

PAIRS = [(Shape.SPHERE, Shape.SPHERE), (Shape.SPHERE, Shape.CAPSULE), (Shape.CAPSULE, Shape.CAPSULE)]
PLACEMENTS = 300


@pytest.mark.parametrize("kinds", PAIRS, ids="_".join)
def test_mujoco_agrees(kinds):
    placements = random_placements(kinds, 11)
    ours, theirs = contacts(kinds, placements), references(kinds, placements, PLACEMENTS)
    gap = min_gaps(ours)[:PLACEMENTS]
    is_open, touches = gap > 0.0, theirs.in_contact
    assert 50 < is_open.sum() < PLACEMENTS - 50 and (touches == ~is_open).all()
    assert np.abs(gap - theirs.distance)[is_open].max() < 1e-12
    assert np.abs(gap - theirs.depth)[touches].max() < 1e-12
    # where two capsules cross at a small angle, blending with the parallel case shifts the points slightly
    middle = 0.5 * (ours.on_first + ours.on_second)[:PLACEMENTS, 0]
    assert np.abs(ours.normal[:PLACEMENTS, 0] - theirs.normal)[touches].max() < 1e-8
    assert np.abs(middle - theirs.position)[touches].max() < 1e-8


def test_concentric_balls_have_a_normal():
    result = contacts_of_pair(
        sphere_sphere, placed_shape("sphere", [0.2]), placed_shape("sphere", [0.1], rotvec=[np.pi / 2, 0, 0])
    )
    assert result.gap == pytest.approx([-0.3])
    assert np.allclose(result.normal, [[0.0, -1.0, 0.0]])  # the second one's z


@pytest.mark.parametrize("along", [0.0, 0.3, -0.3])
def test_ball_on_the_axis_of_a_capsule_has_a_normal(along):
    result = contacts_of_pair(
        sphere_capsule, placed_shape("sphere", [0.2], at=[0, 0, along]), placed_shape("capsule", [0.1, 0.4])
    )
    assert result.gap == pytest.approx([-0.3])
    assert np.allclose(result.normal, [[1.0, 0.0, 0.0]])


def test_intersecting_axes_separate_along_their_common_normal():
    lying = placed_shape("capsule", [0.1, 0.5], rotvec=[0.0, np.pi / 2, 0.0])
    result = contacts_of_pair(capsule_capsule, lying, placed_shape("capsule", [0.1, 0.5], rotvec=[0.0, 0.3, 0.0]))
    assert result.gap == pytest.approx([-0.2])
    assert np.abs(result.normal) == pytest.approx(np.array([[0.0, 1.0, 0.0]]))


@pytest.mark.parametrize("shift", [0.0, 0.25, -0.5])
@pytest.mark.parametrize("flip", [0.0, np.pi])
def test_contact_of_parallel_capsules_is_in_the_middle_of_their_common_section(shift, flip):
    a = placed_shape("capsule", [0.1, 0.5], at=[0.15, 0.0, shift], rotvec=[flip, 0.0, 0.0])
    b = placed_shape("capsule", [0.1, 0.3])
    result = contacts_of_pair(capsule_capsule, a, b)
    low, high = max(shift - 0.5, -0.3), min(shift + 0.5, 0.3)
    assert result.gap == pytest.approx([-0.05])
    assert np.allclose(result.on_second, [[0.1, 0.0, 0.5 * (low + high)]], atol=1e-5)


def test_collinear_capsules_have_contact_at_their_ends():
    result = contacts_of_pair(
        capsule_capsule, placed_shape("capsule", [0.1, 0.2], at=[0.0, 0.0, 0.65]), placed_shape("capsule", [0.1, 0.3])
    )
    assert result.gap == pytest.approx([-0.05])
    assert np.allclose(result.on_second, [[0.0, 0.0, 0.4]])


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 0.1])
def test_nearly_parallel_segments(angle):
    """Against brute force over samples; the error is at most that of blending with the parallel case."""
    p, u, q, v = (np.array(x, dtype=float) for x in ([0.02, 0.1, 0.05], [0, 0, 1], [0, 0, 0], [0, 0, 1]))
    v = np.array([0.3 * np.sin(angle), np.sin(angle) * np.sqrt(0.91), np.cos(angle)])
    near = jax.jit(nearest_points_on_segments)(p, u, np.array(0.4), q, v, np.array(0.3))
    s, t = np.linspace(-0.4, 0.4, 801), np.linspace(-0.3, 0.3, 601)
    offsets = (p + s[:, None] * u)[:, None] - (q + t[:, None] * v)[None]
    expected = np.sqrt((offsets**2).sum(axis=-1)).min()
    assert np.linalg.norm(near[0] - near[1]) == pytest.approx(expected, abs=1e-5)

"""Contact frames, contact points and row selection."""

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hybridsim.contact.collision.contact_points import (
    ContactPoints,
    contacts_from_first,
    contacts_from_second,
    cycle_axes,
    pick,
    sphere_contacts,
    tangents,
)
from support.contact_pairs import placed_shape


@pytest.mark.parametrize(
    "normal",
    [[0, 0, 1], [0, 0, -1], [1, 0, 0], [0, -1, 0], [0.6, 0.0, 0.8], [0.6, 0.0, -0.8], [0.6, 0.8, -0.0]],
    ids=str,
)
def test_tangents_form_a_right_handed_frame(normal):
    normal = np.array(normal, dtype=float)
    frame = np.stack([normal, *jax.jit(tangents)(normal)])
    assert np.allclose(frame @ frame.T, np.eye(3)) and np.linalg.det(frame) == pytest.approx(1.0)


def test_tangents_are_x_and_y_on_level_ground():
    first, second = tangents(np.array([0.0, 0.0, 1.0]))
    assert np.allclose(first, [1.0, 0.0, 0.0]) and np.allclose(second, [0.0, 1.0, 0.0])


def test_tangents_have_finite_derivatives_everywhere():
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(500, 3))
    normals = np.concatenate([normals / np.linalg.norm(normals, axis=1, keepdims=True), np.eye(3), -np.eye(3)])
    derivative = jax.jit(jax.vmap(jax.jacrev(lambda n: jax.numpy.stack(tangents(n)))))(normals)
    assert np.isfinite(derivative).all() and np.abs(derivative).max() < 5.0


def test_points_follow_from_either_side():
    gap, normal, on = np.array([0.5]), np.array([[0.0, 0.0, 1.0]]), np.array([[1.0, 2.0, 3.0]])
    first, second = contacts_from_first(gap, normal, on), contacts_from_second(gap, normal, on)
    assert np.allclose(first.on_second, [[1.0, 2.0, 2.5]]) and np.allclose(second.on_first, [[1.0, 2.0, 3.5]])
    swapped: ContactPoints = first.swap()
    assert np.allclose(swapped.on_first - swapped.on_second, swapped.gap[:, None] * swapped.normal)


def test_balls():
    result = sphere_contacts(np.array([[0.0, 0.0, 1.0]]), np.array(0.3), np.zeros((1, 3)), np.array(0.4), np.ones(3))
    assert np.allclose(result.gap, [0.3]) and np.allclose(result.normal, [[0.0, 0.0, 1.0]])
    assert np.allclose(result.on_first, [[0.0, 0.0, 0.7]]) and np.allclose(result.on_second, [[0.0, 0.0, 0.4]])


def test_cycled_axes_put_an_axis_first():
    rows = np.array([10.0, 20.0, 30.0])
    assert [cycle_axes(rows, np.array(k)).tolist() for k in range(3)] == [[10, 20, 30], [20, 30, 10], [30, 10, 20]]
    for k in range(3):
        assert cycle_axes(cycle_axes(rows, np.array(k)), np.array((3 - k) % 3)).tolist() == rows.tolist()


def test_pick():
    assert pick(np.arange(12.0).reshape(4, 3), np.array(2)).tolist() == [6.0, 7.0, 8.0]


def test_points_to_the_world_and_back():
    placed = placed_shape("box", [1.0], at=[1.0, 2.0, 3.0], rotvec=[0.3, -0.2, 0.9])
    points = np.random.default_rng(0).normal(size=(5, 3))
    world = placed.to_world(points)
    rotated = Rotation.from_rotvec([0.3, -0.2, 0.9]).apply(points)
    assert np.allclose(world, rotated + np.array([[1.0, 2.0, 3.0]]))
    assert np.allclose(placed.to_shape(world), points)

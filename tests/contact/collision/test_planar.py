"""Outlines against round tips: dense samples, symmetry, and the height of the contact."""

import jax
import numpy as np
import pytest

from hybridsim.contact.collision.planar import ellipse_cylinder, ellipse_distance, polygon_cylinder, polygon_distance
from support.contact_pairs import ARROW, contacts_of_pair, placed_shape

rng = np.random.default_rng(61)
POINTS = rng.normal(size=(400, 2)) * 0.3


def _is_inside(outline, points):
    """Inside test by the winding number of the outline about a point."""
    rays = outline[None] - points[:, None]
    following = np.roll(rays, -1, axis=1)
    sine = rays[..., 0] * following[..., 1] - rays[..., 1] * following[..., 0]
    return np.abs(np.arctan2(sine, (rays * following).sum(axis=-1)).sum(axis=1)) > np.pi


def _nearest(samples, points):
    distances = np.linalg.norm(points[:, None] - samples[None], axis=-1)
    return distances.min(axis=1), samples[distances.argmin(axis=1)]


def _fits(distance, sampled, spacing: float) -> bool:
    """Whether distances agree with those to the nearest samples, which are at most half a spacing off."""
    return bool((distance <= sampled + 1e-12).all() and (sampled <= np.hypot(distance, spacing) + 1e-12).all())


@pytest.mark.parametrize(
    "outline",
    [ARROW, ARROW[::-1], 0.2 * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1.0]])],
    ids=["arrow", "clockwise", "square"],
)
def test_polygon_against_samples(outline):
    samples = np.concatenate(
        [
            a + np.linspace(0, 1, 1000)[:, None] * (b - a)
            for a, b in zip(outline, np.roll(outline, -1, axis=0), strict=True)
        ]
    )
    sampled, nearest = _nearest(samples, POINTS)
    distance, outward = jax.jit(jax.vmap(lambda p: polygon_distance(outline, p)))(POINTS)
    inside = _is_inside(outline, POINTS)
    assert 40 < inside.sum() < 360 and ((distance < 0.0) == inside).all()
    assert _fits(np.abs(distance), sampled, 0.6 / 1000)
    assert np.allclose(np.linalg.norm(outward, axis=1), 1.0)
    assert np.abs(POINTS - np.asarray(distance)[:, None] * outward - nearest).max() < 1e-3


@pytest.mark.parametrize("half", [(0.3, 0.2), (0.1, 0.5), (0.25, 0.25), (0.4, 0.01)], ids=str)
def test_ellipse_against_samples(half):
    angle = np.linspace(0.0, 2.0 * np.pi, 20001)
    samples = np.array(half) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    sampled, _ = _nearest(samples, POINTS[:150])
    distance, outward = jax.jit(jax.vmap(lambda p: ellipse_distance(np.array(half), p)))(POINTS[:150])
    inside = ((POINTS[:150] / np.array(half)) ** 2).sum(axis=1) < 1.0
    assert ((distance < 0.0) == inside).all()
    assert _fits(np.abs(distance), sampled, 2.0 * np.pi * max(half) / 20000)
    assert np.allclose(np.linalg.norm(outward, axis=1), 1.0)
    on_outline = POINTS[:150] - np.asarray(distance)[:, None] * np.asarray(outward)
    assert np.abs(((on_outline / np.array(half)) ** 2).sum(axis=1) - 1.0).max() < 1e-9


@pytest.mark.parametrize("p", [[0.5, 0.0], [-0.5, 0.0], [0.0, 0.5], [0.0, -0.5], [0.0, 0.1], [0.25, 0.0]], ids=str)
def test_ellipse_has_derivatives_on_its_axes(p):
    """A tip that pushes along an axis, where quadrants meet: the derivative must be continuous."""
    half, step = np.array([0.3, 0.2]), 1e-5
    f = jax.jit(lambda p: jax.numpy.concatenate([x.reshape(-1) for x in ellipse_distance(half, p)]))
    derivative = jax.jit(jax.jacfwd(f))(np.array(p))
    difference = np.stack(
        [(f(np.array(p) + step * e) - f(np.array(p) - step * e)) / (2.0 * step) for e in np.eye(2)], axis=1
    )
    across = 1 if p[1] == 0.0 else 0
    assert np.allclose(derivative, difference, atol=1e-6)
    assert abs(derivative[1 + across, across]) > 0.1  # the normal rotates


def test_nearest_outline_point_of_the_centre_of_an_ellipse_is_on_the_minor_axis():
    distance, outward = jax.jit(ellipse_distance)(np.array([0.3, 0.2]), np.zeros(2))
    assert float(distance) == pytest.approx(-0.2) and np.allclose(np.abs(outward), [0.0, 1.0])


@pytest.mark.parametrize("p", [[0.2, 0.05], [0.2, 0.2], [0.0, -0.2], [0.2, -0.2]], ids=str)
def test_point_on_a_polygon(p):
    """On an edge the derivative of the distance is the edge's normal."""
    outline = 0.2 * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1.0]])
    distance, outward = jax.jit(lambda p: polygon_distance(outline, p))(np.array(p))
    gradient = jax.jit(jax.grad(lambda p: polygon_distance(outline, p)[0]))(np.array(p))
    assert float(distance) == pytest.approx(0.0, abs=1e-15)
    assert np.allclose(gradient, outward) and np.abs(outward).max() == pytest.approx(1.0)


def _tip(z=0.0, half=0.05, x=0.35):
    return placed_shape("cylinder", [0.06, half], at=[x, 0.0, z])


@pytest.mark.parametrize(
    ("z", "half", "height"),
    [
        (0.0, 0.05, 0.0),
        (0.0, 0.01, 0.0),
        (0.04, 0.05, 0.005),
        (0.025, 0.01, 0.0175),
        (-0.04, 0.05, -0.005),
        (1.0, 0.05, 0.02),
    ],
)
def test_contact_is_at_the_middle_of_the_common_heights(z, half, height):
    """A prism from -0.02 to 0.02; with the tip entirely above it, contact is at its rim."""
    ellipse = placed_shape("ellipse", [0.3, 0.2, 0.02])
    result = contacts_of_pair(ellipse_cylinder, ellipse, _tip(z, half))
    assert result.gap == pytest.approx([-0.01]) and np.allclose(result.normal, [[-1.0, 0.0, 0.0]])
    assert np.allclose(result.on_first, [[0.3, 0.0, height]]) and np.allclose(result.on_second, [[0.29, 0.0, height]])


def test_square_prism_is_pushed_like_a_box():
    square = np.pad(0.3 * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1.0]]), ((0, 0), (0, 1)))
    result = contacts_of_pair(polygon_cylinder, placed_shape("polygon", [0, 0, 0.02], data=square), _tip(x=-0.35))
    assert result.gap == pytest.approx([-0.01]) and np.allclose(result.normal, [[1.0, 0.0, 0.0]])
    assert np.allclose(result.on_first, [[-0.3, 0.0, 0.0]])

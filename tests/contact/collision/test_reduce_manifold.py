"""Reduction to four points: corners of quadrilaterals, always the lowest point, and no duplicates."""

import jax
import numpy as np
import pytest

from hybridsim.contact.collision.reduce_manifold import GAP_WEIGHT, reduce_manifold
from support.polygons import area, hull_corners


def _select(flat, heights=None, exists=None):
    n = len(flat)
    heights = np.zeros(n) if heights is None else np.asarray(heights, dtype=float)
    exists = np.ones(n, dtype=bool) if exists is None else np.asarray(exists)
    chosen, is_valid = jax.jit(reduce_manifold)(np.asarray(flat, dtype=float), heights, exists)
    return np.asarray(chosen)[np.asarray(is_valid)]


@pytest.mark.parametrize("seed", range(5))
def test_corners_of_quadrilaterals_among_points_inside(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        angle = np.sort(rng.uniform(0.0, 2.0 * np.pi, size=4))
        corners = np.stack([np.cos(angle), np.sin(angle)], axis=1) * rng.uniform(0.05, 2.0, size=2)
        weights = rng.dirichlet(np.ones(4), size=12)
        flat = np.concatenate([weights @ corners, corners])
        # unaffected by rounding and a slight tilt
        heights = flat @ rng.normal(size=2) * rng.choice([0.0, 1e-14, 1e-6])
        assert sorted(_select(flat, heights)) == [12, 13, 14, 15]


def test_selected_points_span_most_of_a_polygon():
    for n in (5, 6, 8, 12):
        angle = 2.0 * np.pi * np.arange(n) / n + 0.1
        corners = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        chosen = _select(corners)
        assert len(chosen) == 4 and area(hull_corners(corners[chosen])) > 0.55 * area(corners)


def test_the_lowest_point_is_first():
    rng = np.random.default_rng(0)
    for _ in range(50):
        flat, heights = rng.normal(size=(16, 2)), rng.normal(size=16)
        exists = rng.random(16) < 0.7
        chosen = _select(flat, heights, exists)
        assert chosen[0] == np.where(exists, heights, np.inf).argmin()
        assert len(set(chosen)) == len(chosen) and exists[chosen].all()


def test_high_points_are_dropped():
    flat = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert _select(flat, [0.0, 1.0, 1.0, 1.0]).tolist() == [0]
    assert sorted(_select(flat, [0.0, 0.0, 1.0, 1.0])) == [0, 1]
    assert sorted(_select(flat, np.array([0.0, 0.0, 0.4, 0.4]) / GAP_WEIGHT)) == [0, 1, 2, 3]


def test_coincident_points_count_once():
    assert len(_select(np.zeros((6, 2)))) == 1
    assert len(_select(np.repeat([[0.0, 0.0], [1.0, 0.0], [0.3, 2.0]], 4, axis=0))) == 3
    assert len(_select(np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]))) == 2


def test_no_points():
    assert _select(np.zeros((3, 2)), exists=[False] * 3).tolist() == []

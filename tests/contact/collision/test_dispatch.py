"""Every routine: unit normals, consistent points and gaps, frame invariance, symmetry, derivatives, and no NaN."""

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hybridsim.contact.collision.contact_points import ContactPoints
from hybridsim.contact.collision.dispatch import ROUTINES
from hybridsim.model.geometry import Shape
from support.contact_pairs import (
    BATCH,
    Placements,
    degenerate_placements,
    evaluate,
    is_present,
    random_deltas,
    random_placements,
    zero_deltas,
)

QUICK = [
    (Shape.SPHERE, Shape.CAPSULE),
    (Shape.CAPSULE, Shape.BOX),
    (Shape.BOX, Shape.BOX),
    (Shape.BOX, Shape.PLANE),
    (Shape.MESH, Shape.PLANE),
    (Shape.SPHERE, Shape.HEIGHTFIELD),
    (Shape.POLYGON, Shape.CYLINDER),
]
"""One of every kind of routine; compiling the checks of all takes minutes."""
KINDS = [pytest.param(k, id="_".join(k), marks=[] if k in QUICK else [pytest.mark.slow]) for k in ROUTINES]


@pytest.mark.parametrize("kinds", KINDS)
def test_routine(kinds):
    """All checks of a pair of shapes in one test, since compilation takes longer than the checks."""
    _check_consistency(kinds, _contacts(kinds, random_placements(kinds, 1)), 1e-12)
    _check_frame_invariance(kinds)
    if kinds[0] is kinds[1]:
        _check_swap(kinds)
    _check_derivatives(kinds)
    _check_degenerate_placements(kinds)


def _contacts(kinds, placements: Placements) -> ContactPoints:
    return jax.tree.map(np.asarray, evaluate(kinds, placements)[0])


def _check_consistency(kinds, points: ContactPoints, tolerance: float):
    """Normals are unit vectors, and points are consistent with the gap."""
    exists = is_present(points)
    # only laterally separated boxes and hulls have none
    assert exists.any(axis=1).mean() > (0.3 if kinds[1] is Shape.BOX else 1.0 - 1e-9), "placements without any contact"
    assert np.abs(np.linalg.norm(points.normal, axis=-1) - 1.0).max() < tolerance
    error = points.on_first - points.on_second - points.gap[..., None] * points.normal
    assert np.abs(error[exists]).max() < tolerance


def _check_frame_invariance(kinds):
    """Contacts move with the shapes."""
    placements = random_placements(kinds, 2)
    R, p = Rotation.from_rotvec([0.3, -1.2, 0.7]).as_matrix(), np.array([0.4, -2.0, 1.0])
    before, after = _contacts(kinds, placements), _contacts(kinds, placements.transform(R, p))
    assert np.abs(before.gap - after.gap).max() < 1e-12
    assert np.abs(before.normal @ R.T - after.normal).max() < 1e-11
    for name in ("on_first", "on_second"):
        assert np.abs(getattr(before, name) @ R.T + p - getattr(after, name)).max() < 1e-11


def _check_swap(kinds):
    """Swapped shapes have opposite contacts, in any order.

    Boxes with nearly equal gaps along a face of either are an exception: the first box is preferred.
    """
    placements = random_placements(kinds, 3)
    one, other = _contacts(kinds, placements), _contacts(kinds, placements.swap())
    order = np.lexsort(np.moveaxis(np.round(one.on_first, 7), -1, 0), axis=-1)
    other_order = np.lexsort(np.moveaxis(np.round(other.on_second, 7), -1, 0), axis=-1)
    take = np.arange(BATCH)[:, None]
    exists = is_present(one)[take, order]
    alike = (exists == is_present(other)[take, other_order]).all(axis=1)
    alike &= (np.abs(one.gap[take, order] - other.gap[take, other_order]) < 1e-7).all(axis=1, where=exists)
    assert alike.mean() > (0.97 if kinds == (Shape.BOX, Shape.BOX) else 1.0 - 1e-9)
    exists &= alike[:, None]
    for mine, theirs, sign in (("gap", "gap", 1.0), ("normal", "normal", -1.0), ("on_first", "on_second", 1.0)):
        difference = getattr(one, mine)[take, order] - sign * getattr(other, theirs)[take, other_order]
        assert np.abs(difference[exists]).max() < 1e-7


def _check_derivatives(kinds):
    """Forward mode against central differences, reverse mode against forward mode.

    Contacts have jumps and kinks where the features in contact change. A placement may differ from the central
    difference only near such a point, where the one-sided differences differ as well.
    """
    placements, step = random_placements(kinds, 4), 1e-6
    direction = random_deltas(kinds, 5)
    value, tangents, cotangents, weights = evaluate(kinds, placements, direction=direction)
    exists = is_present(value)
    at = {k: _values(evaluate(kinds, placements, _scale(direction, k * step))[0]) for k in (-2, -1, 0, 1, 2)}
    central = (8.0 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12.0 * step)
    forward, backward = (at[2] - at[0]) / (2.0 * step), (at[0] - at[-2]) / (2.0 * step)
    scale = 1.0 + np.abs(_values(tangents) * exists[..., None]).max(axis=(1, 2))
    # rounding of the difference is 1e-16/step, for coordinates of up to some metres
    wrong = (np.abs(_values(tangents) - central) * exists[..., None]).max(axis=(1, 2)) > 1e-7 * scale**2
    has_kink = (np.abs(forward - backward) * exists[..., None]).max(axis=(1, 2)) > 1e-4 * scale**2
    assert not (wrong & ~has_kink).any(), f"{(wrong & ~has_kink).sum()} derivatives are wrong"
    assert has_kink.mean() < 0.01

    by_forward, by_reverse = _dot(tangents, weights), _dot(cotangents, direction)
    size = _dot(jax.tree.map(np.abs, tangents), jax.tree.map(np.abs, weights))
    assert (np.abs(by_forward - by_reverse) / (1.0 + size)).max() < 1e-10


def _values(points: ContactPoints) -> np.ndarray:
    """Gaps, normals and points of every placement, concatenated."""
    parts = [np.asarray(points.gap)[..., None], points.normal, points.on_first, points.on_second]
    return np.concatenate([np.asarray(part) for part in parts], axis=-1)


def _scale(delta, factor: float):
    return jax.tree.map(lambda x: factor * x, delta)


def _dot(one, other) -> np.ndarray:
    """Scalar product of two trees, for every placement."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return np.sum([np.sum(np.asarray(a * b).reshape(BATCH, -1), axis=1) for a, b in pairs], axis=0)


def _check_degenerate_placements(kinds):
    """Contacts and derivatives are finite for coincident features."""
    for seed in (6, 7):
        placements = degenerate_placements(kinds, seed)
        value, tangents, cotangents, _ = evaluate(kinds, placements, zero_deltas(kinds), random_deltas(kinds, seed))
        for what, tree in (("contacts", value), ("forward", tangents), ("reverse", cotangents)):
            bad = sum((~np.isfinite(np.asarray(x))).reshape(BATCH, -1).any(axis=1) for x in jax.tree.leaves(tree))
            assert not bad.any(), f"{what}: {(bad > 0).sum()} placements, the first at index {bad.argmax()}"
        _check_consistency(kinds, jax.tree.map(np.asarray, value), 1e-9)

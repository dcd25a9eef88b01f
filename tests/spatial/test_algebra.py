"""Poses, motion and force vectors and inertias against dense 6×6 algebra."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hybridsim.spatial.inertia import ArticulatedInertia, RigidInertia, articulated_inertia, rigid_inertia
from hybridsim.spatial.rotation import skew
from hybridsim.spatial.transform import Pose

RNG = np.random.default_rng(0)
V, W, F = RNG.normal(size=(3, 6))
COM, ENTRIES = RNG.normal(size=3), np.array([2.0, 2.5, 3.0, 0.1, -0.2, 0.3])


@pytest.fixture
def X_AB():
    return Pose(Rotation.random(random_state=1).as_matrix(), RNG.normal(size=3))


def dense_motion(X: Pose) -> np.ndarray:
    """6×6 motion transform from B to A."""
    R, p = np.asarray(X.R), np.asarray(skew(X.p))
    return np.block([[R, np.zeros((3, 3))], [p @ R, R]])


def dense_inertia(inertia) -> np.ndarray:
    blocks = inertia if isinstance(inertia, ArticulatedInertia) else articulated_inertia(inertia)
    return np.block([[np.asarray(blocks.I), np.asarray(blocks.H)], [np.asarray(blocks.H).T, np.asarray(blocks.M)]])


def dense_cross(V) -> np.ndarray:
    w, v = np.asarray(skew(V[:3])), np.asarray(skew(V[3:]))
    return np.block([[w, np.zeros((3, 3))], [v, w]])


def test_transforms_of_motion_and_force_vectors(X_AB):
    Ad = dense_motion(X_AB)
    np.testing.assert_allclose(X_AB.motion(V), Ad @ V, rtol=1e-13)
    np.testing.assert_allclose(X_AB.inv_motion(V), np.linalg.solve(Ad, V), rtol=1e-12)
    np.testing.assert_allclose(X_AB.force(F), np.linalg.solve(Ad.T, F), rtol=1e-12)
    assert float(X_AB.motion(V) @ X_AB.force(F)) == pytest.approx(float(V @ F), rel=1e-13)


def test_poses_compose_and_invert(X_AB):
    X_BC = Pose(Rotation.random(random_state=2).as_matrix(), RNG.normal(size=3))
    p_C = RNG.normal(size=3)
    np.testing.assert_allclose((X_AB @ X_BC).point(p_C), X_AB.point(X_BC.point(p_C)), rtol=1e-13)
    np.testing.assert_allclose(X_AB.inv_point(X_AB.point(p_C)), p_C, rtol=1e-13)
    np.testing.assert_allclose(dense_motion(X_AB.inverse()), np.linalg.inv(dense_motion(X_AB)), atol=1e-13)
    offset = 0.1 * RNG.normal(size=6)
    displaced = X_AB.displace(offset)
    np.testing.assert_allclose(displaced.p - X_AB.p, offset[:3], atol=1e-15)
    np.testing.assert_allclose(X_AB.R.T @ displaced.R, Rotation.from_rotvec(offset[3:]).as_matrix(), atol=1e-14)


def test_rigid_inertia(X_AB):
    inertia = rigid_inertia(jnp.asarray(1.7), COM, ENTRIES)
    dense = dense_inertia(inertia)
    np.testing.assert_allclose(inertia * V, dense @ V, rtol=1e-13)
    angular = np.concatenate([V[:3], np.zeros(3)])
    np.testing.assert_allclose(inertia.bias_wrench(V[:3]), -dense_cross(angular).T @ dense @ angular, rtol=1e-13)
    # parallel-axis theorem: the angular block minus that of a point mass is the inertia about the centre of mass
    about_com = dense[:3, :3] + 1.7 * np.asarray(skew(COM)) @ np.asarray(skew(COM))
    np.testing.assert_allclose(np.diag(about_com), ENTRIES[:3], rtol=1e-13)
    Ad_inv = np.linalg.inv(dense_motion(X_AB))
    np.testing.assert_allclose(
        dense_inertia(inertia.transform(X_AB)), Ad_inv.T @ dense @ Ad_inv, rtol=1e-11, atol=1e-12
    )
    both = inertia + inertia.transform(X_AB)
    assert isinstance(both, RigidInertia) and float(both.mass) == pytest.approx(3.4)


def test_articulated_inertia(X_AB):
    A = RNG.normal(size=(6, 6))
    dense = A @ A.T + np.eye(6)
    inertia = ArticulatedInertia(dense[:3, :3], dense[:3, 3:], dense[3:, 3:])
    np.testing.assert_allclose(inertia * V, dense @ V, rtol=1e-12)
    np.testing.assert_allclose(inertia.solve(F), np.linalg.solve(dense, F), rtol=1e-11)
    Ad_inv = np.linalg.inv(dense_motion(X_AB))
    np.testing.assert_allclose(
        dense_inertia(inertia.transform(X_AB)), Ad_inv.T @ dense @ Ad_inv, rtol=1e-11, atol=1e-12
    )
    U = RNG.normal(size=(2, 6))
    np.testing.assert_allclose(
        dense_inertia(inertia.subtract_outer(U, 0.1 * U)), dense - 0.1 * U.T @ U, rtol=1e-12, atol=1e-13
    )

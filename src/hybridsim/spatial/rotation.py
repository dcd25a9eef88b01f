"""Rotations: matrices `R_AB`, quaternions (w first), rotation vectors.

`R_AB` maps coordinates in B to coordinates in A. A rotation vector is axis times angle.
"""

import jax.numpy as jnp
import numpy as np

from hybridsim.core.numerics import SMALL_SINE, cross, one_minus_cos_over_square, safe_norm, sinc_of_square
from hybridsim.core.types import Mat3, Quaternion, Scalar, Vec3


def skew(a: Vec3) -> Mat3:
    """Matrix of the cross product: `skew(a) @ b = a × b`."""
    zero = jnp.zeros_like(a[0])
    return jnp.stack([zero, -a[2], a[1], a[2], zero, -a[0], -a[1], a[0], zero]).reshape(3, 3)


def matrix_from_axis_angle(axis: Vec3, angle: Scalar) -> Mat3:
    """Rotation matrix for an angle [rad] about a unit vector (Rodrigues)."""
    s, c = jnp.sin(angle), jnp.cos(angle)
    return c * np.eye(3) + s * skew(axis) + (1.0 - c) * jnp.outer(axis, axis)


def matrix_from_rotation_vector(rotation_vector: Vec3) -> Mat3:
    """Rotation matrix of a rotation vector [rad]; smooth at zero."""
    K = skew(rotation_vector)
    angle_squared = jnp.sum(rotation_vector * rotation_vector)
    return np.eye(3) + sinc_of_square(angle_squared) * K + one_minus_cos_over_square(angle_squared) * (K @ K)


def rotation_vector_from_matrix(R: Mat3) -> Vec3:
    """Rotation vector [rad] of a rotation matrix, with norm at most π."""
    return quaternion_log(quaternion_from_matrix(R))


def matrix_from_quaternion(quat: Quaternion) -> Mat3:
    """Rotation matrix of a unit quaternion."""
    w, v = quat[0], quat[1:]
    K = skew(v)
    return np.eye(3) + 2.0 * (w * K + K @ K)


def quaternion_from_matrix(R: Mat3) -> Quaternion:
    """Unit quaternion of a rotation matrix, by the best-conditioned of four formulas (Shepperd)."""
    # row i is the quaternion times four times its entry i; the row with the largest diagonal entry is the most accurate
    xx, yy, zz = R[0, 0], R[1, 1], R[2, 2]
    x, y, z = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    xy, xz, yz = R[1, 0] + R[0, 1], R[0, 2] + R[2, 0], R[2, 1] + R[1, 2]
    candidates = jnp.stack(
        [
            jnp.stack([1.0 + xx + yy + zz, x, y, z]),
            jnp.stack([x, 1.0 + xx - yy - zz, xy, xz]),
            jnp.stack([y, xy, 1.0 - xx + yy - zz, yz]),
            jnp.stack([z, xz, yz, 1.0 - xx - yy + zz]),
        ]
    )
    best = jnp.argmax(jnp.diagonal(candidates))
    quat = candidates[best]
    return quat / safe_norm(quat)


def quaternion_product(a: Quaternion, b: Quaternion) -> Quaternion:
    """Hamilton product: rotation by `b`, then by `a`."""
    w = a[:1] * b[:1] - jnp.sum(a[1:] * b[1:], keepdims=True)
    v = a[0] * b[1:] + b[0] * a[1:] + cross(a[1:], b[1:])
    return jnp.concatenate([w, v])


def quaternion_conjugate(quat: Quaternion) -> Quaternion:
    """Inverse of a unit quaternion."""
    return jnp.concatenate([quat[:1], -quat[1:]])


def quaternion_exp(rotation_vector: Vec3) -> Quaternion:
    """Unit quaternion of a rotation vector [rad]; smooth at zero, and exactly (1, 0, 0, 0) there."""
    half_angle_squared = 0.25 * jnp.sum(rotation_vector * rotation_vector)
    s = sinc_of_square(half_angle_squared)
    # cos(a) = 1 - a² (1 - cos a)/a², smooth at a = 0, where the derivative of cos(sqrt(a²)) is NaN
    w = 1.0 - half_angle_squared * one_minus_cos_over_square(half_angle_squared)
    return jnp.concatenate([w[None], 0.5 * s * rotation_vector])


def quaternion_log(quat: Quaternion) -> Vec3:
    """Rotation vector [rad] of a unit quaternion, with norm at most π."""
    quat = jnp.where(quat[0] < 0.0, -quat, quat)
    w, v = quat[0], quat[1:]
    sin_half = safe_norm(v)
    small = sin_half < SMALL_SINE
    # where the series is not selected, w may be zero; the gradient of the unselected series would then be NaN
    w_safe = jnp.where(small, w, 1.0)
    ratio = sin_half / w_safe
    series = (2.0 / w_safe) * (1.0 - ratio**2 * (1.0 / 3.0 - ratio**2 * (1.0 / 5.0 - ratio**2 / 7.0)))
    quotient = 2.0 * jnp.arctan2(sin_half, w) / jnp.where(small, 1.0, sin_half)
    return jnp.where(small, series, quotient) * v


def normalize_quaternion(quat: Quaternion) -> Quaternion:
    """Scale a quaternion to unit length."""
    return quat / jnp.sqrt(jnp.sum(quat * quat))


def quaternion_rate(quat: Quaternion, omega_B: Vec3) -> Quaternion:
    """Time derivative of the quaternion of R_AB for an angular velocity expressed in B [rad/s]."""
    return 0.5 * quaternion_product(quat, jnp.concatenate([np.zeros(1), omega_B]))

"""Six-dimensional motion and force vectors, angular part first (Featherstone 2008, chapter 2)."""

import jax.numpy as jnp

from hybridsim.core.numerics import cross
from hybridsim.core.types import Twist, Wrench


def cross_motion(V: Twist, W: Twist) -> Twist:
    """`V × W`: rate of the motion vector W carried along with velocity V."""
    angular = cross(V[:3], W[:3])
    linear = cross(V[:3], W[3:]) + cross(V[3:], W[:3])
    return jnp.concatenate([angular, linear])


def cross_force(V: Twist, F: Wrench) -> Wrench:
    """`V ×* F`: rate of the force vector F carried along with velocity V."""
    torque = cross(V[:3], F[:3]) + cross(V[3:], F[3:])
    force = cross(V[:3], F[3:])
    return jnp.concatenate([torque, force])

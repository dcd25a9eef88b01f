"""Taps on contact forces and impulses."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray, Scalar
from hybridsim.taps.taps import Taps

Normal = Float[AnyArray, " nc"]
Tangential = Float[AnyArray, "nc 2"]


def tap_impulses(
    normal: Normal, friction: Callable[[Normal], Tangential], dt: Scalar, taps: Taps, *, gap: Normal | None = None
) -> Float[AnyArray, "nc 3"]:
    """Tapped impulses on the first body of every contact, in the contact's frame [N·s].

    Grafts act only on closed contacts, those with a normal force or a penetration: the output of a network for open
    contacts has no effect.

    Args:
        normal: normal forces [N].
        friction: friction forces [N] as a function of the tapped normal forces.
        dt: time step [s].
        taps: taps of the step.
        gap: gaps [m]; if given, penetrating contacts without a normal force count as closed too.
    """
    if not normal.shape[0]:
        return np.zeros((0, 3))
    is_closed = None
    if taps.is_active:
        is_closed = normal > 0.0 if gap is None else (normal > 0.0) | (gap <= 0.0)
    normal = taps("contact.normal_force", normal, rows=is_closed)
    tangential = taps("contact.friction_force", friction(normal), rows=is_closed)
    return taps("contact.impulse", dt * jnp.concatenate([normal[:, None], tangential], axis=1), rows=is_closed)

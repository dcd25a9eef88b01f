"""Taps on contact forces and impulses."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray, Scalar
from hybridsim.taps.taps import Taps

PerContact = Float[AnyArray, " nc"]
Tangential = Float[AnyArray, "nc 2"]


def tap_impulses(
    normal_force: PerContact,
    friction: Callable[[PerContact], Tangential],
    dt: Scalar,
    taps: Taps,
    *,
    gap: PerContact | None = None,
) -> Float[AnyArray, "nc 3"]:
    """Tapped impulses on the first body of every contact, in the contact's frame [N·s].

    Grafts act only on closed contacts, those with a normal force or a penetration: the output of a network for open
    contacts has no effect.

    Args:
        normal_force: normal forces [N].
        friction: friction forces [N] as a function of the tapped normal forces.
        dt: time step [s].
        taps: taps of the step.
        gap: gaps [m]; if given, penetrating contacts without a normal force count as closed too.
    """
    if not normal_force.shape[0]:
        return np.zeros((0, 3))
    is_closed = None
    if taps.is_active:
        is_closed = normal_force > 0.0 if gap is None else (normal_force > 0.0) | (gap <= 0.0)
    normal_force = taps("contact.normal_force", normal_force, rows=is_closed)
    tangential = taps("contact.friction_force", friction(normal_force), rows=is_closed)
    return taps("contact.impulse", dt * jnp.concatenate([normal_force[:, None], tangential], axis=1), rows=is_closed)

"""Forces at contacts on their way through the taps."""

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
    """Impulses on the first body of every contact, in the contact's frame [N·s].

    Grafts act where bodies touch, and nowhere else: where they press, or overlap. What a network says about contacts
    that are not there has no effect.

    Args:
        normal: normal forces [N].
        friction: friction forces [N] from these, as the taps left them.
        dt: time step [s].
        taps: of the step.
        gap: distances [m], if a contact that does not press may touch.
    """
    if not normal.shape[0]:
        return np.zeros((0, 3))
    touches = None
    if taps.is_active:
        touches = normal > 0.0 if gap is None else (normal > 0.0) | (gap <= 0.0)
    normal = taps("contact.normal_force", normal, rows=touches)
    tangential = taps("contact.friction_force", friction(normal), rows=touches)
    return taps("contact.impulse", dt * jnp.concatenate([normal[:, None], tangential], axis=1), rows=touches)

"""Forces at contacts on their way through the taps."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray, Scalar
from hybridsim.taps.taps import Taps

Normal = Float[AnyArray, " nc"]
Tangential = Float[AnyArray, "nc 2"]


def tapped_impulses(
    normal: Normal, friction: Callable[[Normal], Tangential], dt: Scalar, taps: Taps
) -> Float[AnyArray, "nc 3"]:
    """Impulses on the first body of every contact, in the contact's frame [N·s].

    Args:
        normal: normal forces [N].
        friction: friction forces [N] from these, as the taps left them.
        dt: time step [s].
        taps: of the step.
    """
    if not normal.shape[0]:
        return np.zeros((0, 3))
    normal = taps("contact.normal_force", normal)
    tangential = taps("contact.friction_force", friction(normal))
    return taps("contact.impulse", dt * jnp.concatenate([normal[:, None], tangential], axis=1))

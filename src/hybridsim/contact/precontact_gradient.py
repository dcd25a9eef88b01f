"""Contacts that derivatives feel before they touch (backward and forward mode; values stay what they are).

Until bodies touch, no force depends on where they are, and an optimiser is not told that moving them closer would
matter. Here the derivative of a normal force is extended beyond contact: at a gap g > 0 it is that of a closed contact
times exp(−g / reach). The idea is that of "contacts from distance" (Paulus et al. 2025), as a rule for derivatives.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Float

from hybridsim.core.types import AnyArray, Scalar

PerContact = Float[AnyArray, " nc"]


@jax.custom_jvp
def precontact_gradient(force: PerContact, gap: PerContact, stiffness: PerContact, reach: Scalar | float) -> PerContact:
    """Normal forces; their derivative has −stiffness · exp(−gap/reach) by the gap where the force is zero.

    Args:
        force: normal forces [N].
        gap: [m].
        stiffness: of a closed contact [N/m].
        reach: [m].
    """
    del gap, stiffness, reach
    return force


@precontact_gradient.defjvp
def _with_distant(primals, tangents):
    force, gap, stiffness, reach = primals
    weight = jnp.where((force == 0.0) & (gap > 0.0), jnp.exp(-jnp.maximum(gap, 0.0) / reach), 0.0)
    return force, tangents[0] - stiffness * weight * tangents[1]

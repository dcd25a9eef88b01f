"""Gradients of open contacts, in forward and reverse mode, that leave values unchanged.

The force of an open contact is zero whatever the gap, so an optimizer gets no gradient towards contact. Here the
derivative of the normal force is extended to open contacts: at a gap g > 0 it is that of a closed contact times
exp(−g / reach). The idea is that of "contacts from distance" (Paulus et al. 2025), as a derivative rule.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Float

from hybridsim.core.types import AnyArray, Scalar

PerContact = Float[AnyArray, " nc"]


@jax.custom_jvp
def with_precontact_gradient(
    force: PerContact, gap: PerContact, stiffness: PerContact, reach: Scalar | float
) -> PerContact:
    """Unchanged normal forces, whose derivative with respect to an open gap is −stiffness · exp(−gap/reach).

    Args:
        force: normal forces [N].
        gap: gaps [m].
        stiffness: stiffness of a closed contact [N/m].
        reach: decay length [m].
    """
    del gap, stiffness, reach
    return force


@with_precontact_gradient.defjvp
def _with_precontact_gradient_jvp(primals, tangents):
    force, gap, stiffness, reach = primals
    weight = jnp.where((force == 0.0) & (gap > 0.0), jnp.exp(-jnp.maximum(gap, 0.0) / reach), 0.0)
    return force, tangents[0] - stiffness * weight * tangents[1]

"""Link lengths as parameters.

A model stores the positions of joints, centres of mass and shapes; the length of a link is a common scale of these.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray
from hybridsim.model.model import Model
from hybridsim.model.topology import WORLD


def stretch_links(model: Model, factors: Float[AnyArray, " nb"]) -> Model:
    """Copy of the model with all positions in body b multiplied by `factors[b]`.

    These are the positions of the body's centre of mass, anchor and shapes and of the joints and frames attached to it.
    Masses, inertias and the sizes of shapes are unchanged.
    Differentiable in `factors`: with a nominal length L, `factors = length / L` makes the length a parameter.
    """

    def factor_per_element(bodies) -> AnyArray:
        on_world = np.array([body == WORLD for body in bodies], dtype=bool)
        index = np.array([max(body, 0) for body in bodies], dtype=int)
        return jnp.where(on_world, 1.0, jnp.asarray(factors)[index])[:, None]

    topology, geometry = model.topology, model.geometry

    def where(m: Model) -> tuple:
        return m.body.com, m.joint.anchor, m.joint.placement.p, m.frame_placement.p, m.geometry.placement.p

    com, anchor, placement, frames, shapes = where(model)
    body_factors = jnp.asarray(factors)[:, None]
    return eqx.tree_at(
        where,
        model,
        (
            body_factors * com,
            body_factors * anchor,
            factor_per_element(topology.parents) * placement,
            factor_per_element(topology.frame_bodies) * frames if topology.frame_names else frames,
            factor_per_element([info.body for info in geometry.infos]) * shapes if geometry.infos else shapes,
        ),
    )

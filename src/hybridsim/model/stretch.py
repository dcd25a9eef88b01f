"""Link lengths as parameters: a model whose bodies are stretched.

A model stores where joints, centres of mass and shapes sit; the length of a link is what they have in common.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray
from hybridsim.model.model import Model
from hybridsim.model.topology import WORLD


def stretched(model: Model, factors: Float[AnyArray, " nb"]) -> Model:
    """The model with every length within body b multiplied by `factors[b]`; masses and inertias stay.

    Moves the body's centre of mass, the joints and frames it carries, its anchor and its shapes. Differentiable in
    `factors`: with a nominal length L, `factors = length / L` makes the length a parameter.
    """

    def factor_of(bodies) -> AnyArray:
        on_world = np.array([body == WORLD for body in bodies], dtype=bool)
        index = np.array([max(body, 0) for body in bodies], dtype=int)
        return jnp.where(on_world, 1.0, jnp.asarray(factors)[index])[:, None]

    topology, geometry = model.topology, model.geometry

    def where(m: Model) -> tuple:
        return m.body.com, m.joint.anchor, m.joint.placement.p, m.frame_placement.p, m.geometry.placement.p

    com, anchor, placement, frames, shapes = where(model)
    own = jnp.asarray(factors)[:, None]
    return eqx.tree_at(
        where,
        model,
        (
            own * com,
            own * anchor,
            factor_of(topology.parents) * placement,
            factor_of(topology.frame_bodies) * frames if topology.frame_names else frames,
            factor_of([info.body for info in geometry.infos]) * shapes if geometry.infos else shapes,
        ),
    )

"""State of a simulation and what is given to a step; motion in the state's tangent space."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Float

from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.model import coordinates
from hybridsim.model.model import Model


class State(eqx.Module):
    """Everything that a step starts from. A batch of states carries leading axes on every field."""

    q: Float[AnyArray, "*batch nq"]
    """Joint coordinates [rad, m or quaternion]."""
    qd: Float[AnyArray, "*batch nv"]
    """Joint velocities [rad/s or m/s]."""
    t: Float[AnyArray, "*batch"]
    """Time [s]."""
    aux: dict[str, Any]
    """Memory of actuators and other parts; it advances once per step and has no tangent space."""


class Inputs(eqx.Module):
    """What the world does to the mechanism during a step; for a rollout, every field has a leading axis of steps."""

    u: Float[AnyArray, "*steps nu"]
    """Actuator commands, in the unit of each actuator."""
    wrench: Float[AnyArray, "*steps nb 6"] | None = None
    """Wrench on each body at its origin, in world axes [N·m, N]."""
    user: dict[str, Any] = eqx.field(default_factory=dict)
    """Further inputs that grafts may read as `input.<name>`."""


def as_inputs(given: Inputs | ArrayLike | None, nu: int) -> Inputs:
    """Inputs from inputs, from plain commands, or from nothing: zero commands."""
    if isinstance(given, Inputs):
        return given
    return Inputs(jnp.zeros(nu) if given is None else jnp.asarray(given))


def retract(model: Model, state: State, delta: Float[AnyArray, " n"]) -> State:
    """The state moved by a small `delta`: along the degrees of freedom, then in velocity."""
    q = coordinates.retract(model, state.q, delta[: model.nv])
    return State(q, state.qd + delta[model.nv :], state.t, state.aux)


def difference(model: Model, state: State, to: State) -> Float[AnyArray, " n"]:
    """The `delta` for which `retract(model, state, delta)` has the coordinates and velocities of `to`."""
    return jnp.concatenate([coordinates.difference(model, state.q, to.q), to.qd - state.qd])

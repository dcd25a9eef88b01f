"""State and inputs of a simulation step; displacements in the tangent space of the state."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Float

from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.model import coordinates
from hybridsim.model.model import Model


class State(eqx.Module):
    """Complete state of a simulation. A batch of states has leading axes on every field."""

    q: Float[AnyArray, "*batch nq"]
    """Joint coordinates [rad, m or quaternion]."""
    qd: Float[AnyArray, "*batch nv"]
    """Joint velocities [rad/s or m/s]."""
    t: Float[AnyArray, "*batch"]
    """Time [s]."""
    aux: dict[str, Any]
    """Internal states of actuators, contact and delays; updated once per step, not part of the tangent space."""


class Inputs(eqx.Module):
    """External inputs during a step; for a rollout, every field has a leading time axis."""

    u: Float[AnyArray, "*steps nu"]
    """Actuator commands, in the unit of each actuator."""
    wrench: Float[AnyArray, "*steps nb 6"] | None = None
    """Wrench on each body at its origin, in world axes [N·m, N]."""
    user: dict[str, Any] = eqx.field(default_factory=dict)
    """User inputs by name, which grafts may read as `input.<name>`."""


def as_inputs(inputs: Inputs | ArrayLike | None, nu: int) -> Inputs:
    """Convert commands to `Inputs`; None means zero commands."""
    if isinstance(inputs, Inputs):
        return inputs
    return Inputs(jnp.zeros(nu) if inputs is None else jnp.asarray(inputs))


def retract(model: Model, state: State, delta: Float[AnyArray, " n"]) -> State:
    """State displaced by the tangent vector `delta`, whose first half displaces the configuration, the second qd."""
    q = coordinates.retract(model, state.q, delta[: model.nv])
    return State(q, state.qd + delta[model.nv :], state.t, state.aux)


def difference(model: Model, state: State, to: State) -> Float[AnyArray, " n"]:
    """Tangent vector `delta` for which `retract(model, state, delta)` has the coordinates and velocities of `to`."""
    return jnp.concatenate([coordinates.difference(model, state.q, to.q), to.qd - state.qd])

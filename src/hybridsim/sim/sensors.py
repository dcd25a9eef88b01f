"""Sensors: readings of a simulation, one scalar per channel.

    channels = {"elbow": "joint.q[elbow]", "tip": "frame.position[tip].x", "gyro": "body.twist[arm].omega.z"}
    Sensors.from_addresses(sim, channels)

A channel reads one scalar: a quantity of the tap catalogue by its address, a coordinate of a named frame or site in the
world, `frame.position[NAME].x`, or a sum of these: the absolute angle of a second link is
`joint.q[shoulder] + joint.q[elbow]`. The reading is `gain · value + bias`: with a gain in pixels per metre, a
coordinate becomes the image coordinate of a marker. Delays are not applied here, because the dynamics are evaluated
at a single time; they are applied where a trajectory is compared with measurements.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hybridsim.core.errors import TapError
from hybridsim.core.messages import name_hint
from hybridsim.core.rows import take
from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State
from hybridsim.sim.step import observe
from hybridsim.taps.address import select

FRAME_PREFIX = "frame.position["
"""Prefix of addresses of frame positions."""
STATE_QUANTITIES = ("joint.q", "joint.qd")
KINEMATIC_QUANTITIES = ("body.pose", "body.twist")
"""Quantities that follow from kinematics alone."""


@dataclass(frozen=True)
class SensorTerm:
    """One term of a channel: an entry of a quantity, flattened row by row, and its sign."""

    quantity: str
    entry: int
    sign: float = 1.0
    """Coefficient in the channel's sum."""


class Sensors(eqx.Module):
    """Channels, each a scalar of the simulation with a gain, a bias and a delay."""

    names: tuple[str, ...] = eqx.field(static=True)
    addresses: tuple[str, ...] = eqx.field(static=True)
    """Address of each channel; for channels computed by `function`, their names."""
    terms: tuple[tuple[SensorTerm, ...], ...] = eqx.field(static=True)
    """Terms of the sum of each channel."""
    gain: Float[AnyArray, " m"]
    """Reading per unit of the quantity."""
    bias: Float[AnyArray, " m"]
    """Reading at zero."""
    delay: Float[AnyArray, " m"]
    """Delay of a reading relative to the motion [s]."""
    function: Callable[[Simulator, State, Inputs], AnyArray] | None = None
    """Function of simulator, state and inputs that computes the readings of the last channels, those without terms."""

    @classmethod
    def from_addresses(
        cls,
        sim: Simulator,
        channels: Mapping[str, str],
        *,
        gain: ArrayLike = 1.0,
        bias: ArrayLike = 0.0,
        delay: ArrayLike = 0.0,
        function: Callable[[Simulator, State, Inputs], AnyArray] | None = None,
        function_names: Sequence[str] = (),
    ) -> "Sensors":
        """Sensors of a simulator.

        Args:
            sim: the simulator.
            channels: address of the scalar that each channel reads, by the name of the channel.
            gain: reading per unit, one for all channels or one each.
            bias: reading at zero, one for all channels or one each.
            delay: delay of the reading [s], one for all channels or one each.
            function: function of simulator, state and inputs that computes the readings of further channels.
            function_names: names of the channels of `function`.
        """
        terms = tuple(_channel_terms(address, sim) for address in channels.values())
        names = (*channels, *function_names)
        if not names:
            raise TapError("sensors need at least one channel")
        if duplicates := {name for name in names if names.count(name) > 1}:
            raise TapError(f"two channels are named {sorted(duplicates)[0]!r}")
        if (function is None) != (not function_names):
            raise TapError("function and function_names must be given together")
        addresses = (*channels.values(), *function_names)
        per_channel = [np.broadcast_to(np.asarray(x, dtype=float), (len(names),)).copy() for x in (gain, bias, delay)]
        return cls(names, addresses, terms, per_channel[0], per_channel[1], per_channel[2], function)

    def read(self, sim: Simulator, state: State, inputs: Inputs) -> Float[Array, " m"]:
        """Readings of a state, without delays."""
        flat = [term for channel in self.terms for term in channel]
        needed = dict.fromkeys(term.quantity for term in flat)
        values = _quantities(sim, state, inputs, needed)
        parts = [take(values[name], [term.entry for term in flat if term.quantity == name]) for name in needed]
        order = np.argsort([k for name in needed for k, term in enumerate(flat) if term.quantity == name])
        readings = []
        if parts:
            scalars = take(jnp.concatenate(parts), order.tolist())
            readings.append(scalars if len(flat) == len(self.terms) else self._sum_matrix @ scalars)
        if self.function is not None:
            readings.append(jnp.asarray(self.function(sim, state, inputs)).reshape(-1))
        value = jnp.concatenate(readings)
        if value.shape != (len(self.names),):
            raise TapError(f"sensors return {value.shape[0]} values for {len(self.names)} channels")
        return jnp.asarray(self.gain) * value + jnp.asarray(self.bias)

    @property
    def _sum_matrix(self) -> np.ndarray:
        """Signs of all terms (columns) in the sums of the channels (rows)."""
        matrix, column = np.zeros((len(self.terms), sum(map(len, self.terms)))), 0
        for row, channel in enumerate(self.terms):
            for term in channel:
                matrix[row, column] = term.sign
                column += 1
        return matrix


def _channel_terms(address: str, sim: Simulator) -> tuple[SensorTerm, ...]:
    """Terms of a channel's address, which may be a sum."""
    terms = re.split(r"\s+([+-])\s+", address.strip())
    signs = [1.0, *(1.0 if sign == "+" else -1.0 for sign in terms[1::2])]
    return tuple(replace(_term(term, sim), sign=sign) for term, sign in zip(terms[::2], signs, strict=True))


def _term(address: str, sim: Simulator) -> SensorTerm:
    if address.startswith(FRAME_PREFIX):
        return _frame_term(address, sim)
    inputs = dict(sim.blueprint.inputs)
    selection = select(address, dict(sim.axis_names), inputs, write=False)
    if selection.lag:
        raise TapError(f"{address!r}: a sensor cannot read lagged values; give its channel a delay", address=address)
    if selection.size != 1:
        names = ", ".join(selection.row_names[:4]) + (", …" if len(selection.row_names) > 4 else "")
        component = " and one component" if selection.quantity.components else ""
        raise TapError(
            f"a channel reads one scalar, but {address!r} selects {selection.size} scalars (rows: {names}); "
            f"select one row{component}",
            address=address,
        )
    if selection.quantity.name.startswith("step.") and selection.quantity.name != "step.time":
        raise TapError(f"{address!r} is a result of the step; measure joint.q or joint.qd instead", address=address)
    width = max(len(selection.quantity.components), 1)
    component = selection.components[0] if selection.components else 0
    return SensorTerm(selection.quantity.name, selection.rows[0] * width + component)


def _frame_term(address: str, sim: Simulator) -> SensorTerm:
    """Term of `frame.position[NAME].x`."""
    name, closed, component = address[len(FRAME_PREFIX) :].partition("]")
    if not closed or component not in (".x", ".y", ".z"):
        raise TapError(f"cannot parse the address {address!r}; write frame.position[NAME].x, .y or .z", address=address)
    frames = sim.model.topology.frame_names
    if name not in frames:
        raise TapError(f"{address!r}: no frame or site is named {name!r}; {name_hint(name, frames)}", address=address)
    return SensorTerm(FRAME_PREFIX, 3 * frames.index(name) + ".x .y .z".split().index(component))


def _quantities(sim: Simulator, state: State, inputs: Inputs, names) -> dict[str, Array]:
    """Quantities by name, as flat arrays; the dynamics are evaluated only if needed."""
    values = {name: value for name, value in zip(STATE_QUANTITIES, (state.q, state.qd), strict=True) if name in names}
    missing = [name for name in names if name not in values]
    if not missing:
        return {name: jnp.asarray(value) for name, value in values.items()}
    if all(name in (*KINEMATIC_QUANTITIES, FRAME_PREFIX) for name in missing):
        kin = kinematics(sim.model, state.q, state.qd)
        if "body.pose" in missing:
            values["body.pose"] = jax.vmap(lambda X: X.coordinates())(kin.X_WB)
        values["body.twist"] = kin.V_WB_B
    else:
        values |= observe(sim, state, inputs)
    if FRAME_PREFIX in missing:
        values[FRAME_PREFIX] = _frame_positions(sim, state)
    return {name: jnp.asarray(values[name]).reshape(-1) for name in names}


def _frame_positions(sim: Simulator, state: State) -> Float[Array, "n 3"]:
    model = sim.model
    X_WB = kinematics(model, state.q, state.qd).X_WB
    p_BF = jnp.asarray(model.frame_placement.p)
    rows = []
    for k, body in enumerate(model.topology.frame_bodies):
        rows.append(p_BF[k] if body < 0 else X_WB.p[body] + X_WB.R[body] @ p_BF[k])
    return jnp.stack(rows)

"""Sensors: what is measured of a simulation, one number per channel.

    Sensors.of(sim, {"elbow": "joint.q[elbow]", "tip": "frame.position[tip].x", "gyro": "body.twist[arm].omega.z"})

A channel reads one scalar: a quantity of the catalogue of taps, by its address, a coordinate of a named frame or site
in the world, `frame.position[NAME].x`, or a sum of such: what tells the angle of a second link against the vertical
reads `joint.q[shoulder] + joint.q[elbow]`. What comes out is `gain · value + bias`: with a gain in pixels per metre, a
coordinate is what a camera sees of a marker. A channel's delay is not applied here, because an evaluation of one state
knows of no other time; who compares a motion with measurements does that.
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
"""How the address of a named frame's position begins."""
STATE_QUANTITIES = ("joint.q", "joint.qd")
KINEMATIC_QUANTITIES = ("body.pose", "body.twist")
"""Quantities that need no forces."""


@dataclass(frozen=True)
class SensorTerm:
    """Where a scalar is: an entry of a quantity, row by row."""

    quantity: str
    entry: int
    sign: float = 1.0
    """What it counts in its channel's sum."""


class Sensors(eqx.Module):
    """Channels, each a scalar of the simulation with a gain, a bias and a delay."""

    names: tuple[str, ...] = eqx.field(static=True)
    addresses: tuple[str, ...] = eqx.field(static=True)
    """What each channel measures; the name of the channel where a function does."""
    terms: tuple[tuple[SensorTerm, ...], ...] = eqx.field(static=True)
    """The scalars that each channel sums up."""
    gain: Float[AnyArray, " m"]
    """Reading per unit of the quantity."""
    bias: Float[AnyArray, " m"]
    """Reading where the quantity is zero."""
    delay: Float[AnyArray, " m"]
    """How much later than the motion a reading is [s]."""
    function: Callable[[Simulator, State, Inputs], AnyArray] | None = None
    """Measures the channels after those with places: their numbers, from a simulator, a state and inputs."""

    @classmethod
    def of(
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
            sim: what is measured.
            channels: address of the scalar that each channel reads, by the name of the channel.
            gain: reading per unit; one for all channels or one each.
            bias: reading at zero; likewise.
            delay: how late a reading is [s]; likewise.
            function: measures further channels.
            function_names: names of these.
        """
        places = tuple(_places(address, sim) for address in channels.values())
        names = (*channels, *function_names)
        if not names:
            raise TapError("sensors need at least one channel")
        if twice := {name for name in names if names.count(name) > 1}:
            raise TapError(f"two channels are named {sorted(twice)[0]!r}")
        if (function is None) != (not function_names):
            raise TapError("a function that measures needs the names of its channels, and names need a function")
        addresses = (*channels.values(), *function_names)
        each = [np.broadcast_to(np.asarray(x, dtype=float), (len(names),)).copy() for x in (gain, bias, delay)]
        return cls(names, addresses, places, each[0], each[1], each[2], function)

    def read(self, sim: Simulator, state: State, inputs: Inputs) -> Float[Array, " m"]:
        """Readings of a state, as if there were no delay."""
        flat = [place for channel in self.terms for place in channel]
        needed = dict.fromkeys(place.quantity for place in flat)
        values = _quantities(sim, state, inputs, needed)
        parts = [take(values[name], [p.entry for p in flat if p.quantity == name]) for name in needed]
        order = np.argsort([k for name in needed for k, place in enumerate(flat) if place.quantity == name])
        found = []
        if parts:
            scalars = take(jnp.concatenate(parts), order.tolist())
            found.append(scalars if len(flat) == len(self.terms) else self._sums @ scalars)
        if self.function is not None:
            found.append(jnp.asarray(self.function(sim, state, inputs)).reshape(-1))
        value = jnp.concatenate(found)
        if value.shape != (len(self.names),):
            raise TapError(f"sensors measure {value.shape[0]} numbers, but {len(self.names)} channels have names")
        return jnp.asarray(self.gain) * value + jnp.asarray(self.bias)

    @property
    def _sums(self) -> np.ndarray:
        """Channels by scalars."""
        matrix, column = np.zeros((len(self.terms), sum(map(len, self.terms)))), 0
        for row, channel in enumerate(self.terms):
            for place in channel:
                matrix[row, column] = place.sign
                column += 1
        return matrix


def _places(address: str, sim: Simulator) -> tuple[SensorTerm, ...]:
    """The scalars of a channel's address, which may be a sum."""
    terms = re.split(r"\s+([+-])\s+", address.strip())
    signs = [1.0, *(1.0 if sign == "+" else -1.0 for sign in terms[1::2])]
    return tuple(replace(_place(term, sim), sign=sign) for term, sign in zip(terms[::2], signs, strict=True))


def _place(address: str, sim: Simulator) -> SensorTerm:
    if address.startswith(FRAME_PREFIX):
        return _frame_place(address, sim)
    inputs = dict(sim.blueprint.inputs)
    selection = select(address, dict(sim.axis_names), inputs, write=False)
    if selection.past:
        raise TapError(f"{address!r}: a sensor reads the present; give its channel a delay")
    if selection.size != 1:
        names = ", ".join(selection.row_names[:4]) + (", …" if len(selection.row_names) > 4 else "")
        raise TapError(
            f"a channel measures one number, but {address!r} selects {selection.size} (of {names}); name one of them"
        )
    if selection.quantity.name.startswith("step.") and selection.quantity.name != "step.time":
        raise TapError(f"{address!r} is what a step leads to; measure joint.q or joint.qd instead")
    width = max(len(selection.quantity.components), 1)
    component = selection.components[0] if selection.components else 0
    return SensorTerm(selection.quantity.name, selection.rows[0] * width + component)


def _frame_place(address: str, sim: Simulator) -> SensorTerm:
    """The place of `frame.position[NAME].x`."""
    name, closed, component = address[len(FRAME_PREFIX) :].partition("]")
    if not closed or component not in (".x", ".y", ".z"):
        raise TapError(f"cannot read the address {address!r}; write frame.position[NAME].x, .y or .z")
    frames = sim.model.topology.frame_names
    if name not in frames:
        raise TapError(f"{address!r}: no frame or site is named {name!r}; {name_hint(name, frames)}")
    return SensorTerm(FRAME_PREFIX, 3 * frames.index(name) + ".x .y .z".split().index(component))


def _quantities(sim: Simulator, state: State, inputs: Inputs, names) -> dict[str, Array]:
    """Quantities by name, as flat arrays; no more is evaluated than they need."""
    found = {name: value for name, value in zip(STATE_QUANTITIES, (state.q, state.qd), strict=True) if name in names}
    rest = [name for name in names if name not in found]
    if not rest:
        return {name: jnp.asarray(value) for name, value in found.items()}
    if all(name in (*KINEMATIC_QUANTITIES, FRAME_PREFIX) for name in rest):
        kin = kinematics(sim.model, state.q, state.qd)
        if "body.pose" in rest:
            found["body.pose"] = jax.vmap(lambda X: X.coordinates())(kin.X_WB)
        found["body.twist"] = kin.V_WB_B
    else:
        found |= observe(sim, state, inputs)
    if FRAME_PREFIX in rest:
        found[FRAME_PREFIX] = _frame_positions(sim, state)
    return {name: jnp.asarray(found[name]).reshape(-1) for name in names}


def _frame_positions(sim: Simulator, state: State) -> Float[Array, "n 3"]:
    model = sim.model
    X_WB = kinematics(model, state.q, state.qd).X_WB
    p_BF = jnp.asarray(model.frame_placement.p)
    rows = []
    for k, body in enumerate(model.topology.frame_bodies):
        rows.append(p_BF[k] if body < 0 else X_WB.p[body] + X_WB.R[body] @ p_BF[k])
    return jnp.stack(rows)

"""Simulated readings of many windows at once, with their derivatives by parameters and starting states.

One step function serves native code and XLA: it puts the parameters θ into the simulator, reads the sensors, and takes
a step. A rollout of it over a batch of windows gives the readings before every step. Rows of numbers go in and out, as
native code has them.
"""

from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from hybridsim.core.errors import UnsupportedPrimitive
from hybridsim.identify.initial_states import InitialStates
from hybridsim.native.runtime.rollout import Rollout
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.sim import rollout_native
from hybridsim.sim.cache_key import cache_key
from hybridsim.sim.guard import RolloutCarry, guarded_step, initial_carry
from hybridsim.sim.partition import partition_simulator, runtime_cells, threads_for
from hybridsim.sim.state import Inputs

Rows = np.ndarray


class Readings(NamedTuple):
    """What the sensors said before each step."""

    y: Float[np.ndarray, "batch steps m"]
    """Readings; after them coordinates and velocities, if these are wanted."""
    ok: Bool[np.ndarray, " batch"]
    """Which windows did not diverge."""


class WindowGradient(NamedTuple):
    """Cotangents of readings, pulled back."""

    theta: Float[np.ndarray, "batch n"]
    start: Float[np.ndarray, "batch x"]


class Delays(NamedTuple):
    """Delays of the sensors for several θ."""

    steps: Float[np.ndarray, "P m"]
    """In time steps."""
    by_theta: Float[np.ndarray, "P n m"]


class WindowSimulator:
    """A setup whose free parameters are θ, ready to be simulated over windows."""

    def __init__(self, setup: Setup, space: ParameterSpace, inputs: Inputs | None = None, *, with_states: bool = False):
        """Prepare; nothing is compiled before it is needed.

        Args:
            setup: simulator and sensors with the values that stay as they are.
            space: the free ones.
            inputs: what a step is given, as an example of its form; commands alone by default.
            with_states: are coordinates and velocities wanted beside the readings?
        """
        self.setup, self.space, self.with_states = setup, space, with_states
        known, self._others = partition_simulator(setup.sim)
        sensed, self._sensing = eqx.partition(setup.sensors, eqx.is_array_like)
        self._known = (known, sensed)
        with jax.enable_x64(True):
            self._example = initial_carry(setup.sim.initial_state())
        nothing = Inputs(np.zeros(setup.sim.model.nu)) if inputs is None else inputs
        self._inputs = jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), float), nothing)

    def step(self, known: Any, theta: Any, run: RolloutCarry, inputs: Inputs) -> tuple[RolloutCarry, Any]:
        """Read the sensors, then take a step."""
        sim, sensors = eqx.combine(known[0], self._others), eqx.combine(known[1], self._sensing)
        setup = self.space.put(Setup(sim, sensors), theta)
        y = setup.sensors.read(setup.sim, run.state, inputs)
        if self.with_states:
            y = jnp.concatenate([y, run.state.q, run.state.qd])
        return guarded_step(setup.sim, run, inputs)[0], y

    @property
    def width(self) -> int:
        """Numbers that are read before each step."""
        model = self.setup.sim.model
        return len(self.setup.sensors.names) + (model.nq + model.nv if self.with_states else 0)

    @cached_property
    def rollout(self) -> Rollout:
        """The step over time, as native code."""
        with jax.enable_x64(True):
            structure = jax.tree.structure((self._known, self._example, self._inputs))
            decisive = (
                *jax.tree.leaves(self._others),
                *jax.tree.leaves(self._sensing),
                self.space.unflatten,
                self.with_states,
            )
            return Rollout(
                self.step,
                self._known,
                np.zeros(len(self.space.names)),
                self._example,
                self._inputs,
                outputs=np.zeros(self.width),
                varying=runtime_cells(self._known[0]),
                key=cache_key(structure, decisive),
            )

    @cached_property
    def starts(self) -> InitialStates:
        """Starting states as rows."""
        return InitialStates(self.setup.sim, self.rollout.forms.carry)

    @cached_property
    def by_xla(self) -> bool:
        """Does XLA do the work?"""
        backend = self.setup.sim.backend
        if backend == "xla" or (backend == "auto" and jax.default_backend() != "cpu"):
            return True
        try:
            with jax.enable_x64(True):
                self.rollout.check_supported()
        except UnsupportedPrimitive as error:
            if backend == "native":
                raise
            rollout_native.warn_once(str(error))
            return True
        return False

    def packed_inputs(self, inputs: Inputs, leading: tuple[int, ...]) -> Rows:
        """Inputs of every step of every window as rows."""
        return self.rollout.forms.inputs.pack(inputs, leading)

    def readings(self, theta: Rows, start: Rows, inputs: Rows) -> Readings:
        """Simulate windows.

        Args:
            theta: parameters, (n,) for all or (batch, n).
            start: states, (batch, x).
            inputs: of every step, (batch or 1, steps, s).
        """
        with jax.enable_x64(True):
            if self.by_xla:
                end, y = (np.asarray(x) for x in _xla_forward(self, *_shared(theta, start, inputs)))
            else:
                end, y = self.rollout.forward(
                    self._fixed, theta, start, inputs, threads=threads_for(len(start), inputs.shape[1])
                )
        return Readings(y, self._ok(end))

    def derivatives(
        self, theta: Rows, start: Rows, inputs: Rows, t_theta: Rows, t_start: Rows
    ) -> tuple[Readings, Float[np.ndarray, "batch directions steps m"]]:
        """Simulate windows, with derivatives along directions.

        Args:
            theta: as in `readings`.
            start: as in `readings`.
            inputs: as in `readings`.
            t_theta: directions in the parameters, (batch or 1, directions, n).
            t_start: directions in the starts, (batch or 1, directions, x).
        """
        with jax.enable_x64(True):
            if self.by_xla:
                given = _shared(theta, start, inputs, t_theta, t_start)
                end, y, t_y = (np.asarray(x) for x in _xla_tangents(self, *given))
            else:
                threads = threads_for(len(start) * max(t_theta.shape[1] // 4, 1), inputs.shape[1])
                end, y, _, t_y = self.rollout.tangents(
                    self._fixed, theta, start, inputs, t_theta, t_start, threads=threads
                )
        return Readings(y, self._ok(end)), t_y

    def pulled_back(self, theta: Rows, start: Rows, inputs: Rows, ct_y: Rows) -> WindowGradient:
        """Cotangents of readings (batch, steps, m) pulled back to parameters and starts."""
        ct_end = np.zeros((1, start.shape[1]))
        with jax.enable_x64(True):
            if self.by_xla:
                given = _shared(theta, start, inputs, ct_y)
                return WindowGradient(*(np.asarray(x) for x in _xla_gradient(self, *given)))
            found = self.rollout.gradient(
                self._fixed, theta, start, inputs, ct_end, ct_y, threads=threads_for(len(start), inputs.shape[1])
            )
        return WindowGradient(found.free, found.initial)

    @cached_property
    def delay_is_free(self) -> bool:
        """Do delays of sensors, counted in time steps, depend on the parameters?"""
        names = self.space.names
        late = bool(np.any(self.setup.sensors.delay))
        return any(name.startswith("sensor.delay") for name in names) or (late and "dt" in names)

    def delays(self, theta: Float[np.ndarray, "P n"]) -> Delays:
        """Delays at several θ, and their derivatives."""
        with jax.enable_x64(True):
            if not self.delay_is_free:
                steps = np.asarray(self.setup.sensors.delay) / float(self.setup.sim.dt)
                return Delays(np.tile(steps, (len(theta), 1)), np.zeros((len(theta), theta.shape[1], len(steps))))
            steps, slopes = self._late(theta)
            return Delays(np.asarray(steps), np.asarray(slopes).transpose(0, 2, 1))

    @cached_property
    def _late(self):
        def steps(theta):
            setup = self.space.put(self.setup, theta)
            return jnp.asarray(setup.sensors.delay) / setup.sim.dt

        return jax.jit(jax.vmap(lambda theta: (steps(theta), jax.jacfwd(steps)(theta))))

    @cached_property
    def _fixed(self) -> Rows:
        return self.rollout.forms.fixed.pack(self._known)

    def _ok(self, end: Rows) -> Bool[np.ndarray, " batch"]:
        return self.rollout.forms.carry.unpack(end).ok

    def _one(self, theta, start, inputs):
        """One window by XLA, from and to rows."""
        forms = self.rollout.forms

        def body(run, row):
            return self.step(self._known, theta, run, forms.inputs.unpack_traced(row))

        run, y = jax.lax.scan(jax.checkpoint(body), forms.carry.unpack_traced(start), inputs)
        return forms.carry.pack_traced(run), y


def _shared(*arrays: Rows) -> list[Any]:
    """Arrays whose leading axis of length one (or that is missing, of θ) is broadcast to the batch."""
    batch = len(arrays[1])
    theta = np.broadcast_to(arrays[0], (batch, np.shape(arrays[0])[-1]))
    return [theta, *(np.broadcast_to(a, (batch, *np.shape(a)[1:])) for a in arrays[1:])]


@eqx.filter_jit
def _xla_forward(simulated: WindowSimulator, theta, start, inputs):
    return jax.vmap(simulated._one)(theta, start, inputs)


@eqx.filter_jit
def _xla_tangents(simulated: WindowSimulator, theta, start, inputs, t_theta, t_start):
    def one(theta, start, inputs, t_theta, t_start):
        def along(t_theta, t_start):
            return jax.jvp(lambda p, x: simulated._one(p, x, inputs), (theta, start), (t_theta, t_start))

        (end, y), (_, t_y) = jax.vmap(along)(t_theta, t_start)
        return end[0], y[0], t_y

    return jax.vmap(one)(theta, start, inputs, t_theta, t_start)


@eqx.filter_jit
def _xla_gradient(simulated: WindowSimulator, theta, start, inputs, ct_y):
    def one(theta, start, inputs, ct_y):
        return jax.vjp(lambda p, x: simulated._one(p, x, inputs)[1], theta, start)[1](ct_y)

    return jax.vmap(one)(theta, start, inputs, ct_y)

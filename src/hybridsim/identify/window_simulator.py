"""Simulated sensor readings of batches of windows, with derivatives with respect to parameters and initial states.

One step function serves native code and XLA: insert the parameters θ into the simulator, read the sensors, take a step.
Its rollout over a batch of windows gives the readings before every step. Inputs and outputs are rows of cells, as in
native code.
"""

from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.identify.initial_state_layout import InitialStateLayout
from hybridsim.native.runtime.rollout import Rollout
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.sim import rollout_native
from hybridsim.sim.cache_key import cache_key
from hybridsim.sim.guard import RolloutCarry, guarded_step, initial_carry
from hybridsim.sim.partition import partition_simulator, runtime_cells, thread_count
from hybridsim.sim.state import Inputs

Rows = np.ndarray


class Readings(NamedTuple):
    """Sensor readings before each step."""

    y: Float[np.ndarray, "batch steps width"]
    """Readings, followed by coordinates and velocities if requested."""
    ok: Bool[np.ndarray, " batch"]
    """Which windows did not diverge."""


class WindowGradient(NamedTuple):
    """Cotangents of parameters and initial states."""

    theta: Float[np.ndarray, "batch n"]
    initial_state: Float[np.ndarray, "batch x"]


class Delays(NamedTuple):
    """Sensor delays at several θ."""

    steps: Float[np.ndarray, "P m"]
    """Delays in time steps."""
    gradient: Float[np.ndarray, "P n m"]
    """Derivatives of the delays with respect to θ."""


class WindowSimulator:
    """Simulates windows of a setup that is parametrized by θ."""

    def __init__(self, setup: Setup, space: ParameterSpace, inputs: Inputs | None = None, *, with_states: bool = False):
        """Partition the setup; compilation is deferred to the first call.

        Args:
            setup: simulator and sensors with the values of the fixed parameters.
            space: free parameters.
            inputs: example of the inputs of a step; commands only by default.
            with_states: append coordinates and velocities to the readings.
        """
        self.setup, self.space, self.with_states = setup, space, with_states
        sim_arrays, self._static_sim = partition_simulator(setup.sim)
        sensor_arrays, self._static_sensors = eqx.partition(setup.sensors, eqx.is_array_like)
        self._fixed_tree = (sim_arrays, sensor_arrays)
        with jax.enable_x64(True):
            self._example = initial_carry(setup.sim.initial_state())
        example = Inputs(np.zeros(setup.sim.model.nu)) if inputs is None else inputs
        self._inputs = jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), float), example)

    def step(self, fixed: Any, theta: Any, carry: RolloutCarry, inputs: Inputs) -> tuple[RolloutCarry, Any]:
        """Read the sensors, then take a step."""
        sim, sensors = eqx.combine(fixed[0], self._static_sim), eqx.combine(fixed[1], self._static_sensors)
        setup = self.space.put(Setup(sim, sensors), theta)
        y = setup.sensors.read(setup.sim, carry.state, inputs)
        if self.with_states:
            y = jnp.concatenate([y, carry.state.q, carry.state.qd])
        return guarded_step(setup.sim, carry, inputs)[0], y

    @property
    def width(self) -> int:
        """Number of outputs per step: readings, then coordinates and velocities if requested."""
        model = self.setup.sim.model
        return len(self.setup.sensors.names) + (model.nq + model.nv if self.with_states else 0)

    @cached_property
    def rollout(self) -> Rollout:
        """Rollout of the step as native code."""
        with jax.enable_x64(True):
            structure = jax.tree.structure((self._fixed_tree, self._example, self._inputs))
            static_key = (
                *jax.tree.leaves(self._static_sim),
                *jax.tree.leaves(self._static_sensors),
                self.space.theta_map,
                self.with_states,
            )
            return Rollout(
                self.step,
                self._fixed_tree,
                np.zeros(len(self.space.names)),
                self._example,
                self._inputs,
                outputs=np.zeros(self.width),
                runtime_cells=runtime_cells(self._fixed_tree[0]),
                key=cache_key(structure, static_key),
            )

    @cached_property
    def state_layout(self) -> InitialStateLayout:
        """Conversion between states, rows of cells and deltas."""
        return InitialStateLayout(self.setup.sim, self.rollout.layouts.carry)

    @cached_property
    def uses_xla(self) -> bool:
        """Whether windows are simulated by XLA instead of native code."""
        backend = self.setup.sim.backend
        if backend == "xla" or (backend == "auto" and jax.default_backend() != "cpu"):
            return True
        try:
            with jax.enable_x64(True):
                self.rollout.check_supported()
        except UnsupportedOperationError as error:
            if backend == "native":
                raise
            rollout_native.warn_once(str(error))
            return True
        return False

    def pack_inputs(self, inputs: Inputs, leading: tuple[int, ...]) -> Rows:
        """Pack the inputs of every step of every window into rows."""
        return self.rollout.layouts.inputs.pack(inputs, leading)

    def readings(self, theta: Rows, initial: Rows, inputs: Rows) -> Readings:
        """Sensor readings of a batch of windows.

        Args:
            theta: parameters, (n,) shared by the batch or (batch, n).
            initial: initial states, (batch, x).
            inputs: inputs of every step, (batch or 1, steps, i).
        """
        with jax.enable_x64(True):
            if self.uses_xla:
                end, y = (np.asarray(x) for x in _xla_forward(self, *_broadcast(theta, initial, inputs)))
            else:
                end, y = self.rollout.forward(
                    self._fixed, theta, initial, inputs, threads=thread_count(len(initial), inputs.shape[1])
                )
        return Readings(y, self._ok(end))

    def derivatives(
        self, theta: Rows, initial: Rows, inputs: Rows, t_theta: Rows, t_initial: Rows
    ) -> tuple[Readings, Float[np.ndarray, "batch directions steps width"]]:
        """Sensor readings of a batch of windows, and their tangents along directions.

        Args:
            theta: as in `readings`.
            initial: as in `readings`.
            inputs: as in `readings`.
            t_theta: tangents of the parameters, (batch or 1, directions, n).
            t_initial: tangents of the initial states, (batch or 1, directions, x).
        """
        with jax.enable_x64(True):
            if self.uses_xla:
                arrays = _broadcast(theta, initial, inputs, t_theta, t_initial)
                end, y, t_y = (np.asarray(x) for x in _xla_tangents(self, *arrays))
            else:
                threads = thread_count(len(initial) * max(t_theta.shape[1] // 4, 1), inputs.shape[1])
                end, y, _, t_y = self.rollout.tangents(
                    self._fixed, theta, initial, inputs, t_theta, t_initial, threads=threads
                )
        return Readings(y, self._ok(end)), t_y

    def pull_back(self, theta: Rows, initial: Rows, inputs: Rows, ct_y: Rows) -> WindowGradient:
        """Pull cotangents of the readings, (batch, steps, width), back to parameters and initial states."""
        ct_end = np.zeros((1, initial.shape[1]))
        with jax.enable_x64(True):
            if self.uses_xla:
                arrays = _broadcast(theta, initial, inputs, ct_y)
                return WindowGradient(*(np.asarray(x) for x in _xla_gradient(self, *arrays)))
            threads = thread_count(len(initial), inputs.shape[1])
            gradient = self.rollout.gradient(self._fixed, theta, initial, inputs, ct_end, ct_y, threads=threads)
        return WindowGradient(gradient.free, gradient.initial)

    @cached_property
    def has_free_delay(self) -> bool:
        """Whether sensor delays, in time steps, depend on θ."""
        names = self.space.names
        has_delay = bool(np.any(self.setup.sensors.delay))
        return any(name.startswith("sensor.delay") for name in names) or (has_delay and "dt" in names)

    def delays(self, theta: Float[np.ndarray, "P n"]) -> Delays:
        """Sensor delays at several θ, with their gradients."""
        with jax.enable_x64(True):
            if not self.has_free_delay:
                steps = np.asarray(self.setup.sensors.delay) / float(self.setup.sim.dt)
                return Delays(np.tile(steps, (len(theta), 1)), np.zeros((len(theta), theta.shape[1], len(steps))))
            steps, jacobian = self._delays(theta)
            return Delays(np.asarray(steps), np.asarray(jacobian).transpose(0, 2, 1))

    @cached_property
    def _delays(self):
        def steps(theta):
            setup = self.space.put(self.setup, theta)
            return jnp.asarray(setup.sensors.delay) / setup.sim.dt

        return jax.jit(jax.vmap(lambda theta: (steps(theta), jax.jacfwd(steps)(theta))))

    @cached_property
    def _fixed(self) -> Rows:
        return self.rollout.layouts.fixed.pack(self._fixed_tree)

    def _ok(self, end: Rows) -> Bool[np.ndarray, " batch"]:
        return self.rollout.layouts.carry.unpack(end).ok

    def _simulate_xla(self, theta, initial, inputs):
        """Rollout of one window by XLA, from and to rows."""
        layouts = self.rollout.layouts

        def body(carry, row):
            return self.step(self._fixed_tree, theta, carry, layouts.inputs.unpack_traced(row))

        carry, y = jax.lax.scan(jax.checkpoint(body), layouts.carry.unpack_traced(initial), inputs)
        return layouts.carry.pack_traced(carry), y


def _broadcast(*arrays: Rows) -> list[Any]:
    """Broadcast a leading axis of length one (or, of θ, a missing one) to the batch."""
    batch = len(arrays[1])
    theta = np.broadcast_to(arrays[0], (batch, np.shape(arrays[0])[-1]))
    return [theta, *(np.broadcast_to(a, (batch, *np.shape(a)[1:])) for a in arrays[1:])]


@eqx.filter_jit
def _xla_forward(simulator: WindowSimulator, theta, initial, inputs):
    return jax.vmap(simulator._simulate_xla)(theta, initial, inputs)


@eqx.filter_jit
def _xla_tangents(simulator: WindowSimulator, theta, initial, inputs, t_theta, t_initial):
    def single_window(theta, initial, inputs, t_theta, t_initial):
        def tangent(t_theta, t_initial):
            return jax.jvp(lambda p, x: simulator._simulate_xla(p, x, inputs), (theta, initial), (t_theta, t_initial))

        (end, y), (_, t_y) = jax.vmap(tangent)(t_theta, t_initial)
        return end[0], y[0], t_y

    return jax.vmap(single_window)(theta, initial, inputs, t_theta, t_initial)


@eqx.filter_jit
def _xla_gradient(simulator: WindowSimulator, theta, initial, inputs, ct_y):
    def single_window(theta, initial, inputs, ct_y):
        return jax.vjp(lambda p, x: simulator._simulate_xla(p, x, inputs)[1], theta, initial)[1](ct_y)

    return jax.vmap(single_window)(theta, initial, inputs, ct_y)

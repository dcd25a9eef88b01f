"""Actuation: from commands to joint torques, through a chain of stages.

Three chains, to show the idea:

    Actuation()                                                     the model's own actuators (the default)
    Actuation(PDServo(kp=80.0, kd=2.0), TorqueSpeedLimit(20.0, 30.0))    position servos with a motor curve
    Actuation(TransportDelay(0.008), FirstOrderLag(0.01), ModelLaw(), ForceRange())    slow electronics

The signal enters as the command `u` and leaves as the force of each actuator. Stages see the position and speed on the
actuator's side of the gear. A stage with memory (lag, delay, spring) reads it freely but writes it only in `advance`,
once per time step, so that the inner evaluations of RK4 see one and the same memory.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from hybridsim.core.numerics import clamp
from hybridsim.core.types import AnyArray, Control, Q, Qd, Scalar, Tau, as_floats
from hybridsim.model.coordinates import expand_q, expand_v, reduce_tau, scalar_positions
from hybridsim.model.model import Model

Signal = Float[AnyArray, " nu"]
PerActuator = float | Float[AnyArray, ""] | Float[AnyArray, " nu"]
"""One number for all actuators, or one each."""


class Motor(NamedTuple):
    """What a stage can see of its joint, on the actuator's side of the gear."""

    position: Signal
    """[rad or m]"""
    speed: Signal
    """[rad/s or m/s]"""


class AbstractStage(eqx.Module):
    """One element between command and force."""

    def check(self, dt: Scalar) -> None:
        """Raise if the stage cannot work with this time step [s]; not called with traced values."""

    def initial_state(self, motor: Motor) -> Any:
        """Memory at the start of a simulation, in which the actuators stand at `motor`."""
        del motor
        return None

    @abc.abstractmethod
    def output(self, model: Model, signal: Signal, motor: Motor, memory: Any, dt: Scalar) -> Signal:
        """The signal that leaves the stage."""

    def advance(self, model: Model, signal: Signal, motor: Motor, memory: Any, dt: Scalar) -> Any:
        """Memory after a time step during which `signal` entered the stage."""
        del model, signal, motor, dt
        return memory


class ControlRange(AbstractStage):
    """Clips commands to the range in the model."""

    def output(self, model, signal, motor, memory, dt):
        return clamp(signal, model.actuator.control_lower, model.actuator.control_upper)


class ModelLaw(AbstractStage):
    """The force law in the model: direct force, position or velocity servo, or anything affine."""

    def output(self, model, signal, motor, memory, dt):
        bias = model.actuator.bias
        return model.actuator.gain * signal + bias[:, 0] + bias[:, 1] * motor.position + bias[:, 2] * motor.speed


class ForceRange(AbstractStage):
    """Clips forces to the range in the model."""

    def output(self, model, signal, motor, memory, dt):
        return clamp(signal, model.actuator.force_lower, model.actuator.force_upper)


class PDServo(AbstractStage):
    """Position servo: kp (u − position) − kd speed."""

    kp: PerActuator = eqx.field(converter=as_floats)
    """Stiffness [N·m/rad or N/m]."""
    kd: PerActuator = eqx.field(converter=as_floats)
    """Damping [N·m·s/rad or N·s/m]."""

    def output(self, model, signal, motor, memory, dt):
        return self.kp * (signal - motor.position) - self.kd * motor.speed


class Saturation(AbstractStage):
    """Clips the signal to a symmetric range."""

    limit: PerActuator = eqx.field(converter=as_floats)
    """Largest magnitude, in the unit of the signal."""

    def output(self, model, signal, motor, memory, dt):
        return clamp(signal, -jnp.asarray(self.limit), self.limit)


class TorqueSpeedLimit(AbstractStage):
    """The motor's torque–speed line: full torque at standstill, none at the no-load speed; braking is not limited."""

    stall_force: PerActuator = eqx.field(converter=as_floats)
    """[N·m or N]"""
    no_load_speed: PerActuator = eqx.field(converter=as_floats)
    """[rad/s or m/s]"""

    def output(self, model, signal, motor, memory, dt):
        forward = clamp(self.stall_force * (1.0 - motor.speed / self.no_load_speed), 0.0, self.stall_force)
        backward = clamp(self.stall_force * (1.0 + motor.speed / self.no_load_speed), 0.0, self.stall_force)
        return clamp(signal, -backward, forward)


class FirstOrderLag(AbstractStage):
    """Follows the signal with a time constant, exactly for a signal that is constant within a step."""

    time_constant: PerActuator = eqx.field(converter=as_floats)
    """[s]"""

    def initial_state(self, motor):
        return np.zeros(motor.position.shape)

    def output(self, model, signal, motor, memory, dt):
        return memory

    def advance(self, model, signal, motor, memory, dt):
        # without a time constant the output is the signal, and its derivative with respect to it zero, not NaN
        instant = self.time_constant <= 0.0
        decay = jnp.where(instant, jnp.inf, dt / jnp.where(instant, 1.0, self.time_constant))
        return memory - jnp.expm1(-decay) * (signal - memory)


class TransportDelay(AbstractStage):
    """Hands the signal on after a delay; between samples it interpolates, so the delay can be fitted."""

    delay: PerActuator = eqx.field(converter=as_floats)
    """[s]"""
    samples: int = eqx.field(static=True, default=32)
    """Length of the memory in time steps. A longer delay is cut to it and has no gradient: `Simulator` refuses it."""

    def check(self, dt):
        longest = self.samples * float(np.min(dt))
        if np.min(self.delay) < 0.0 or np.max(self.delay) > longest:
            raise ValueError(
                f"a delay of {np.max(self.delay):g} s is not between 0 and {longest:g} s, the memory of {self.samples} "
                f"steps; give TransportDelay more samples"
            )

    def initial_state(self, motor):
        return np.zeros((self.samples, *motor.position.shape))

    def output(self, model, signal, motor, memory, dt):
        # age 0 is the signal that enters now, age k what entered k steps ago
        ages = jnp.concatenate([signal[None], memory])
        position = clamp(jnp.broadcast_to(jnp.asarray(self.delay) / dt, signal.shape), 0.0, self.samples)
        # a hat function per sample is linear interpolation without indexing by a traced number
        weights = jnp.maximum(1.0 - jnp.abs(position[None] - np.arange(self.samples + 1.0)[:, None]), 0.0)
        return jnp.sum(weights * ages, axis=0)

    def advance(self, model, signal, motor, memory, dt):
        return jnp.concatenate([signal[None], memory[:-1]])


class SeriesElastic(AbstractStage):
    """A motor behind a spring: the signal drives the rotor, the spring drives the joint."""

    stiffness: PerActuator = eqx.field(converter=as_floats)
    """Of the spring [N·m/rad or N/m]."""
    damping: PerActuator = eqx.field(converter=as_floats)
    """Of the spring [N·m·s/rad or N·s/m]."""
    rotor_inertia: PerActuator = eqx.field(converter=as_floats)
    """[kg·m² or kg]"""

    def initial_state(self, motor):
        # the spring is relaxed and moves with the joint
        return as_floats(motor)

    def output(self, model, signal, motor, memory, dt):
        angle, speed = memory
        return self.stiffness * (angle - motor.position) + self.damping * (speed - motor.speed)

    def advance(self, model, signal, motor, memory, dt):
        # implicit in the rotor's motion, explicit in the joint's: the rotor may be light, the spring must not be stiff
        # for what the joint carries (k dt² well below its inertia)
        angle, speed = memory
        push = signal - self.output(model, signal, motor, memory, dt) - dt * self.stiffness * (speed - motor.speed)
        inertia = self.rotor_inertia + dt * self.damping + dt**2 * self.stiffness
        new_speed = speed + dt * push / inertia
        return jnp.stack([angle + dt * new_speed, new_speed])


class Actuation(eqx.Module):
    """The chain of stages that every actuator of a model goes through.

    Without stages it is `ControlRange(), ModelLaw(), ForceRange()`: the law and the ranges in the model. A chain of
    your own replaces all three; end it with `ForceRange()` to keep the model's force limits. The joints' effort limits
    always apply.
    """

    stages: tuple[AbstractStage, ...]

    def __init__(self, *stages: AbstractStage):
        if wrong := [stage for stage in stages if not isinstance(stage, AbstractStage)]:
            raise TypeError(f"Actuation takes stages such as PDServo(...), one by one, not {wrong[0]!r}")
        self.stages = stages or (ControlRange(), ModelLaw(), ForceRange())

    def check(self, dt: Scalar) -> None:
        """Raise if a stage cannot work with this time step [s]."""
        if not any(isinstance(x, Tracer) for x in jax.tree.leaves((self.stages, dt))):
            for stage in self.stages:
                stage.check(dt)

    def initial_state(self, model: Model, q: Q, qd: Qd) -> tuple:
        """Memory of all stages at the start of a simulation from this state."""
        topology, driven = model.topology, model.actuator.joints
        position = model.actuator.gear * q[np.array([topology.q_slices[j][0] for j in driven], dtype=int)]
        speed = model.actuator.gear * qd[np.array([topology.v_slices[j][0] for j in driven], dtype=int)]
        return tuple(stage.initial_state(Motor(position, speed)) for stage in self.stages)

    def torques(self, model: Model, q: Q, qd: Qd, u: Control, memory: tuple, dt: Scalar) -> Tau:
        """Joint torques or forces of all actuators [N·m or N], clipped to the joints' effort limits."""
        if len(memory) != len(self.stages):
            raise ValueError(
                f"the state remembers {len(memory)} actuator stages, and this simulator has {len(self.stages)}: start "
                "from its own initial_state"
            )
        motor = _motors(model, q, qd)
        signal = u
        for stage, own in zip(self.stages, memory, strict=True):
            signal = stage.output(model, signal, motor, own, dt)
        tree_tau = (model.actuator.gear * signal) @ _transmission(model)
        return reduce_tau(model, clamp(tree_tau, -model.joint.effort_limit, model.joint.effort_limit))

    def advance(self, model: Model, q: Q, qd: Qd, u: Control, memory: tuple, dt: Scalar) -> tuple:
        """Memory of all stages one time step later."""
        if all(own is None for own in memory):
            return memory
        motor = _motors(model, q, qd)
        signal, advanced = u, []
        for stage, own in zip(self.stages, memory, strict=True):
            advanced.append(stage.advance(model, signal, motor, own, dt))
            signal = stage.output(model, signal, motor, own, dt)
        return tuple(advanced)


def _motors(model: Model, q: Q, qd: Qd) -> Motor:
    select = _transmission(model).T
    position = scalar_positions(model, expand_q(model, q)) @ select
    speed = expand_v(model, qd) @ select
    return Motor(model.actuator.gear * position, model.actuator.gear * speed)


def _transmission(model: Model) -> np.ndarray:
    """Which actuator drives which degree of freedom of the tree."""
    select = np.zeros((model.nu, model.topology.mv))
    for row, joint in enumerate(model.actuator.joints):
        select[row, model.topology.tree_v_slices[joint][0]] = 1.0
    return select

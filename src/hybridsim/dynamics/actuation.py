"""Actuation: from commands to joint torques, through a chain of stages.

Examples:
    Actuation()                                                     the model's own actuators (the default)
    Actuation(PDServo(kp=80.0, kd=2.0), TorqueSpeedLimit(20.0, 30.0))    position servos with a torque–speed curve
    Actuation(TransportDelay(0.008), FirstOrderLag(0.01), AffineActuator(), ForceRange())    delayed and filtered

The input of the first stage is the command `u`, the output of the last one the actuator force. Stages receive position
and velocity of the joints, times the gear ratio. The internal state of a stage (lag, delay, spring) is updated only in
`advance`, once per time step, so that all four evaluations of an RK4 step use the same internal state.
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
from hybridsim.core.parameter_field import ADDS_ENERGY, DIVIDES, IS_TIME, NOT_RESTORING, SYMMETRIC, Sign, parameter
from hybridsim.core.specification import Count
from hybridsim.core.types import AnyArray, Command, Q, Qd, Scalar, Tau, as_floats
from hybridsim.model.coordinates import expand_q, expand_v, reduce_tau, scalar_positions
from hybridsim.model.model import Model

Signal = Float[AnyArray, " nu"]
PerActuator = float | Float[AnyArray, ""] | Float[AnyArray, " nu"]
"""One value for all actuators, or one each."""


def actuator_parameter(*declaration, **options) -> Any:
    """Field of a stage that holds a parameter; the arguments are those of `parameter`."""
    return eqx.field(converter=as_floats, metadata=parameter(*declaration, **options))


class ActuatorMotion(NamedTuple):
    """Position and velocity of the actuated joints, times the gear ratio."""

    position: Signal
    """[rad or m]"""
    velocity: Signal
    """[rad/s or m/s]"""


class AbstractStage(eqx.Module):
    """One stage between command and force."""

    def check(self, dt: Scalar) -> None:
        """Raise if the stage does not support this time step [s]; not called with traced values."""

    def upper_limits(self, dt: Scalar) -> dict[str, tuple[float, str]]:
        """Upper limits of parameters that depend on the time step [s], by field, each with its reason."""
        del dt
        return {}

    def initial_state(self, motion: ActuatorMotion) -> Any:
        """Initial internal state, for actuators at this position and velocity."""
        del motion
        return None

    @abc.abstractmethod
    def output(self, model: Model, signal: Signal, motion: ActuatorMotion, aux: Any, dt: Scalar) -> Signal:
        """Output signal of the stage."""

    def advance(self, model: Model, signal: Signal, motion: ActuatorMotion, aux: Any, dt: Scalar) -> Any:
        """Internal state after a time step with constant input `signal`."""
        del model, signal, motion, dt
        return aux


class ControlRange(AbstractStage):
    """Clips commands to the command range of the model."""

    def output(self, model, signal, motion, aux, dt):
        return clamp(signal, model.actuator.command_lower, model.actuator.command_upper)


class AffineActuator(AbstractStage):
    """Affine actuator of the model, with gain and bias: a force actuator, position servo or velocity servo."""

    def output(self, model, signal, motion, aux, dt):
        bias = model.actuator.bias
        return model.actuator.gain * signal + bias[:, 0] + bias[:, 1] * motion.position + bias[:, 2] * motion.velocity


class ForceRange(AbstractStage):
    """Clips forces to the force range of the model."""

    def output(self, model, signal, motion, aux, dt):
        return clamp(signal, model.actuator.force_lower, model.actuator.force_upper)


class PDServo(AbstractStage):
    """Position servo: kp (u − position) − kd velocity."""

    kp: PerActuator = eqx.field(
        converter=as_floats, metadata=parameter("N·m/rad, N/m", "Proportional gain of a servo.", reason=NOT_RESTORING)
    )
    """Stiffness [N·m/rad or N/m]."""
    kd: PerActuator = eqx.field(
        converter=as_floats, metadata=parameter("N·m·s/rad, N·s/m", "Derivative gain of a servo.", reason=ADDS_ENERGY)
    )
    """Damping [N·m·s/rad or N·s/m]."""

    def output(self, model, signal, motion, aux, dt):
        return self.kp * (signal - motion.position) - self.kd * motion.velocity


class Saturation(AbstractStage):
    """Clips the signal to a symmetric range."""

    limit: PerActuator = eqx.field(
        converter=as_floats, metadata=parameter("signal unit", "Saturation limit.", reason=SYMMETRIC)
    )
    """Largest magnitude, in the unit of the signal."""

    def output(self, model, signal, motion, aux, dt):
        return clamp(signal, -jnp.asarray(self.limit), self.limit)


class TorqueSpeedLimit(AbstractStage):
    """Linear torque–speed curve: stall torque at standstill and in braking, zero at the no-load speed."""

    stall_force: PerActuator = eqx.field(
        converter=as_floats, metadata=parameter("N·m, N", "Stall force: largest force at standstill.", reason=SYMMETRIC)
    )
    """[N·m or N]"""
    no_load_speed: PerActuator = eqx.field(
        converter=as_floats, metadata=parameter("rad/s, m/s", "No-load speed.", Sign.POSITIVE, DIVIDES)
    )
    """[rad/s or m/s]"""

    def output(self, model, signal, motion, aux, dt):
        forward = clamp(self.stall_force * (1.0 - motion.velocity / self.no_load_speed), 0.0, self.stall_force)
        backward = clamp(self.stall_force * (1.0 + motion.velocity / self.no_load_speed), 0.0, self.stall_force)
        return clamp(signal, -backward, forward)


class FirstOrderLag(AbstractStage):
    """First-order low-pass filter, exact for a signal that is constant within a step."""

    time_constant: PerActuator = eqx.field(
        converter=as_floats, metadata=parameter("s", "Time constant of a lag.", reason=IS_TIME, typical=0.01)
    )
    """[s]"""

    def initial_state(self, motion):
        return np.zeros(motion.position.shape)

    def output(self, model, signal, motion, aux, dt):
        return aux

    def advance(self, model, signal, motion, aux, dt):
        # with a time constant of zero the signal is reached after one step; the derivative is zero, not NaN
        is_instant = self.time_constant <= 0.0
        decay = jnp.where(is_instant, jnp.inf, dt / jnp.where(is_instant, 1.0, self.time_constant))
        return aux - jnp.expm1(-decay) * (signal - aux)


class TransportDelay(AbstractStage):
    """Pure delay of the signal; it interpolates linearly between samples, so that the delay can be fitted."""

    delay: PerActuator = eqx.field(
        converter=as_floats, metadata=parameter("s", "Transport delay.", reason=IS_TIME, typical=0.01)
    )
    """[s]"""
    samples: Count = eqx.field(static=True, default=32)
    """Buffer length [time steps]. `Simulator` rejects longer delays; traced ones are clipped, with zero gradient."""

    def upper_limits(self, dt):
        return {"delay": (self.samples * float(np.min(dt)), "the buffer of the stage holds no more samples")}

    def check(self, dt):
        max_delay, _ = self.upper_limits(dt)["delay"]
        if np.min(self.delay) < 0.0:
            raise ValueError(f"the delay of TransportDelay must be nonnegative, not {np.min(self.delay):g} s")
        if np.max(self.delay) > max_delay:
            raise ValueError(
                f"a delay of {np.max(self.delay):g} s exceeds {max_delay:g} s, the buffer length of {self.samples} "
                "steps; increase samples of TransportDelay"
            )

    def initial_state(self, motion):
        return np.zeros((self.samples, *motion.position.shape))

    def output(self, model, signal, motion, aux, dt):
        # row 0 is the current signal, row k the signal k steps ago
        samples = jnp.concatenate([signal[None], aux])
        delay_steps = clamp(jnp.broadcast_to(jnp.asarray(self.delay) / dt, signal.shape), 0.0, self.samples)
        # one hat function per sample interpolates linearly without a traced index
        weights = jnp.maximum(1.0 - jnp.abs(delay_steps[None] - np.arange(self.samples + 1.0)[:, None]), 0.0)
        return jnp.sum(weights * samples, axis=0)

    def advance(self, model, signal, motion, aux, dt):
        return jnp.concatenate([signal[None], aux[:-1]])


class SeriesElastic(AbstractStage):
    """Series elastic actuator: the signal is the force on the rotor, the spring acts on the joint."""

    stiffness: PerActuator = eqx.field(
        converter=as_floats,
        metadata=parameter("N·m/rad, N/m", "Spring stiffness.", reason=NOT_RESTORING, typical=100.0),
    )
    """Stiffness of the spring [N·m/rad or N/m]."""
    damping: PerActuator = eqx.field(
        converter=as_floats, metadata=parameter("N·m·s/rad, N·s/m", "Spring damping.", reason=ADDS_ENERGY)
    )
    """Damping of the spring [N·m·s/rad or N·s/m]."""
    rotor_inertia: PerActuator = eqx.field(
        converter=as_floats, metadata=parameter("kg·m², kg", "Rotor inertia.", Sign.POSITIVE, DIVIDES, typical=0.01)
    )
    """[kg·m² or kg]"""

    def initial_state(self, motion):
        # the spring is relaxed and the rotor moves with the joint
        return as_floats(motion)

    def output(self, model, signal, motion, aux, dt):
        rotor_position, rotor_velocity = aux
        return self.stiffness * (rotor_position - motion.position) + self.damping * (rotor_velocity - motion.velocity)

    def advance(self, model, signal, motion, aux, dt):
        # implicit in the rotor motion, explicit in the joint motion: stable for a light rotor, but k dt² must be well
        # below the apparent inertia of the joint
        rotor_position, rotor_velocity = aux
        force = signal - self.output(model, signal, motion, aux, dt)
        force = force - dt * self.stiffness * (rotor_velocity - motion.velocity)
        inertia = self.rotor_inertia + dt * self.damping + dt**2 * self.stiffness
        new_velocity = rotor_velocity + dt * force / inertia
        return jnp.stack([rotor_position + dt * new_velocity, new_velocity])


class Actuation(eqx.Module):
    """Chain of stages applied to every actuator of a model.

    The default stages are `ControlRange(), AffineActuator(), ForceRange()`: the actuators and ranges of the model. A
    custom chain replaces all three; end it with `ForceRange()` to keep the force limits of the model. The effort limits
    of the joints always apply.
    """

    stages: tuple[AbstractStage, ...]

    def __init__(self, *stages: AbstractStage):
        if invalid := [stage for stage in stages if not isinstance(stage, AbstractStage)]:
            raise TypeError(f"Actuation takes stages such as PDServo(...) as separate arguments, not {invalid[0]!r}")
        self.stages = stages or (ControlRange(), AffineActuator(), ForceRange())

    @property
    def is_default(self) -> bool:
        """Whether the stages are those of the model."""
        return [type(stage) for stage in self.stages] == [ControlRange, AffineActuator, ForceRange]

    def check(self, dt: Scalar) -> None:
        """Raise if a stage does not support this time step [s]."""
        if not any(isinstance(x, Tracer) for x in jax.tree.leaves((self.stages, dt))):
            for stage in self.stages:
                stage.check(dt)

    def initial_state(self, model: Model, q: Q, qd: Qd) -> tuple:
        """Initial internal states of all stages, for these joint coordinates and velocities."""
        topology, joints = model.topology, model.actuator.joints
        position = model.actuator.gear * q[np.array([topology.q_slices[j][0] for j in joints], dtype=int)]
        velocity = model.actuator.gear * qd[np.array([topology.v_slices[j][0] for j in joints], dtype=int)]
        return tuple(stage.initial_state(ActuatorMotion(position, velocity)) for stage in self.stages)

    def torques(self, model: Model, q: Q, qd: Qd, u: Command, aux: tuple, dt: Scalar) -> Tau:
        """Joint torques or forces of all actuators [N·m or N], clipped to the effort limits of the joints."""
        if len(aux) != len(self.stages):
            raise ValueError(
                f"state.aux has internal states of {len(aux)} actuator stages; this simulator has {len(self.stages)} "
                "stages: create the state with its initial_state(q, qd)"
            )
        motion = _actuator_motion(model, q, qd)
        signal = u
        for stage, stage_aux in zip(self.stages, aux, strict=True):
            signal = stage.output(model, signal, motion, stage_aux, dt)
        tree_tau = (model.actuator.gear * signal) @ _selection_matrix(model)
        return reduce_tau(model, clamp(tree_tau, -model.joint.effort_limit, model.joint.effort_limit))

    def advance(self, model: Model, q: Q, qd: Qd, u: Command, aux: tuple, dt: Scalar) -> tuple:
        """Internal states of all stages one time step later."""
        if all(stage_aux is None for stage_aux in aux):
            return aux
        motion = _actuator_motion(model, q, qd)
        signal, new_aux = u, []
        for stage, stage_aux in zip(self.stages, aux, strict=True):
            new_aux.append(stage.advance(model, signal, motion, stage_aux, dt))
            signal = stage.output(model, signal, motion, stage_aux, dt)
        return tuple(new_aux)


def _actuator_motion(model: Model, q: Q, qd: Qd) -> ActuatorMotion:
    selection = _selection_matrix(model).T
    position = scalar_positions(model, expand_q(model, q)) @ selection
    velocity = expand_v(model, qd) @ selection
    return ActuatorMotion(model.actuator.gear * position, model.actuator.gear * velocity)


def _selection_matrix(model: Model) -> np.ndarray:
    """Selection matrix from degrees of freedom of the tree (columns) to actuators (rows)."""
    selection = np.zeros((model.nu, model.topology.tree_nv))
    for row, joint in enumerate(model.actuator.joints):
        selection[row, model.topology.tree_v_slices[joint][0]] = 1.0
    return selection

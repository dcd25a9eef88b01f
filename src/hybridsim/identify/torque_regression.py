"""Linear regression of torques on recordings with measured motion and known commands.

In every sample, the known torques of motors and springs balance inertia, rotor inertia and friction:

    known = Y(q, q̇, q̈) φ + armature q̈ + damping q̇ + friction tanh(q̇ / width)

which is linear in the inertial parameters φ and the three parameters of each joint (Atkeson, An & Hollerbach 1986).
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import HybridsimError
from hybridsim.core.numerics import smooth_sign
from hybridsim.data.derivative import derivative
from hybridsim.data.resample import resample
from hybridsim.data.run import Run
from hybridsim.data.series import Series
from hybridsim.dynamics.passive import passive_torques
from hybridsim.dynamics.regressor import inertial_regressor
from hybridsim.identify.windows import ChannelRoles, time_span
from hybridsim.params.setup import Setup
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator

Array = np.ndarray
DERIVATIVE_SPAN = 0.03
"""Default time span of differentiation filters [s]."""
MIN_SAMPLES = 7
"""Minimum number of samples of a differentiation filter."""


class MeasuredMotion(NamedTuple):
    """Measured motion and commands at K times."""

    q: Float[Array, "K nv"]
    qd: Float[Array, "K nv"]
    qdd: Float[Array, "K nv"]
    u: Float[Array, "K nu"]


class TorqueRegression(NamedTuple):
    """The linear system; its columns are ten inertial parameters per body, then three parameters per joint."""

    known: Float[Array, "K nv"]
    """Known torques."""
    body_columns: Float[Array, "K nv nb 10"]
    joint_columns: Float[Array, "K nv 3"]
    """Columns of armature, damping and friction; each acts on the joint's own torque only."""


def measured_motion(
    setup: Setup, recordings: Sequence[Run], channel_roles: ChannelRoles, filter_samples: int | None
) -> MeasuredMotion:
    """Coordinates, velocities, accelerations and commands at the time stamps of the first channel used.

    Args:
        setup: simulator and sensors.
        recordings: runs, each without gaps.
        channel_roles: roles of the channels.
        filter_samples: length of the differentiation filters in samples; by default `DERIVATIVE_SPAN`.

    Raises:
        HybridsimError: the channels do not determine the motion of every joint.
    """
    sim, sensors = setup.sim, setup.sensors
    _check_supported(sim)
    matrix, channels = _coordinate_matrix(sensors, sim)
    parts = []
    for run in recordings:
        begin, end = time_span(run, channel_roles)
        series = [_undo_sensor(run.series[sensors.names[k]], sensors, k) for k in channels]
        max_delay = max(float(sensors.delay[k]) for k in channels)
        samples = filter_samples
        if samples is None:
            samples = max(MIN_SAMPLES, round(DERIVATIVE_SPAN / series[0].median_sample_interval) + 1)
        # one-sided accelerations at the ends of a run are too inaccurate
        t = series[0].t[samples // 2 : -(samples // 2) or None]
        t = t[(t >= begin) & (t <= end - max_delay)]
        rates = [[derivative(s, filter_window=samples, order=order) for s in series] for order in (1, 2)]
        readings = [np.stack([resample(s, t) for s in group]) for group in (series, *rates)]
        q, qd, qdd = (np.linalg.lstsq(matrix, values, rcond=None)[0].T for values in readings)
        u = np.zeros((len(t), sim.model.nu))
        for name, signal in channel_roles.commands.items():
            source = run.series[signal.channel]
            times = np.clip(t, source.t[0], source.t[-1])
            u[:, sim.model.actuator.names.index(name)] = resample(source, times, kind=signal.interpolation)
        parts.append((q, qd, qdd, u))
    return MeasuredMotion(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def torque_regression(sim: Simulator, motion: MeasuredMotion) -> TorqueRegression:
    """Known torques, and the columns of the parameters."""
    model = sim.model
    # known torques include all passive torques except damping and friction, which are estimated
    frictionless = eqx.tree_at(
        lambda m: (m.joint.damping, m.joint.friction), model, (np.zeros(model.nv), np.zeros(model.nv))
    )

    def sample(q, qd, qdd, u):
        internal = sim.actuation.initial_state(frictionless, q, qd)
        known = sim.actuation.torques(frictionless, q, qd, u, internal, sim.dt) + passive_torques(frictionless, q, qd)
        return known, inertial_regressor(frictionless, q, qd, qdd)

    with jax.enable_x64(True):
        known, body_columns = (np.asarray(x) for x in jax.jit(jax.vmap(sample))(*motion))
        sign = np.asarray(smooth_sign(motion.qd, np.broadcast_to(model.joint.friction_width, motion.qd.shape)))
    return TorqueRegression(known, body_columns, np.stack([motion.qdd, motion.qd, sign], axis=-1))


def _check_supported(sim: Simulator) -> None:
    topology = sim.model.topology
    if topology.tree_nq != topology.tree_nv or topology.tree_nv != sim.model.nv:
        raise HybridsimError(
            f"inverse-dynamics fits support single-axis joints only: model {sim.model.name!r} has free, spherical or "
            "mimic joints; use the model's values as initial values instead"
        )
    with jax.enable_x64(True):
        if jax.tree.leaves(sim.initial_state().aux["actuation"]):
            raise HybridsimError(
                "inverse-dynamics fits need actuators without internal states: the torques of a lag or a delay depend "
                "on earlier commands; use the model's values as initial values instead"
            )


def _coordinate_matrix(sensors: Sensors, sim: Simulator) -> tuple[Float[Array, "c nq"], list[int]]:
    """Matrix from coordinates to the channels that measure them, and the indices of these channels."""
    channels = [k for k, terms in enumerate(sensors.terms) if all(term.quantity == "joint.q" for term in terms)]
    matrix = np.zeros((len(channels), sim.model.nq))
    for row, k in enumerate(channels):
        for term in sensors.terms[k]:
            matrix[row, term.entry] += term.sign
    if np.linalg.matrix_rank(matrix) < sim.model.nq:
        names = sim.model.topology.coordinate_names
        unmeasured = [name for name, column in zip(names, matrix.T, strict=True) if not column.any()]
        problem = (
            f"no channel measures {', '.join(unmeasured)}"
            if unmeasured
            else "the measured sums of coordinates do not determine them"
        )
        raise HybridsimError(f"inverse-dynamics fits need the coordinates of all joints, but {problem}")
    return matrix, channels


def _undo_sensor(series: Series, sensors: Sensors, k: int) -> Series:
    """Remove gain, bias and delay from a channel."""
    gain, bias, delay = (float(x[k]) for x in (sensors.gain, sensors.bias, sensors.delay))
    return Series(series.name, series.t - delay, (series.values - bias) / gain)

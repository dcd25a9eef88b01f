"""What recordings with measured motion and known commands say about torques: rows of a linear system.

In every sample, what motors and springs are known to exert is what the bodies' inertias, the rotors' and friction need:

    known = Y(q, q̇, q̈) φ + armature q̈ + damping q̇ + friction tanh(q̇ / width)

which is linear in the inertial parameters φ and the three numbers of each joint (Atkeson, An & Hollerbach 1986).
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
from hybridsim.data.recording import Recording
from hybridsim.data.resample import resample
from hybridsim.data.series import Series
from hybridsim.dynamics.passive import passive_torques
from hybridsim.dynamics.regressor import inertial_regressor
from hybridsim.identify.windows import Measurements, span
from hybridsim.params.setup import Setup
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator

Array = np.ndarray
SMOOTHED = 0.03
"""Time over which rates of change are taken, unless told otherwise [s]."""
FEWEST = 7
"""Samples over which they are taken at least."""


class MeasuredMotion(NamedTuple):
    """Measured motion and commands at K times."""

    q: Float[Array, "K nv"]
    qd: Float[Array, "K nv"]
    qdd: Float[Array, "K nv"]
    u: Float[Array, "K nu"]


class TorqueRegression(NamedTuple):
    """The linear system; its columns are ten inertial parameters per body, then three numbers per joint."""

    known: Float[Array, "K nv"]
    of_bodies: Float[Array, "K nv nb 10"]
    of_joints: Float[Array, "K nv 3"]
    """What a joint's own armature, damping and friction are multiplied by."""


def measured_motion(
    setup: Setup, recordings: Sequence[Recording], measured: Measurements, window: int | None
) -> MeasuredMotion:
    """Coordinates with their first and second rates of change, and commands, at the times of the first channel.

    Args:
        setup: simulator and sensors.
        recordings: runs, each without gaps.
        measured: what drives the model.
        window: samples that rates of change are taken over; by default as many as fit into a while.

    Raises:
        HybridsimError: the channels do not tell the motion of every joint.
    """
    sim, sensors = setup.sim, setup.sensors
    _check_flat(sim)
    matrix, channels = _seen_by(sensors, sim)
    parts = []
    for run in recordings:
        begin, end = span(run, measured)
        series = [_undone(run.series[sensors.names[k]], sensors, k) for k in channels]
        late = max(float(sensors.delay[k]) for k in channels)
        samples = max(FEWEST, round(SMOOTHED / series[0].median_step) + 1) if window is None else window
        # accelerations at the ends of a run, from samples on one side only, are worse than none
        t = series[0].t[samples // 2 : -(samples // 2) or None]
        t = t[(t >= begin) & (t <= end - late)]
        rates = [[derivative(one, window=samples, order=order) for one in series] for order in (1, 2)]
        told = [np.stack([resample(one, t) for one in group]) for group in (series, *rates)]
        q, qd, qdd = (np.linalg.lstsq(matrix, values, rcond=None)[0].T for values in told)
        u = np.zeros((len(t), sim.model.nu))
        for name, drive in measured.commands.items():
            source = run.series[drive.channel]
            at = np.clip(t, source.t[0], source.t[-1])
            u[:, sim.model.actuator.names.index(name)] = resample(source, at, kind=drive.between)
        parts.append((q, qd, qdd, u))
    return MeasuredMotion(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def torque_regression(sim: Simulator, motion: MeasuredMotion) -> TorqueRegression:
    """Known torques, and what they are made of."""
    model = sim.model
    # what is to be found must not be in what is known; what else rubs stays
    bare = eqx.tree_at(lambda m: (m.joint.damping, m.joint.friction), model, (np.zeros(model.nv), np.zeros(model.nv)))

    def one(q, qd, qdd, u):
        memory = sim.actuation.initial_state(bare, q, qd)
        known = sim.actuation.torques(bare, q, qd, u, memory, sim.dt) + passive_torques(bare, q, qd)
        return known, inertial_regressor(bare, q, qd, qdd)

    with jax.enable_x64(True):
        known, of_bodies = (np.asarray(x) for x in jax.jit(jax.vmap(one))(*motion))
        sliding = np.asarray(smooth_sign(motion.qd, np.broadcast_to(model.joint.friction_width, motion.qd.shape)))
    return TorqueRegression(known, of_bodies, np.stack([motion.qdd, motion.qd, sliding], axis=-1))


def _check_flat(sim: Simulator) -> None:
    topology = sim.model.topology
    if topology.mq != topology.mv or topology.mv != sim.model.nv:
        raise HybridsimError(
            f"a linear start needs joints with one coordinate each: model {sim.model.name!r} has free, ball or mimic "
            "joints; start from its own values instead"
        )
    with jax.enable_x64(True):
        if jax.tree.leaves(sim.initial_state().aux["actuation"]):
            raise HybridsimError(
                "a linear start needs motors without memory: what a lag or a delay makes of a command depends on the "
                "commands before; start from the model's own values instead"
            )


def _seen_by(sensors: Sensors, sim: Simulator) -> tuple[Float[Array, "c nq"], list[int]]:
    """Channels that measure coordinates, as a matrix that makes them of all coordinates."""
    channels = [k for k, places in enumerate(sensors.terms) if all(p.quantity == "joint.q" for p in places)]
    matrix = np.zeros((len(channels), sim.model.nq))
    for row, k in enumerate(channels):
        for place in sensors.terms[k]:
            matrix[row, place.entry] += place.sign
    if np.linalg.matrix_rank(matrix) < sim.model.nq:
        names = sim.model.topology.coordinate_names
        blind = [name for name, column in zip(names, matrix.T, strict=True) if not column.any()]
        what = f"nothing measures {', '.join(blind)}" if blind else "channels measure too few sums of coordinates"
        raise HybridsimError(f"a linear start needs the coordinate of every joint, but {what}")
    return matrix, channels


def _undone(series: Series, sensors: Sensors, k: int) -> Series:
    """A channel without its gain, bias and delay."""
    gain, bias, delay = (float(x[k]) for x in (sensors.gain, sensors.bias, sensors.delay))
    return Series(series.name, series.t - delay, (series.values - bias) / gain)

"""Initial guesses of initial states, from nearby measurements."""

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

from hybridsim import Simulator
from hybridsim.data.derivative import centred_windows
from hybridsim.data.local_polynomial import local_fit
from hybridsim.data.run import Run
from hybridsim.identify.initial_guess import DEGREE, MIN_SAMPLES, _local_fit_at
from hybridsim.identify.stage import Stage
from hybridsim.params.free import Free
from hybridsim.robots import cartpole, cube, double_pendulum
from support.fit_problems import DOUBLE_PENDULUM_CHANNELS, DT, FREE_BODY_CHANNELS, build_fit_problem, simulate_recording

SPIN = [3.0, -2.0, 4.0, 0.5, 0.2, 1.0]


@pytest.fixture(scope="module")
def sim():
    return Simulator(double_pendulum(), dt=DT)


@pytest.fixture(scope="module")
def swing(sim):
    channels = DOUBLE_PENDULUM_CHANNELS | {"v0": "joint.qd[joint0]", "v1": "joint.qd[joint1]"}
    return simulate_recording(sim, [0.6, -0.4], steps=60, channels=channels, noise=1e-4)


def guess_of(sim, channels, run, stage=None, **sensors):
    free_parameters = [Free("gravity.z")]
    return build_fit_problem(sim, channels, free_parameters, [run], **sensors).objective(stage or Stage(window=0.2))[1]


def test_positions_and_velocities_from_positions_alone(sim, swing):
    found = guess_of(sim, DOUBLE_PENDULUM_CHANNELS, swing)
    assert found.unmeasured == ()
    np.testing.assert_allclose(found.q[:, 0], swing.series["q0"].values[[0, 20, 40]], atol=1e-3)
    # at the beginning of a run, samples are one-sided
    np.testing.assert_allclose(found.qd[:, 1], swing.series["speed joint1"].values[[0, 20, 40]], atol=0.15)


def test_measured_velocities_are_used_unchanged(sim, swing):
    channels = DOUBLE_PENDULUM_CHANNELS | {"v1": "joint.qd[joint1]"}
    found = guess_of(sim, channels, swing, Stage(window=0.2, initial_states="measured"))
    np.testing.assert_allclose(found.qd[:, 1], swing.series["v1"].values[[0, 20, 40]], rtol=1e-9)
    np.testing.assert_allclose(found.q[:, 1], swing.series["q1"].values[[0, 20, 40]], rtol=1e-9, atol=1e-12)


def test_gain_bias_and_delay_of_sensors_are_removed(sim, swing):
    late = 3 * DT
    series = {name: 2.0 * swing.series[name].values + 0.7 for name in DOUBLE_PENDULUM_CHANNELS}
    delayed = Run.from_arrays("run", np.asarray(swing.series["q0"].t) + late, series)
    found = guess_of(sim, DOUBLE_PENDULUM_CHANNELS, delayed, gain=2.0, bias=0.7, delay=late)
    # windows begin where the recording does, one delay after the beginning of the motion
    np.testing.assert_allclose(found.q[:, 0], swing.series["q0"].values[[3, 23, 43]], atol=1e-3)


def test_sums_of_coordinates_are_resolved(sim, swing):
    absolute = swing.series["q0"].values + swing.series["q1"].values
    run = Run.from_arrays("run", swing.series["q0"].t, {"q0": swing.series["q0"].values, "sum": absolute})
    found = guess_of(sim, {"q0": DOUBLE_PENDULUM_CHANNELS["q0"], "sum": "joint.q[joint0] + joint.q[joint1]"}, run)
    np.testing.assert_allclose(found.q[:, 1], swing.series["q1"].values[[0, 20, 40]], atol=1e-3)


def test_unmeasured_coordinates_start_at_home_and_are_named():
    sim = Simulator(cartpole(), dt=DT)
    run = simulate_recording(sim, [0.1, 0.2], steps=30, channels={"x": "joint.q[slider]"})
    found = guess_of(sim, {"x": "joint.q[slider]"}, run)
    assert found.unmeasured == ("hinge",)
    np.testing.assert_array_equal(found.q[:, 1], 0.0)


def test_a_flying_body_from_its_pose():
    sim = Simulator(cube(), dt=DT)
    run = simulate_recording(sim, [0, 0, 1, 1, 0, 0, 0], SPIN, steps=60, channels=FREE_BODY_CHANNELS)
    found = guess_of(sim, FREE_BODY_CHANNELS, run)
    rows = [0, 20, 40]
    poses = np.stack([run.series[name].values[rows] for name in FREE_BODY_CHANNELS], axis=1)
    np.testing.assert_allclose(found.q, poses, atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(found.q[:, 3:], axis=1), 1.0, rtol=1e-12)
    speeds = [f"speed {name}" for name in sim.model.topology.dof_names]
    # least accurate at the ends of a run
    expected = np.stack([run.series[name].values[rows] for name in speeds], axis=1)
    np.testing.assert_allclose(found.qd, expected, atol=0.05)


def test_between_samples_a_guess_is_on_the_hermite_cubic_of_the_smoothed_samples(swing):
    series = swing.series["q0"]
    start, end = centred_windows(len(series), MIN_SAMPLES)
    smoothed = local_fit(series.t, series.values, start, end, DEGREE)
    curve = CubicHermiteSpline(series.t, smoothed.value, smoothed.first_derivative)
    at = np.array([series.t[0], series.t[7], 0.123, 0.3456, series.t[-1]])
    value, slope = _local_fit_at(series, at, span=0.0)
    np.testing.assert_allclose(value, curve(at), rtol=1e-12)
    np.testing.assert_allclose(slope, curve(at, 1), rtol=1e-10)

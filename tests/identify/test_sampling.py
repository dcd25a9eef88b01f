"""Sampling of readings: fixed stamps, delays, and the transpose."""

from dataclasses import replace

import numpy as np
import pytest

from hybridsim.data.run import Run
from hybridsim.identify.sampling import Sampling
from hybridsim.identify.windows import ChannelRoles, Windows, cut_windows

DT, WINDOWS, ROWS, SENSORS = 0.1, 3, 9, 2
EVERY = np.arange(WINDOWS)


@pytest.fixture
def windows() -> Windows:
    """Three windows of eight steps with samples at time steps."""
    t = np.arange(25) * DT
    recording = Run.from_arrays("run", t, {"a": np.sin(t), "b": np.cos(t)})
    return cut_windows([recording], ChannelRoles({"a": 1.0, "b": 1.0}, {}, {}), (), dt=DT, length=0.8)


@pytest.fixture
def uneven_windows(windows) -> Windows:
    """The same windows with samples between time steps, and two without weight."""
    random = np.random.default_rng(0)
    weight = windows.weight.copy()
    weight[2, -2:] = 0.0
    time = np.clip(windows.time_in_steps + random.uniform(0, 0.9, windows.time_in_steps.shape), 0, 8)
    return replace(windows, time_in_steps=time, weight=weight)


def curve(time: np.ndarray, channel: np.ndarray, window: np.ndarray) -> np.ndarray:
    """A cubic in time, different for each window and channel."""
    return (1.0 + window) * (0.02 * time**3 - 0.1 * time**2) + (2.0 - channel) * time + window


def readings(rows: int = ROWS) -> np.ndarray:
    window, row, channel = np.meshgrid(EVERY, np.arange(rows), np.arange(SENSORS), indexing="ij")
    return curve(row.astype(float), channel, window)


def test_samples_on_steps_are_the_readings_themselves(windows):
    sampling = Sampling(windows, np.zeros(SENSORS), has_free_delay=False)
    assert sampling.reading_rows == 8
    found = sampling.sample(readings(8), EVERY)
    np.testing.assert_array_equal(found, curve(windows.time_in_steps.round(), windows.channel, EVERY[:, None]))
    with_more_rows = sampling.sample(readings(12), EVERY)
    np.testing.assert_array_equal(with_more_rows, found)


def test_samples_may_begin_at_a_later_step(windows):
    late = replace(windows, time_in_steps=windows.time_in_steps + 1.0)
    sampling = Sampling(late, np.zeros(SENSORS), has_free_delay=False)
    assert sampling.reading_rows == 9 and sampling._first_dense_row == 1
    found = sampling.sample(readings(9), EVERY)
    np.testing.assert_array_equal(found, curve(late.time_in_steps.round(), late.channel, EVERY[:, None]))
    np.testing.assert_array_equal(sampling.sample(readings(12), EVERY), found)


def test_samples_between_steps_are_interpolated(uneven_windows):
    sampling = Sampling(uneven_windows, np.zeros(SENSORS), has_free_delay=False)
    assert sampling.reading_rows == ROWS
    expected = curve(uneven_windows.time_in_steps, uneven_windows.channel, EVERY[:, None])
    np.testing.assert_allclose(sampling.sample(readings(), EVERY), expected, rtol=1e-12, atol=1e-12)
    some = np.array([2, 1])
    np.testing.assert_allclose(sampling.sample(readings()[some], some), expected[some], rtol=1e-12, atol=1e-12)


def test_tangents_are_sampled_like_readings(uneven_windows):
    sampling = Sampling(uneven_windows, np.zeros(SENSORS), has_free_delay=False)
    tangents = np.random.default_rng(1).normal(size=(WINDOWS, 4, ROWS, SENSORS))
    found = sampling.sample(tangents, EVERY)
    for d in range(4):
        np.testing.assert_allclose(found[:, d], sampling.sample(tangents[:, d], EVERY), rtol=1e-12, atol=1e-12)


def test_a_delayed_sensor_shows_earlier_values(windows):
    windows = replace(windows, weight=np.where(windows.time_in_steps < 2.5, 0.0, windows.weight))
    delay = np.array([2.0, 1.3])
    sampling = Sampling(windows, delay, has_free_delay=False)
    expected = curve(windows.time_in_steps - delay[windows.channel], windows.channel, EVERY[:, None])
    counts = windows.weight > 0.0
    np.testing.assert_allclose(sampling.sample(readings(), EVERY)[counts], expected[counts], rtol=1e-12)


def test_free_delays_and_their_slopes(windows):
    windows = replace(windows, time_in_steps=np.maximum(windows.time_in_steps, 2.5))
    sampling = Sampling(windows, np.zeros(SENSORS), has_free_delay=True)
    delay = np.array([[2.0, 1.3], [0.4, 0.0], [1.1, 2.2]])
    value, slope = sampling.sample_delayed(readings(), EVERY, delay)
    late = np.take_along_axis(delay, windows.channel, axis=1)
    expected = curve(windows.time_in_steps - late, windows.channel, EVERY[:, None])
    np.testing.assert_allclose(value, expected, rtol=1e-11, atol=1e-11)
    h = 1e-6
    more, less = (curve(windows.time_in_steps - late - sign * h, windows.channel, EVERY[:, None]) for sign in (1, -1))
    np.testing.assert_allclose(slope, (more - less) / (2 * h), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["windows", "uneven_windows"])
def test_scatter_is_the_transpose_of_sample(name, request):
    windows = request.getfixturevalue(name)
    sampling = Sampling(windows, np.array([0.0, 0.0]), has_free_delay=False)
    random, which = np.random.default_rng(2), np.array([0, 2])
    rows = random.normal(size=(2, sampling.reading_rows, SENSORS))
    cotangents = random.normal(size=(2, windows.channel.shape[1]))
    scattered = sampling.scatter(cotangents, which, sampling.reading_rows, SENSORS)
    np.testing.assert_allclose(np.sum(scattered * rows), np.sum(cotangents * sampling.sample(rows, which)), rtol=1e-12)

"""Sampling of readings: fixed stamps, delays, and the transpose."""

from dataclasses import replace

import numpy as np
import pytest

from hybridsim.data.recording import Recording
from hybridsim.identify.sampling import Sampling
from hybridsim.identify.windows import Measurements, Windows, cut_windows

DT, WINDOWS, ROWS, SENSORS = 0.1, 3, 9, 2
EVERY = np.arange(WINDOWS)


@pytest.fixture
def cut() -> Windows:
    """Three windows of eight steps with samples at time steps."""
    t = np.arange(25) * DT
    recording = Recording.from_arrays("run", t, {"a": np.sin(t), "b": np.cos(t)})
    return cut_windows([recording], Measurements({"a": 1.0, "b": 1.0}, {}, {}), (), dt=DT, length=0.8)


@pytest.fixture
def uneven(cut) -> Windows:
    """The same with samples between time steps, and two without weight."""
    random = np.random.default_rng(0)
    weight = cut.weight.copy()
    weight[2, -2:] = 0.0
    return replace(
        cut, position=np.clip(cut.position + random.uniform(0, 0.9, cut.position.shape), 0, 8), weight=weight
    )


def curve(position: np.ndarray, channel: np.ndarray, lane: np.ndarray) -> np.ndarray:
    """A cubic in time, different for each window and channel."""
    return (1.0 + lane) * (0.02 * position**3 - 0.1 * position**2) + (2.0 - channel) * position + lane


def readings(rows: int = ROWS) -> np.ndarray:
    lane, row, channel = np.meshgrid(EVERY, np.arange(rows), np.arange(SENSORS), indexing="ij")
    return curve(row.astype(float), channel, lane)


def test_samples_on_steps_are_the_readings_themselves(cut):
    sampling = Sampling(cut, np.zeros(SENSORS), has_free_delay=False)
    assert sampling.rows == 8
    found = sampling.sample(readings(8), EVERY)
    np.testing.assert_array_equal(found, curve(cut.position.round(), cut.channel, EVERY[:, None]))
    with_more_rows = sampling.sample(readings(12), EVERY)
    np.testing.assert_array_equal(with_more_rows, found)


def test_samples_from_a_later_step_on_are_the_readings_from_there_on(cut):
    late = replace(cut, position=cut.position + 1.0)
    sampling = Sampling(late, np.zeros(SENSORS), has_free_delay=False)
    assert sampling.rows == 9 and sampling._first_dense_row == 1
    found = sampling.sample(readings(9), EVERY)
    np.testing.assert_array_equal(found, curve(late.position.round(), late.channel, EVERY[:, None]))
    np.testing.assert_array_equal(sampling.sample(readings(12), EVERY), found)


def test_samples_between_steps_are_interpolated(uneven):
    sampling = Sampling(uneven, np.zeros(SENSORS), has_free_delay=False)
    assert sampling.rows == ROWS
    expected = curve(uneven.position, uneven.channel, EVERY[:, None])
    np.testing.assert_allclose(sampling.sample(readings(), EVERY), expected, rtol=1e-12, atol=1e-12)
    some = np.array([2, 1])
    np.testing.assert_allclose(sampling.sample(readings()[some], some), expected[some], rtol=1e-12, atol=1e-12)


def test_tangents_are_sampled_like_readings(uneven):
    sampling = Sampling(uneven, np.zeros(SENSORS), has_free_delay=False)
    tangents = np.random.default_rng(1).normal(size=(WINDOWS, 4, ROWS, SENSORS))
    found = sampling.sample(tangents, EVERY)
    for d in range(4):
        np.testing.assert_allclose(found[:, d], sampling.sample(tangents[:, d], EVERY), rtol=1e-12, atol=1e-12)


def test_a_delayed_sensor_shows_earlier_values(cut):
    cut = replace(cut, weight=np.where(cut.position < 2.5, 0.0, cut.weight))
    delay = np.array([2.0, 1.3])
    sampling = Sampling(cut, delay, has_free_delay=False)
    expected = curve(cut.position - delay[cut.channel], cut.channel, EVERY[:, None])
    counts = cut.weight > 0.0
    np.testing.assert_allclose(sampling.sample(readings(), EVERY)[counts], expected[counts], rtol=1e-12)


def test_free_delays_and_their_slopes(cut):
    cut = replace(cut, position=np.maximum(cut.position, 2.5))
    sampling = Sampling(cut, np.zeros(SENSORS), has_free_delay=True)
    delay = np.array([[2.0, 1.3], [0.4, 0.0], [1.1, 2.2]])
    value, slope = sampling.sample_delayed(readings(), EVERY, delay)
    late = np.take_along_axis(delay, cut.channel, axis=1)
    np.testing.assert_allclose(value, curve(cut.position - late, cut.channel, EVERY[:, None]), rtol=1e-11, atol=1e-11)
    h = 1e-6
    more, less = (curve(cut.position - late - sign * h, cut.channel, EVERY[:, None]) for sign in (1, -1))
    np.testing.assert_allclose(slope, (more - less) / (2 * h), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["cut", "uneven"])
def test_scatter_is_the_transpose_of_sample(name, request):
    windows = request.getfixturevalue(name)
    sampling = Sampling(windows, np.array([0.0, 0.0]), has_free_delay=False)
    random, which = np.random.default_rng(2), np.array([0, 2])
    rows = random.normal(size=(2, sampling.rows, SENSORS))
    cotangents = random.normal(size=(2, windows.channel.shape[1]))
    scattered = sampling.scatter(cotangents, which, sampling.rows, SENSORS)
    np.testing.assert_allclose(np.sum(scattered * rows), np.sum(cotangents * sampling.sample(rows, which)), rtol=1e-12)

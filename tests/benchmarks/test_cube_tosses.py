"""Tosses of a cube: error measures on synthetic ones, and both contact models compared with MuJoCo on recorded ones."""

import sys

import numpy as np
import pytest
from benchmarks.toss_data import ROUNDS, TOSSES, Errors, MissingData, Tosses, angles, errors, load
from benchmarks.toss_fit import Effort, Fit, fit
from benchmarks.toss_report import no_worse_than_mujoco, ratios, uncertainty
from benchmarks.toss_simulators import COMPLIANT, IMPULSE, MUJOCO, STEPS_PER_FRAME, in_cube_frame, variants

from benchmarks import cube_tosses


def quaternion(axis, degrees):
    """Quaternion of a rotation."""
    half = np.radians(degrees) / 2.0
    return np.concatenate([[np.cos(half)], np.sin(half) * np.array(axis)])


def synthetic_tosses(count=4, frames=6):
    """Static cubes in the air, each with a different orientation."""
    states = np.zeros((count * frames, 13))
    states[:, 2] = 0.3
    states[:, 3:7] = np.repeat([quaternion((0.6, 0.0, 0.8), 40.0 * k) for k in range(count)], frames, axis=0)
    return Tosses(states, np.arange(0, count * frames + 1, frames), 1 / 148, 0.37, 0.00081, 0.0524)


def test_errors_are_averages_over_the_toss_in_millimetres_and_degrees():
    tosses = synthetic_tosses()
    motions = [tosses.toss(k)[:, :7].copy() for k in (0, 2)]
    motions[0][3:, 0] += 0.004  # in half of the frames
    motions[1][:, 3:7] = -quaternion((0.6, 0.0, 0.8), 80.0 + 12.0)  # the sign of a quaternion is irrelevant
    found = errors(motions, tosses, [0, 2])
    np.testing.assert_allclose(found.position, [2.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.rotation, [0.0, 12.0], atol=1e-12)


@pytest.mark.parametrize("degrees", [1e-6, 1.0, 90.0, 179.0, 180.0])
def test_angles_are_accurate_from_tiny_ones_to_180_degrees(degrees):
    start, end = np.zeros((1, 13)), np.zeros((1, 7))
    start[0, 3:7], end[0, 3:7] = quaternion((0.0, 1.0, 0.0), 30.0), quaternion((0.0, 1.0, 0.0), 30.0 + degrees)
    assert angles(end, start) == pytest.approx(degrees, rel=1e-9)


def test_the_loss_weights_both_errors_equally():
    position, rotation = np.array([4.0, 9.0]), np.array([1.0, 100.0])
    loss = Errors(position, rotation).loss
    assert loss == pytest.approx(np.log(6.0 * 10.0))
    for halved in (Errors(position / 2, rotation), Errors(position, rotation / 2)):
        assert halved.loss == pytest.approx(loss - np.log(2.0))


def test_rounds_have_50_training_and_100_test_tosses_and_test_each_toss_once():
    for split in ROUNDS:
        assert (len(split.training), len(split.test)) == (50, 100)
        assert not set(split.training) & set(split.test)
    assert sorted(k for split in ROUNDS for k in split.test) == list(range(TOSSES))


def test_velocities_are_expressed_in_the_cube_frame():
    state = np.zeros((1, 13))
    state[0, 3:7], state[0, 7:10], state[0, 10:13] = quaternion((0.0, 0.0, 1.0), 90.0), (1.0, 2.0, 3.0), (4.0, 5.0, 6.0)
    q, qd = in_cube_frame(state)
    np.testing.assert_array_equal(q, state[:, :7])
    np.testing.assert_allclose(qd, [[4.0, 5.0, 6.0, 2.0, -1.0, 3.0]], atol=1e-14)


@pytest.mark.parametrize("variant", variants(), ids=lambda variant: variant.name)
def test_all_simulators_agree_in_free_flight(variant):
    tosses = synthetic_tosses()
    tosses.states[:, 7:13] = (0.3, -0.2, 0.1, 1.0, -2.0, 0.5)
    start = tosses.toss(1)
    (motion,) = variant.bind(tosses)(np.exp(np.mean(np.log(list(variant.ranges.values())), axis=1)), [1])
    time = tosses.frame_time * np.arange(len(motion))
    expected = start[0, :3] + np.outer(time, (0.3, -0.2, 0.1)) - np.outer(time**2 / 2, (0.0, 0.0, 9.81))
    # semi-implicit Euler leads by half a step
    lead = 9.81 * time[-1] * tosses.frame_time / STEPS_PER_FRAME / 2
    np.testing.assert_allclose(motion[:, :3], expected, atol=1.01 * lead)
    np.testing.assert_allclose(angles(motion, start), np.degrees(np.linalg.norm(start[0, 10:13])) * time, atol=1e-6)


def synthetic_fit(simulator, position, rotation):
    some = Errors(np.full(100, position) + np.arange(100), np.full(100, rotation))
    return Fit(simulator, "variant", {"friction": 0.2}, 5.0, 10, 1.0, some, some)


def test_worse_in_one_error_is_worse():
    fits = {IMPULSE: [synthetic_fit(IMPULSE, 9.0, 9.0)], COMPLIANT: [synthetic_fit(COMPLIANT, 8.0, 10.5)]}
    fits[MUJOCO] = [synthetic_fit(MUJOCO, 9.0, 10.0)]
    assert no_worse_than_mujoco(fits) == {IMPULSE: True, COMPLIANT: False}


def test_the_uncertainty_of_a_ratio_encloses_it():
    ours, theirs = synthetic_fit(IMPULSE, 9.0, 8.0).test, synthetic_fit(MUJOCO, 12.0, 10.0).test
    (low, high), rotation = uncertainty(ours, theirs)
    assert low < ratios(ours, theirs)[0] < high
    np.testing.assert_allclose(rotation, 0.8)


def test_fits_are_resumed_unless_the_settings_have_changed(tmp_path, monkeypatch):
    path, effort = tmp_path / "fits.json", Effort(2, 1, 3)
    record = cube_tosses.Record(path, effort, resume=False)
    for name in (IMPULSE, MUJOCO):
        record.add(synthetic_fit(name, 9.0, 10.0))
    again = cube_tosses.Record(path, effort, resume=True)
    assert [len(again.fits[name]) for name in (IMPULSE, COMPLIANT, MUJOCO)] == [1, 0, 1]
    np.testing.assert_array_equal(again.fits[IMPULSE][0].test.position, record.fits[IMPULSE][0].test.position)
    with pytest.raises(SystemExit, match="has different settings"):
        cube_tosses.Record(path, Effort(4, 1, 3), resume=True)
    monkeypatch.setattr(cube_tosses, "source_hash", lambda: "changed")
    again = cube_tosses.Record(path, effort, resume=True)
    assert [len(again.fits[name]) for name in (IMPULSE, COMPLIANT, MUJOCO)] == [0, 0, 1]


def test_missing_recordings_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRIDSIM_DATA", str(tmp_path))
    with pytest.raises(MissingData, match=r"tosses\.npz does not exist; set HYBRIDSIM_DATA"):
        load()


def test_help_shows_usage(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["cube_tosses", "--help"])
    with pytest.raises(SystemExit):
        cube_tosses.main()
    text = capsys.readouterr().out
    for word in ("--quick", "--resume", "--json", "--figure", "HYBRIDSIM_DATA=~/data"):
        assert word in text


@pytest.fixture(scope="module")
def recordings():
    try:
        return load()
    except MissingData as error:
        pytest.skip(str(error))


FITTED = {
    IMPULSE: [
        ("circular cone", 0.1772859, 0.01633218),
        ("circular cone", 0.1794039, 0.01925647),
        ("circular cone", 0.1873174, 0.1307874),
        ("circular cone", 0.1758775, 0.005152102),
        ("circular cone", 0.1771314, 0.1360765),
    ],
    COMPLIANT: [
        ("Coulomb", 0.1780239, 98162.28, 9.161293),
        ("Coulomb", 0.1809932, 278250, 6.411533),
        ("Coulomb", 0.1865955, 120239.7, 4.369458),
        ("Coulomb", 0.1774837, 134976.7, 3.231642),
        ("Coulomb", 0.1798587, 32958.35, 6.022583),
    ],
    MUJOCO: [
        ("elliptic, implicitfast", 0.1867508, 0.00309559, 2.749636),
        ("elliptic, Euler", 0.1806265, 0.002498537, 2.531847),
        ("elliptic, Euler", 0.1854803, 0.01316339, 2.304676),
        ("elliptic, Euler", 0.1816159, 0.01153377, 1.392753),
        ("elliptic, Euler", 0.1788427, 0.002922117, 2.406751),
    ],
}
"""Fits of the full benchmark, by round: variant and parameters."""


@pytest.mark.slow
def test_both_contact_models_are_not_worse_than_mujoco(recordings):
    """A few more evaluations from the parameters of the benchmark, then the test tosses."""
    pytest.importorskip("mujoco")
    effort = Effort(samples=1, searches=1, evaluations=10)
    fits = {}
    for name, rounds in FITTED.items():
        fits[name] = []
        for split, (variant, *initial) in zip(ROUNDS, rounds, strict=True):
            (variant,) = (f for f in variants() if (f.simulator, f.variant) == (name, variant))
            fits[name].append(fit([variant], recordings, split, effort, initial_values=[initial]))
    assert no_worse_than_mujoco(fits) == {IMPULSE: True, COMPLIANT: True}

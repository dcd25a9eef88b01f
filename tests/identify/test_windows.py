"""Windows: their samples, sample times and inputs."""

import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.data.run import Run
from hybridsim.data.series import Series
from hybridsim.identify.stage import Stage
from hybridsim.identify.windows import ChannelRoles, InputSignal, cut_windows, time_span
from support.fit_problems import pendulum_problem

DT = 0.01
ONE = ChannelRoles({"q": 0.1}, {}, {})


def run(steps: int, name: str = "run", start: float = 0.0) -> Run:
    t = start + np.arange(steps + 1) * DT
    return Run.from_arrays(name, t, {"q": np.arange(steps + 1.0), "u": 100.0 + np.arange(steps + 1)})


def recording_of_series(**series) -> Run:
    return Run(
        "run", {name: Series(name, np.asarray(t, float), np.asarray(v, float)) for name, (t, v) in series.items()}
    )


def test_a_run_is_cut_from_its_beginning_and_the_remainder_is_a_window():
    windows = cut_windows([run(25)], ONE, (), dt=DT, length=0.1)
    assert (windows.count, windows.steps) == (3, 10)
    np.testing.assert_allclose(windows.start, [0.0, 0.1, 0.2])
    np.testing.assert_array_equal(np.count_nonzero(windows.weight, axis=1), [10, 10, 6])
    np.testing.assert_array_equal(windows.value[1, :10], np.arange(10, 20))
    np.testing.assert_allclose(windows.time_in_steps[1, :10], np.arange(10), atol=1e-9)
    np.testing.assert_array_equal(windows.weight[2], [10.0] * 6 + [0.0] * 4)
    assert windows.sample_count == 26


def test_runs_do_not_follow_each_other():
    windows = cut_windows([run(20), run(20, "other", start=5.0)], ONE, (), dt=DT, length=0.1)
    np.testing.assert_array_equal(windows.recording, [0, 0, 1, 1])
    np.testing.assert_array_equal(windows.follows, [False, True, False, True])
    np.testing.assert_allclose(windows.start, [0.0, 0.1, 5.0, 5.1])


def test_with_a_stride_windows_overlap_and_do_not_follow_each_other():
    windows = cut_windows([run(20)], ONE, (), dt=DT, length=0.1, stride=0.05)
    np.testing.assert_allclose(windows.start, [0.0, 0.05, 0.1, 0.15])
    assert not windows.follows.any()
    np.testing.assert_array_equal(windows.value[1, :3], [5, 6, 7])


def test_a_window_after_a_gap_does_not_follow_the_one_before_the_gap():
    t = np.concatenate([np.arange(10), np.arange(20, 31)]) * DT
    windows = cut_windows([recording_of_series(q=(t, t))], ONE, (), dt=DT, length=0.1)
    np.testing.assert_allclose(windows.start, [0.0, 0.2])
    np.testing.assert_array_equal(windows.follows, [False, False])


def test_samples_at_the_beginning_or_at_the_end():
    at_start = cut_windows([run(20)], ONE, (), dt=DT, length=0.1)
    at_end = cut_windows([run(20)], ONE, (), dt=DT, length=0.1, include_start=False)
    np.testing.assert_array_equal(at_start.value[1], np.arange(10, 20))
    np.testing.assert_array_equal(at_end.value[1], np.arange(11, 21))
    np.testing.assert_allclose(at_end.time_in_steps[1], np.arange(1, 11), atol=1e-9)


def test_samples_during_the_skipped_time_are_left_out():
    windows = cut_windows([run(20)], ONE, (), dt=DT, length=0.1, skip=0.03)
    np.testing.assert_array_equal(windows.value[0], np.arange(3, 10))


def test_channels_keep_their_time_stamps():
    channel_roles = ChannelRoles({"a": 0.1, "b": 0.5}, {}, {})
    fast, slow = np.arange(0, 0.2001, 0.01), np.arange(0.013, 0.19, 0.025)
    windows = cut_windows([recording_of_series(a=(fast, fast), b=(slow, slow))], channel_roles, (), dt=DT, length=0.05)
    assert windows.start[0] == pytest.approx(0.013)
    for w in range(windows.count):
        used = windows.weight[w] > 0.0
        times = windows.start[w] + windows.time_in_steps[w, used] * DT
        np.testing.assert_allclose(times, windows.value[w, used], atol=1e-12)
        assert (np.diff(windows.time_in_steps[w, used]) >= 0.0).all()
        np.testing.assert_array_equal(windows.weight[w, used], np.where(windows.channel[w, used] == 0, 10.0, 2.0))
    late = slow[slow < fast[-1] + 1e-12]
    count = np.count_nonzero((windows.channel == 1) & (windows.weight > 0))
    assert count == len(late) - (late[-1] >= windows.start[-1] + 0.05)


def test_commands_are_held_from_their_time_stamps():
    channel_roles = ChannelRoles({"q": 0.1}, {"motor": InputSignal("u")}, {})
    windows = cut_windows([run(20)], channel_roles, ("other", "motor"), dt=DT, length=0.1)
    assert windows.inputs.u.shape == (2, 10, 2) and not windows.inputs.u[..., 0].any()
    np.testing.assert_array_equal(windows.inputs.u[..., 1], 100.0 + np.arange(20).reshape(2, 10))


@pytest.mark.parametrize("start", [0.0, 0.1, 1.7, 1.7e9])
def test_rounding_of_stamps_does_not_delay_commands(start):
    # sums and products of time steps differ by an ulp, which is coarse on a clock that counts from 1970
    t = start + np.arange(301) * DT
    channel_roles = ChannelRoles({"q": 0.1}, {"motor": InputSignal("u")}, {})
    recording = Run.from_arrays("run", t, {"q": np.zeros(301), "u": np.arange(301.0)})
    windows = cut_windows([recording], channel_roles, ("motor",), dt=DT, length=0.3)
    np.testing.assert_array_equal(windows.inputs.u[:10, :, 0].ravel(), np.arange(300))


def test_linearly_interpolated_inputs_are_evaluated_at_the_midpoint_of_a_step():
    channel_roles = ChannelRoles({"q": 0.1}, {}, {"wind": InputSignal("u", interpolation="linear")})
    windows = cut_windows([run(20)], channel_roles, (), dt=DT, length=0.1)
    np.testing.assert_allclose(windows.inputs.user["wind"].ravel(), 100.5 + np.arange(20), rtol=1e-12)


def test_slow_commands_are_held_over_several_steps():
    channel_roles = ChannelRoles({"q": 0.1}, {"motor": InputSignal("u")}, {})
    t = np.arange(21) * DT
    recording = recording_of_series(q=(t, t), u=([0.0, 0.05, 0.2], [1.0, 2.0, 3.0]))
    windows = cut_windows([recording], channel_roles, ("motor",), dt=DT, length=0.2)
    np.testing.assert_array_equal(windows.inputs.u[0, :, 0], [1.0] * 5 + [2.0] * 15)


def test_selected_windows():
    channel_roles = ChannelRoles({"q": 0.1}, {"motor": InputSignal("u")}, {"wind": InputSignal("u")})
    windows = cut_windows([run(30)], channel_roles, ("motor",), dt=DT, length=0.1)
    selected = windows.select(np.array([2, 0]))
    assert selected.count == 2 and selected.value[0, 0] == 20.0
    np.testing.assert_array_equal(selected.inputs.u[1], windows.inputs.u[0])
    np.testing.assert_array_equal(selected.inputs.user["wind"][0], windows.inputs.user["wind"][2])


def test_the_span_is_the_overlap_of_all_channels():
    recording = recording_of_series(q=([0.0, 1.0, 2.0], [0, 0, 0]), u=([0.5, 3.0], [1, 1]), other=([9.0, 9.5], [0, 0]))
    assert time_span(recording, ChannelRoles({"q": 1.0}, {"motor": InputSignal("u")}, {})) == (0.5, 2.0)
    with pytest.raises(HybridsimError, match="'run': its channels do not overlap in time"):
        time_span(recording, ChannelRoles({"q": 1.0, "other": 1.0}, {}, {}))


def test_windows_shorter_than_the_delay_are_an_error():
    with pytest.raises(HybridsimError, match=r"windows of 0\.1 s.*delay and burn-in, which may be up to 0\.2 s"):
        cut_windows([run(20)], ONE, (), dt=DT, length=0.1, skip=0.2)


def test_the_duration_of_windows():
    fit_problem = pendulum_problem(steps=80)
    for window, expected in ((0.2, 0.2), (0.3, 0.3), (2.0, 0.8)):
        objective, _ = fit_problem.objective(Stage(window=window))
        assert objective.windows.duration == pytest.approx(expected)

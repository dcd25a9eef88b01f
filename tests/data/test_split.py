import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridsim.data.run import Run
from hybridsim.data.segments import segments
from hybridsim.data.split import split_runs


def runs(count):
    t = np.arange(3.0)
    return [Run.from_arrays(f"run{k}", t, {"q": t + k}) for k in range(count)]


def names(recordings):
    return [recording.name for recording in recordings]


def test_held_out_runs_are_spread_evenly():
    training, held_out = split_runs(runs(8))
    assert names(held_out) == ["run2", "run6"]
    assert names(training) == ["run0", "run1", "run3", "run4", "run5", "run7"]
    assert names(split_runs(runs(6), held_out=0.5)[1]) == ["run1", "run3", "run5"]


@settings(max_examples=60)
@given(st.integers(2, 40), st.floats(0.001, 0.999))
def test_every_run_is_in_one_set_and_neither_set_is_empty(count, share):
    recordings = runs(count)
    training, held_out = split_runs(recordings, held_out=share)
    assert training and held_out
    assert sorted(names(training) + names(held_out)) == sorted(names(recordings))
    assert abs(len(held_out) - share * count) <= 1.0


def test_runs_can_be_named():
    training, held_out = split_runs(runs(4), held_out=["run3", "run0"])
    assert names(held_out) == ["run0", "run3"] and names(training) == ["run1", "run2"]
    assert names(split_runs(runs(4), held_out="run2")[1]) == ["run2"]


def test_validation_can_be_empty():
    training, held_out = split_runs(runs(1), held_out=0.0)
    assert names(training) == ["run0"] and held_out == []


@pytest.mark.parametrize(
    ("recordings", "held_out", "word"),
    [
        (runs(4), ["run7"], "did you mean"),
        (runs(2), ["run0", "run1"], "leave some"),
        (runs(2) + runs(2), ["run0"], "a unique name"),
        (runs(1), 0.25, "held_out to 0"),
        (runs(4), 1.0, "less than 1"),
        (runs(4), -0.1, "from 0"),
    ],
)
def test_invalid_splits_are_refused(problems, recordings, held_out, word):
    (problem,) = problems(lambda: split_runs(recordings, held_out=held_out))
    assert problem.code == "data.split" and word in problem.fix


def test_segments_of_a_run_stay_together():
    parts = [part for k in range(3) for part in segments(run_with_a_gap(f"run{k}"), max_sample_interval=0.5)]
    assert [part.name for part in parts][:2] == ["run0.0", "run0.1"]
    training, held_out = split_runs(parts, held_out=0.3)
    assert [one.name for one in held_out] == ["run1.0", "run1.1"] and len(training) == 4
    assert [one.name for one in split_runs(parts, held_out=["run2"])[1]] == ["run2.0", "run2.1"]
    assert [one.name for one in split_runs(parts, held_out=["run2.1"])[1]] == ["run2.1"]
    # if there is only one run, some of its segments are held out
    assert [one.name for one in split_runs(parts[:2], held_out=0.3)[1]] == ["run0.1"]


def test_segments_have_no_warnings_about_gaps():
    run = run_with_a_gap("run")
    assert [problem.code for problem in run.problems] == ["data.gap"]
    assert all(not segment.problems for segment in segments(run, max_sample_interval=0.5))


def run_with_a_gap(name: str) -> Run:
    t = np.concatenate([np.arange(20), np.arange(60, 90)]) * 0.1
    return Run.from_arrays(name, t, {"q": np.sin(t)})

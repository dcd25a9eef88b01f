"""Suspicious but usable data: reported in the recording's problems, never raised, never repaired."""

import numpy as np
import pytest

from hybridsim.core.errors import Severity
from hybridsim.data.channel import Channel
from hybridsim.data.run import Run
from support.load_run import load_run

T = np.arange(0.0, 2.0, 0.01)


def problems_by_code(recording):
    return {problem.code: problem for problem in recording.problems}


@pytest.fixture
def write_table(write_columns):
    return lambda **columns: write_columns(".npz", {"time": T, **columns})


def test_good_data_have_no_problems(write_table):
    rng = np.random.default_rng(5)
    file = write_table(q=np.sin(9 * T) * 3.1, v=rng.normal(size=len(T)))
    assert load_run(file, [Channel("q", "q", unit="rad"), Channel("v", "v")]).problems == ()


def test_a_constant_channel(write_table):
    recording = load_run(write_table(f=np.full(len(T), 0.3)), [Channel("f", "force")])
    problem = problems_by_code(recording)["data.constant"]
    assert (problem.severity, problem.element) == (Severity.WARNING, "f") and "'force'" in problem.message


def test_two_channels_with_the_same_values(write_table):
    q = np.random.default_rng(4).normal(size=len(T))
    file = write_table(a=q, b=q.copy(), c=np.nextafter(q, 9.0), d=np.zeros(len(T)), e=np.zeros(len(T)))
    recording = load_run(file, [Channel(name, name) for name in "abcde"])
    duplicates = [p for p in recording.problems if p.code == "data.duplicate_channel"]
    assert [p.message for p in duplicates] == ["channels 'a', 'b' are bitwise identical"]


def test_a_gap(write_text):
    t = [*np.arange(0.0, 1.0, 0.1), *np.arange(3.0, 4.0, 0.1), *np.arange(5.0, 6.0, 0.1)]
    file = write_text("time,q\n" + "\n".join(f"{x},{x}" for x in t))
    problem = problems_by_code(load_run(file, [Channel("q", "q")]))["data.gap"]
    assert (problem.severity, problem.line) == (Severity.WARNING, 12)
    assert "gap of 2.1 s before line 12" in problem.message and "2 gaps in total" in problem.message


def test_a_gap_from_dropped_samples(write_table):
    q, v = np.sin(T), np.cos(T)
    q[50:70] = np.nan
    recording = load_run(write_table(q=q, v=v), [Channel("q", "q"), Channel("v", "v")], on_nan="drop")
    assert problems_by_code(recording)["data.gap"].element == "q"


@pytest.mark.parametrize("unit", ["rad", "deg"])
def test_a_wrapped_angle(write_table, unit):
    period = {"rad": 2 * np.pi, "deg": 360.0}[unit]
    file = write_table(q=np.mod(0.7 * T + 0.1, 1.0) * period)
    problem = problems_by_code(load_run(file, [Channel("q", "q", unit=unit)]))["data.jump"]
    assert problem.line == int(np.argmax(0.7 * T + 0.1 >= 1.0)) + 1 and problem.fix == "set unwrap=True"
    assert load_run(file, [Channel("q", "q", unit=unit, unwrap=True)]).problems == ()


def test_values_without_a_unit_that_look_like_an_angle(write_table):
    wrapped = np.mod(5.0 * T, 2 * np.pi) - np.pi
    recording = load_run(write_table(q=wrapped), [Channel("q", "q")])
    assert "unit='rad'" in problems_by_code(recording)["data.jump"].fix
    switched = np.where(np.sin(9 * T) > 0, 3.0, -3.0)
    assert load_run(write_table(u=switched), [Channel("u", "u")]).problems == ()
    assert load_run(write_table(x=wrapped), [Channel("x", "x", unit="m")]).problems == ()


def test_an_angle_too_fast_to_be_unwrapped(write_table):
    file = write_table(q=np.mod(0.45 * np.arange(len(T)), 1.0))
    assert "data.unwrap" in problems_by_code(load_run(file, [Channel("q", "q", unit="rev", unwrap=True)]))


@pytest.mark.parametrize(("factor", "unit"), [(1e3 * 20, "ms"), (1e9, "ns")])
def test_times_in_another_unit_than_specified(factor, unit):
    recording = Run.from_arrays("run", T * factor, {"q": np.sin(T)})
    problem = problems_by_code(recording)["data.time_unit"]
    assert problem.severity is Severity.WARNING and repr(unit) in problem.fix


def test_times_that_are_too_short_to_be_seconds():
    assert "data.time_unit" in problems_by_code(Run.from_arrays("run", T * 1e-9, {"q": np.sin(T)}))


def test_uneven_sampling_is_noted():
    t = np.cumsum(np.random.default_rng(0).exponential(0.01, size=500))
    note = problems_by_code(Run.from_arrays("run", t, {"q": np.sin(t)}))["data.uneven"]
    assert note.severity is Severity.NOTE
    jittered = T + np.random.default_rng(0).uniform(-0.001, 0.001, size=len(T))
    assert Run.from_arrays("run", jittered, {"q": np.sin(jittered)}).problems == ()

"""Units, scales and angles of channels, and invalid channels."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridsim.core.errors import SpecificationError
from hybridsim.data.channel import Channel, Command
from hybridsim.data.units import UNITS
from support.load_run import load_run


def load_channel(write_text, samples, **channel):
    rows = "\n".join(f"{k},{sample!r}" for k, sample in enumerate(samples))
    return load_run(write_text(f"time,q\n{rows}\n"), [Channel("q", "q", **channel)])


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("", 90.0),
        ("deg", math.pi / 2),
        ("rad", 90.0),
        ("rev", 180 * math.pi),
        ("deg/s", math.pi / 2),
        ("rpm", 3 * math.pi),
        ("rad/s", 90.0),
        ("mm", 0.09),
        ("cm", 0.9),
        ("inch", 2.286),
        ("m/s", 90.0),
        ("ms", 0.09),
        ("us", 9e-5),
        ("ns", 9e-8),
        ("N", 90.0),
        ("N*m", 90.0),
        ("Nm", 90.0),
        ("mNm", 0.09),
        ("A", 90.0),
        ("g", 882.5985),
        ("px", 90.0),
    ],
)
def test_units_become_si_units(write_text, unit, expected):
    assert load_channel(write_text, [90.0, 0.0], unit=unit).series["q"].values[0] == pytest.approx(expected, rel=1e-15)


def test_scale_and_offset_come_after_the_unit(write_text):
    values = load_channel(write_text, [180.0, 0.0], unit="deg", scale=-2.0, offset=1.0).series["q"].values
    assert values == pytest.approx([1.0 - 2 * math.pi, 1.0])


def test_unknown_units_list_all_known_ones(write_text, problems):
    (problem,) = problems(lambda: load_channel(write_text, [1.0, 2.0], unit="degree"))
    assert problem.code == "data.unit" and "did you mean 'deg'" in problem.fix
    assert all(unit in problem.fix for unit in UNITS)


def test_a_time_unit_must_be_one_of_time(write_text, problems):
    file = write_text("time,q\n0,1\n10,2\n")
    assert load_run(file, [Channel("q", "q")], time_unit="ms").series["q"].t.tolist() == [0.0, 0.01]
    (problem,) = problems(lambda: load_run(file, [Channel("q", "q")], time_unit="deg"))
    assert problem.code == "data.unit" and "'ms'" in problem.fix


@pytest.mark.parametrize("unit", ["rad", "mrad", "deg", "rev"])
@settings(max_examples=10)
@given(rate=st.floats(-9.0, 9.0), start=st.floats(-20.0, 20.0))
def test_unwrapped_angles_have_no_jumps(write_text, unit, rate, start):
    angle = start + rate * np.sin(np.arange(0.0, 12.0, 0.1))
    period = UNITS[unit].period
    wrapped = np.mod(angle / (2 * math.pi) + 0.5, 1.0) * period - period / 2
    recording = load_channel(write_text, wrapped.tolist(), unit=unit, unwrap=True)
    values = recording.series["q"].values
    assert np.diff(values) == pytest.approx(np.diff(angle), abs=1e-9)
    assert "data.jump" not in {problem.code for problem in recording.problems}


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"unwrap": True, "unit": "m"}, "angle"),
        ({"unwrap": True}, "rad, mrad, deg, rev"),
        ({"column": "", "velocity_of": "P", "noise": 0.1}, "did you mean 'p'"),
        ({"name": "p"}, "a unique name"),
    ],
)
def test_channels_that_do_not_fit_together(write_text, problems, settings, word):
    channel = Channel(**{"measures": "q", "column": "q", **settings})
    file = write_text("time,p,q\n0,1,2\n1,2,4\n")
    found = problems(lambda: load_run(file, [Channel("p", "p"), channel]))
    assert {problem.code for problem in found} == {"data.channel"}
    assert any(word in problem.message + problem.fix for problem in found)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"scale": 0.0}, "must not be zero"),
        ({"scale": math.inf}, "must be finite"),
        ({"offset": math.nan}, "must be finite"),
        ({"column": ""}, "column or velocity_of"),
        ({"velocity_of": "p"}, "column or velocity_of"),
        ({"column": "", "velocity_of": "p", "noise": 0.1, "scale": 2.0}, "specify it for the channel 'p'"),
        ({"column": "", "velocity_of": "p"}, "its errors are correlated"),
        ({"measures": ""}, "measures of Channel"),
        ({"measures": abs}, "is needed for a quantity that a function computes"),
        ({"gain": 0.0}, "must not be zero"),
        ({"delay": -0.1}, "must be at least 0, not -0.1"),
        ({"noise": True}, "must be a number or 'estimate', not true"),
        ({"filter_window": 11}, "requires velocity_of"),
    ],
)
def test_invalid_channels(settings, word):
    with pytest.raises(SpecificationError) as error:
        Channel(**{"measures": "q", "column": "q", **settings})
    assert word in str(error.value)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({}, "must have exactly one target"),
        ({"joint": "elbow", "input": "wind"}, "must have exactly one target"),
        ({"input": "wind speed"}, "is not a valid name in an address"),
        ({"column": "", "joint": "elbow"}, "has no 'column'"),
        ({"joint": "elbow", "interpolation": "cubic"}, "valid values are hold, linear"),
    ],
)
def test_invalid_commands(settings, word):
    with pytest.raises(SpecificationError) as error:
        Command(**{"column": "u", **settings})
    assert word in str(error.value)


def test_a_recording_needs_channels(write_text, problems):
    (problem,) = problems(lambda: load_run(write_text("time,q\n0,1\n1,2\n"), []))
    assert problem.code == "data.channel"

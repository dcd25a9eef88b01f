"""Recordings: unusable data are refused with all errors together; nothing is repaired silently."""

import numpy as np
import pytest

from hybridsim.core.errors import DataError, Severity, SpecificationError
from hybridsim.data.channel import Channel
from hybridsim.data.load import load_recordings
from hybridsim.data.run import Run
from hybridsim.data.series import Series
from support.load_run import load_run


def test_all_errors_are_reported_together(write_text, problems):
    file = write_text("time,q,v,mode\n0,1,2,a\n1,nan,3,b\n0.5,3,,c\n")
    channels = [
        Channel("q", "q"),
        Channel("v", "v"),
        Channel("mode", "mode"),
        Channel("w", "w"),
        Channel("q", "a", unit="parsec"),
    ]
    found = problems(lambda: load_run(file, channels))
    assert {(p.code, p.element, p.line) for p in found} == {
        ("data.unit", "a", 0),
        ("data.time_order", "time", 4),
        ("data.nan", "q", 3),
        ("data.nan", "v", 4),
        ("data.text", "mode", 2),
        ("data.missing_column", "w", 0),
    }
    assert all(p.fix and p.severity is Severity.ERROR for p in found)


def test_unknown_columns_suggest_the_closest_names(write_text, problems):
    file = write_text("time,shoulder_angle,elbow_angle\n0,1,2\n1,2,3\n")
    channels = [Channel("Shoulder_Angle", "a"), Channel("torque", "b")]
    first, second = problems(lambda: load_run(file, channels))
    assert first.fix.startswith("did you mean 'shoulder_angle'") and first.element == "Shoulder_Angle"
    assert second.fix == "valid names are 'time', 'shoulder_angle', 'elbow_angle'"


def test_a_file_without_times_needs_a_step(write_text, problems):
    file = write_text("1,2\n2,3\n3,5\n")
    (problem,) = problems(lambda: load_run(file, [Channel("1", "q")]))
    assert problem.code == "data.missing_time" and "sample_interval=0.001" in problem.fix
    recording = load_run(file, [Channel("1", "q")], sample_interval=2.5, time_unit="ms")
    assert recording.series["q"].t == pytest.approx([0.0, 0.0025, 0.005])
    for step in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(SpecificationError, match="sample_interval of RecordingOptions must be"):
            load_run(file, [Channel("1", "q")], sample_interval=step)


def test_times_that_repeat_or_decrease_are_errors(write_text, problems):
    file = write_text("time,q\n0,1\n1,2\n1,3\n2,4\n1.5,5\n1.5,6\n3,7\n")
    decreasing, repeated = problems(lambda: load_run(file, [Channel("q", "q")]))
    assert (decreasing.code, decreasing.line) == (
        "data.time_order",
        6,
    ) and "from 2 to 1.5 s in line 6" in decreasing.message
    assert (repeated.code, repeated.line) == ("data.time_duplicate", 4) and "1 more such row" in repeated.message


def test_samples_out_of_order_can_be_dropped_with_a_note(write_text):
    file = write_text("time,q\n0,1\n1,2\n1,3\n2,4\n1.5,5\n3,7\n")
    recording = load_run(file, [Channel("q", "q")], on_out_of_order="drop")
    assert recording.series["q"].t.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert recording.series["q"].values.tolist() == [1.0, 2.0, 4.0, 7.0]
    (note,) = recording.problems
    assert (note.code, note.line, note.severity) == ("data.time_order", 4, Severity.NOTE)
    assert "dropped 2 samples" in note.message


def test_samples_without_a_value_can_be_dropped_with_a_note(write_text):
    file = write_text("time,q,v\n0,1,1\n1,nan,2\n2,3,4\n,4,4\n4,5,7\n")
    recording = load_run(file, [Channel("q", "q"), Channel("v", "v")], on_nan="drop")
    assert recording.series["q"].t.tolist() == [0.0, 2.0, 4.0]
    assert recording.series["v"].t.tolist() == [0.0, 1.0, 2.0, 4.0]
    notes = {(p.code, p.element, p.line): p for p in recording.problems if p.code == "data.nan"}
    assert [*notes] == [("data.nan", "time", 5), ("data.nan", "q", 3)]
    assert all(note.severity is Severity.NOTE and "dropped 1 sample" in note.message for note in notes.values())


def test_angles_are_unwrapped_across_dropped_samples(write_text):
    file = write_text("time,q\n0,170\n1,nan\n2,-170\n3,-160\n")
    recording = load_run(file, [Channel("q", "q", unit="deg", unwrap=True)], on_nan="drop")
    assert np.rad2deg(recording.series["q"].values) == pytest.approx([170.0, 190.0, 200.0])


@pytest.mark.parametrize("rows", ["0,1\n", "0,nan\n1,nan\n2,1\n"])
def test_fewer_than_two_samples_are_an_error(write_text, problems, rows):
    found = problems(lambda: load_run(write_text("time,q\n" + rows), [Channel("q", "q")], on_nan="drop"))
    assert [p.code for p in found] == ["data.empty"]


def test_channels_with_their_own_times(tmp_path, problems):
    path = tmp_path / "run.npz"
    np.savez(path, t1=np.arange(4.0), q=np.arange(4.0) ** 2, t2=np.arange(3.0) + 0.5, f=np.ones(3) * [1, 2, 3])
    channels = [Channel("q", "q", time="t1"), Channel("f", "f", time="t2")]
    recording = load_run(path, channels)
    assert recording.series["f"].t.tolist() == [0.5, 1.5, 2.5]
    assert (recording.start, recording.end) == (0.5, 2.5)
    (problem,) = problems(lambda: load_run(path, [Channel("f", "f")], time="t1"))
    assert problem.code == "data.length" and "3 samples" in problem.message


def test_a_recording_of_several_files(write_text, problems):
    arm = write_text("time,q,temperature\n0,1,20\n1,2,21\n", "arm.csv")
    force = write_text("time,f,temperature\n0.1,5,30\n0.9,6,31\n2,7,35\n", "force.csv")
    channels = [Channel("q", "q"), Channel("f", "f"), Channel("temperature", "heat", file="force.csv")]
    recording = load_run([arm, force], channels)
    assert recording.name == "arm"
    assert [len(recording.series[name]) for name in ("q", "f", "heat")] == [2, 3, 3]
    assert [file for file, _ in recording.sources] == [str(arm), str(force)]
    (problem,) = problems(lambda: load_run([arm, force], [Channel("temperature", "heat")]))
    assert problem.code == "data.ambiguous" and "arm.csv" in problem.message
    (problem,) = problems(lambda: load_run([arm, force], [Channel("q", "q", file="leg.csv")]))
    assert problem.code == "data.file"
    (problem,) = problems(lambda: load_run([arm, force], [Channel("speed", "q")]))
    assert problem.code == "data.missing_column" and "force.csv" in problem.message


def test_errors_of_several_files_are_reported_together(write_text, tmp_path, problems):
    good = write_text("time,q\n0,1\n1,nan\n", "good.csv")
    found = problems(lambda: load_run([good, tmp_path / "gone.csv"], [Channel("q", "q")]))
    assert [p.code for p in found] == ["file.missing", "data.nan"]


def test_velocities_that_were_not_measured_are_estimated_with_a_note(write_text, problems):
    rows = "\n".join(f"{t},{t**3 - t}" for t in np.arange(0.0, 1.0, 0.05).tolist())
    file = write_text("time,q\n" + rows)
    recording = load_run(file, [Channel(measures="v", velocity_of="q", noise=0.1), Channel("q", "q")])
    t = recording.series["q"].t
    assert [*recording.series] == ["v", "q"]
    assert recording.series["v"].values == pytest.approx(3 * t**2 - 1, abs=1e-12)
    (note,) = recording.problems
    assert (note.code, note.severity) == ("data.estimated", Severity.NOTE) and "9 samples" in note.message
    (problem,) = problems(
        lambda: load_run(
            file, [Channel("q", "q"), Channel(measures="v", velocity_of="q", noise=0.1, filter_window=0.01)]
        )
    )
    assert problem.code == "data.window"


def test_arrays_in_memory_are_checked_like_files(problems):
    t = np.arange(5.0)
    recording = Run.from_arrays("swing", t, {"q": t**2, "v": 2 * t})
    assert recording.series["q"].values.tolist() == [0.0, 1.0, 4.0, 9.0, 16.0]
    assert recording.name == "swing" and recording.sources == ()
    bad = {"q": [0.0, np.nan, 1.0, 2.0, 3.0], "v": np.zeros((5, 2)), "w": np.arange(4.0), "x": ["a"] * 5, "t": t}
    found = problems(lambda: Run.from_arrays("swing", t, bad))
    assert [(p.code, p.element) for p in found] == [
        ("data.nan", "q"),
        ("data.array", "v"),
        ("data.length", "w"),
        ("data.array", "x"),
    ]
    assert "entry 1" in found[0].message
    (problem,) = problems(lambda: Run.from_arrays("swing", t[::-1], {"q": t}))
    assert problem.code == "data.time_order"
    assert len(Run.from_arrays("swing", t, {"q": bad["q"]}, on_nan="drop").series["q"]) == 4


def test_invalid_series_are_refused_and_series_are_read_only(problems):
    values = np.array([1.0, 2.0])
    series = Series("q", np.array([0.0, 1.0]), values)
    values[0] = 5.0
    assert series.values[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        series.t[0] = 3.0
    for t, values in [([0.0, 1.0], [1.0]), ([0.0], [1.0]), ([0.0, np.nan], [1.0, 2.0]), ([1.0, 1.0], [1.0, 2.0])]:
        (problem,) = problems(lambda t=t, values=values: Series("q", np.array(t), np.array(values)))
        assert problem.code == "data.series"


def test_options_are_checked(write_text):
    file = write_text("time,q\n0,1\n1,2\n")
    with pytest.raises(SpecificationError, match="on_nan of RecordingOptions has the invalid value 'ignore'"):
        load_recordings(file, on_nan="ignore")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no files are specified"):
        load_recordings([])


def test_messages_give_location_and_fix(write_text):
    file = write_text("time,q\n0,1\n1,two\n")
    with pytest.raises(DataError) as caught:
        load_run(file, [Channel("q", "elbow")])
    assert str(caught.value) == (
        f"{file}:3: error: column 'q' has the text 'two' in line 3, not a number\n"
        "    fix: correct the cell, or leave it empty where nothing was measured"
    )

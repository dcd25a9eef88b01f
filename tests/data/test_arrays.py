"""Multidimensional arrays: columns by index, stacked runs, concatenated runs."""

import h5py
import numpy as np
import pytest

from hybridsim.data.channel import Channel
from hybridsim.data.read import read_table
from support.load_run import load_run, load_runs


def save_arrays(path, arrays):
    if path.suffix == ".npz":
        np.savez(path, allow_pickle=False, **arrays)
    else:
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    return path


@pytest.fixture(params=[".npz", ".h5"])
def path(request, tmp_path):
    return tmp_path / f"runs{request.param}"


def test_columns_of_an_array_are_named_by_index(path):
    save_arrays(path, {"t": [0.0, 0.1, 0.2], "angles": np.arange(6.0).reshape(3, 2)})
    table = read_table(path)
    assert table.columns["angles[1]"].tolist() == [1.0, 3.0, 5.0]
    recording = load_run(path, [Channel("angles[0]", "elbow")], time="t")
    assert recording.series["elbow"].values.tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("column", "word"),
    [
        ("angles", "choose one of them: 'angles[0]' to 'angles[1]'"),
        ("angles[2]", "choose one of them"),
        ("dt", "choose another"),
        ("label", "choose another"),
        ("stack[0]", "several_runs=True"),
        ("wide[0]", "transpose"),
        ("film[0]", "choose another"),
        ("angle[0]", "did you mean 'angles[0]'"),
    ],
)
def test_arrays_that_are_not_columns_are_explained(path, problems, column, word):
    arrays = {
        "t": np.arange(3.0),
        "angles": np.arange(6.0).reshape(3, 2),
        "dt": 0.1,
        "label": np.bytes_(b"first"),
        "stack": np.zeros((2, 3, 4)),
        "wide": np.zeros((2, 5000)),
        "film": np.zeros((2, 2, 2, 2)),
    }
    save_arrays(path, arrays)
    (problem,) = problems(lambda: load_run(path, [Channel(column, "q")], time="t"))
    assert problem.file == str(path) and word in problem.fix and repr(column) in problem.message


def test_stacked_runs_are_separated(path, problems):
    states = np.random.default_rng(2).normal(size=(3, 5, 2))
    torque = np.random.default_rng(3).normal(size=(3, 5))
    save_arrays(path, {"states": states, "torque": torque, "t": np.arange(5.0), "calibration": np.eye(2)})
    table = read_table(path, run=1)
    assert (table.columns["states[1]"] == states[1, :, 1]).all()
    assert (table.columns["torque"] == torque[1]).all()
    assert table.columns["t"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert "calibration" in table.unreadable
    channels = [Channel("states[0]", "q"), Channel("torque", "u")]
    recordings = load_runs(path, channels, time="t")
    assert [recording.name for recording in recordings] == ["runs[0]", "runs[1]", "runs[2]"]
    assert all((one.series["q"].values == run[:, 0]).all() for one, run in zip(recordings, states, strict=True))
    (problem,) = problems(lambda: read_table(path, run=3))
    assert problem.code == "data.run" and "3 runs" in problem.fix


def test_concatenated_runs_are_separated(path, problems):
    states = np.arange(20.0).reshape(10, 2)
    states[7, 1] = np.nan
    save_arrays(path, {"states": states, "ptr": np.array([0, 4, 7, 10]), "mass": 0.3})
    table = read_table(path, run=1, run_starts="ptr")
    assert table.columns["states[0]"].tolist() == [8.0, 10.0, 12.0]
    recordings = load_runs(path, [Channel("states[0]", "x")], sample_interval=0.01, run_starts="ptr")
    assert [len(one.series["x"]) for one in recordings] == [4, 3, 3]
    (problem,) = problems(lambda: load_runs(path, [Channel("states[1]", "x")], sample_interval=0.01, run_starts="ptr"))
    assert (problem.code, problem.line) == ("data.nan", 8) and "row 8 (in run 2)" in problem.message


def test_an_error_common_to_all_runs_is_reported_once(path, problems):
    save_arrays(path, {"states": np.zeros((30, 5, 2))})
    (problem,) = problems(lambda: load_runs(path, [Channel("speeds[0]", "x")], sample_interval=0.01))
    assert problem.code == "data.missing_column"


@pytest.mark.parametrize(
    ("starts", "name"),
    [
        ([0, 5, 3, 10], "ptr"),
        ([0.0, 5.0, 10.0], "ptr"),
        ([0, 5], "ptr"),
        ([-1, 10], "ptr"),
        ([10], "ptr"),
        ([0, 10], "p"),
    ],
)
def test_invalid_run_starts(path, problems, starts, name):
    save_arrays(path, {"states": np.zeros((10, 2)), "ptr": np.array(starts)})
    (problem,) = problems(lambda: read_table(path, run=0, run_starts=name))
    assert problem.code == "data.run" and problem.fix


def test_a_run_must_be_selected(path, problems):
    save_arrays(path, {"states": np.zeros((10, 2)), "ptr": np.array([0, 10])})
    (problem,) = problems(lambda: read_table(path, run_starts="ptr"))
    assert "no run is selected" in problem.message
    save_arrays(path, {"q": np.zeros(10)})
    (problem,) = problems(lambda: read_table(path, run=0))
    assert "no stacked runs" in problem.message


def test_an_array_without_a_name(tmp_path, problems):
    path = tmp_path / "run.npy"
    np.save(path, np.arange(6.0).reshape(3, 2), allow_pickle=False)
    assert read_table(path).columns["1"].tolist() == [1.0, 3.0, 5.0]
    np.save(path, np.arange(12.0).reshape(2, 3, 2), allow_pickle=False)
    assert read_table(path, run=1).columns["0"].tolist() == [6.0, 8.0, 10.0]
    (problem,) = problems(lambda: load_run(path, [Channel("0", "q")], sample_interval=0.1))
    assert "stack of 2 runs" in problem.message


def test_records_and_times(path):
    stamps = np.array(["2024-05-01T00:00:00", "2024-05-01T00:00:00.250", "NaT"], dtype="datetime64[ns]")
    records = np.array([(0.0, 1), (0.1, 2)], dtype=[("t", float), ("count", np.int16)])
    arrays = {"log": records} if path.suffix == ".h5" else {"log": records, "stamp": stamps}
    table = read_table(save_arrays(path, arrays))
    assert table.columns["log.count"].tolist() == [1.0, 2.0]
    if path.suffix == ".npz":
        assert table.columns["stamp"][1] - table.columns["stamp"][0] == 0.25
        assert np.isnan(table.columns["stamp"][2])


def test_python_objects_are_never_loaded(tmp_path, problems):
    path = tmp_path / "run.npz"
    np.savez(path, t=np.arange(3.0), q=np.array([1, "a", None], dtype=object))
    assert [*read_table(path).columns] == ["t"]
    (problem,) = problems(lambda: load_run(path, [Channel("q", "q")], time="t"))
    assert problem.code == "data.object" and "never loaded" in problem.fix
    np.save(tmp_path / "run.npy", np.array([1, "a", None], dtype=object), allow_pickle=True)
    (problem,) = problems(lambda: read_table(tmp_path / "run.npy"))
    assert problem.code == "data.object"

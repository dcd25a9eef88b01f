"""All formats give the same values; unreadable files are explained."""

import hashlib
import sys

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridsim.core.errors import DataError
from hybridsim.data.channel import Channel
from hybridsim.data.read import read_table
from support.load_run import load_run

SUFFIXES = [".csv", ".npz", ".h5", ".parquet", ".mcap"]
"""One suffix per format, text first."""
NUMBERS = st.lists(st.tuples(*[st.floats(-1e300, 1e300, allow_subnormal=False)] * 2), min_size=2, max_size=20)


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=15)
@given(rows=NUMBERS)
def test_every_format_reproduces_the_values(write_columns, suffix, rows):
    q, v = np.array(rows).T
    table = read_table(write_columns(suffix, {"q": q, "v": v}))
    assert (table.columns["q"] == q).all() and (table.columns["v"] == v).all()


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=10)
@given(order=st.permutations(["a", "b", "c"]))
def test_the_order_of_channels_does_not_matter(write_columns, suffix, order):
    columns = {"time": [0.0, 0.1, 0.2], "a": [1.0, 2.0, 3.0], "b": [3.0, 2.0, 1.0], "c": [0.5, 0.25, 2.0]}
    recording = load_run(write_columns(suffix, columns), [Channel(name, name) for name in order])
    assert [*recording.series] == order
    assert all(recording.series[name].values.tolist() == columns[name] for name in order)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing_values_are_reported_by_row_in_every_format(write_columns, problems, suffix):
    file = write_columns(suffix, {"time": [0.0, 1.0, 2.0, 3.0], "q": [1.0, 2.0, np.nan, np.inf]})
    (problem,) = problems(lambda: load_run(file, [Channel("q", "q")]))
    row = 4 if suffix == ".csv" else 3
    word = f"line {row}" if suffix == ".csv" else f"row {row}"
    assert (problem.code, problem.line) == ("data.nan", row) and word in problem.message


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_are_identified_by_sha256(write_columns, suffix):
    file = write_columns(suffix, {"time": [0.0, 1.0], "q": [1.0, 2.0]})
    expected = hashlib.sha256(file.read_bytes()).hexdigest()
    assert read_table(file).sha256 == expected
    assert load_run(file, [Channel("q", "q")]).sources == ((str(file), expected),)


@pytest.mark.parametrize("suffix", [".npy", *SUFFIXES[1:]])
def test_damaged_files_are_refused(write_text, problems, suffix):
    for content in (b"", b"\x93NUMPY garbage", b"PK\x03\x04 nothing of the kind", bytes(range(256)) * 8):
        (problem,) = problems(lambda content=content: read_table(write_text(content, f"run{suffix}")))
        assert problem.code in ("data.format", "data.object") and problem.fix


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_files_that_were_cut_off_are_refused(write_columns, problems, suffix):
    file = write_columns(suffix, {"time": np.arange(500.0), "q": np.random.default_rng(1).normal(size=500)})
    file.write_bytes(file.read_bytes()[:-300])
    (problem,) = problems(lambda: read_table(file))
    assert problem.code == "data.format"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_random_damage_is_an_error_or_leaves_a_usable_recording(write_columns, suffix):
    t = np.arange(40.0)
    file = write_columns(suffix, {"time": t, "q": np.sin(t), "v": np.cos(t)})
    whole = file.read_bytes()
    rng = np.random.default_rng(7)
    refused = 0
    for _ in range(60):
        damaged = bytearray(whole)
        for position in rng.integers(len(whole), size=3):
            damaged[position] = rng.integers(256)
        file.write_bytes(damaged[: rng.integers(len(whole))] if rng.random() < 0.3 else damaged)
        try:
            load_run(file, [Channel("q", "q"), Channel("v", "v")])
        except DataError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize(("suffix", "package"), [(".h5", "h5py"), (".parquet", "pyarrow"), (".mcap", "mcap")])
def test_a_missing_package_is_named(write_columns, problems, monkeypatch, suffix, package):
    file = write_columns(suffix, {"q": [1.0, 2.0]})
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    (problem,) = problems(lambda: read_table(file))
    assert problem.code == "data.package" and package in problem.message
    assert problem.fix == "pip install 'hybridsim[data]'"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("run.pkl", "never loaded"),
        ("run.xlsx", "CSV"),
        ("run.bag", "MCAP"),
        ("run.csv.gz", "unpack"),
        ("run", "formats"),
    ],
)
def test_other_formats_are_refused_with_advice(write_text, problems, name, advice):
    (problem,) = problems(lambda: read_table(write_text("0,1\n", name)))
    assert problem.code == "data.format" and advice in problem.fix


def test_missing_files(tmp_path, write_text, problems):
    write_text("0,1\n1,2\n", "run_7.csv")
    (problem,) = problems(lambda: read_table(tmp_path / "run7.csv"))
    assert problem.code == "file.missing" and problem.fix == "did you mean 'run_7.csv'?"
    (problem,) = problems(lambda: read_table(tmp_path / "nowhere" / "run.csv"))
    assert problem.code == "file.missing" and "does not exist either" in problem.fix
    (problem,) = problems(lambda: read_table(tmp_path))
    assert problem.code == "file.directory"


def test_groups_of_hdf5_files(tmp_path, problems):
    path = tmp_path / "runs.h5"
    with h5py.File(path, "w") as file:
        for k in range(2):
            file[f"trial_{k}/time"] = [0.0, 1.0]
            file[f"trial_{k}/arm/angle"] = [k, k + 1.0]
        file["trial_0/label"] = "first"
    assert read_table(path, group="trial_1").columns["arm/angle"].tolist() == [1.0, 2.0]
    assert read_table(path).columns["trial_0/arm/angle"].tolist() == [0.0, 1.0]
    recording = load_run(
        path, [Channel("arm/angle", "a", group="trial_0"), Channel("arm/angle", "b")], group="/trial_1/"
    )
    assert [recording.series[name].values[0] for name in "ab"] == [0.0, 1.0]
    (problem,) = problems(lambda: read_table(path, group="trail_1"))
    assert problem.code == "data.group" and "'trial_1'" in problem.fix
    (problem,) = problems(lambda: read_table(path, group="trial_0/time"))
    assert "is a dataset" in problem.message


def test_groups_and_runs_in_formats_without_them(write_text, problems):
    (problem,) = problems(lambda: read_table(write_text("0,1\n1,2\n"), group="a"))
    assert problem.code == "data.group"
    (problem,) = problems(lambda: read_table(write_text("0,1\n1,2\n"), run=0))
    assert problem.code == "data.run"


def test_columns_of_parquet_files(tmp_path):
    path = tmp_path / "run.parquet"
    content = {
        "stamp": pa.array([1_500_000_000, 2_500_000_000], type=pa.timestamp("ns")),
        "count": pa.array([1, None], type=pa.int64()),
        "on": [True, False],
        "pose": [{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}],
        "angles": [[0.1, 0.2], [0.3, 0.4]],
        "uneven": [[0.1], [0.3, 0.4]],
        "label": ["a", "b"],
    }
    pq.write_table(pa.table(content), path)
    table = read_table(path)
    values = {name: column.tolist() for name, column in table.columns.items()}
    assert np.isnan(values.pop("count")[1])
    assert values == {
        "stamp": [1.5, 2.5],
        "on": [1.0, 0.0],
        "pose.x": [1.0, 3.0],
        "pose.y": [2.0, 4.0],
        "angles[0]": [0.1, 0.3],
        "angles[1]": [0.2, 0.4],
    }
    assert [*table.unreadable] == ["uneven", "label"]

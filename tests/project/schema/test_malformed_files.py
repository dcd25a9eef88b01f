"""Malformed files on the command line: each error names file and line, without a traceback."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mcap.writer import Writer

from hybridsim.cli.main import run
from support.small_projects import PROJECT, write_project

T = np.arange(50) * 0.01
HEADER = "time,q\n"
ROWS = "".join(f"{t},{np.cos(3.0 * t)}\n" for t in T)
RUN = '["run.csv"]'

FileChange = Callable[[Path], None]


def project(old: str, new: str) -> FileChange:
    """Change the text of the project."""
    assert old in PROJECT
    return content("project.toml", PROJECT.replace(old, new))


def content(name: str, data: str | bytes) -> FileChange:
    """Replace the content of a file."""
    return replace_file(name, lambda path: path.write_bytes(data if isinstance(data, bytes) else data.encode()))


def replace_file(name: str, make: Callable[[Path], object]) -> FileChange:
    """Replace a file by something else."""

    def apply(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return apply


def recording_in_format(
    suffix: str, make: Callable[[Path], object], *, kept_fraction: float = 1.0, time: str = "time"
) -> FileChange:
    """Replace the recording by one in another format, of which only a part is kept."""

    def apply(folder: Path) -> None:
        text = PROJECT.replace("run.csv", f"run{suffix}").replace("[[channel]]", f"time = '{time}'\n\n[[channel]]")
        (folder / "project.toml").write_text(text)
        path = folder / f"run{suffix}"
        make(path)
        data = path.read_bytes()
        path.write_bytes(data[: int(kept_fraction * len(data))])

    return apply


def model(make: Callable[[Path], object]) -> FileChange:
    """Add a model file to the project."""

    def apply(folder: Path) -> None:
        project('built_in = "pendulum"', 'file = "arm.urdf"')(folder)
        make(folder / "arm.urdf")

    return apply


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def hdf5_with_huge_shape(path: Path) -> None:
    """A small file that claims to hold eight terabytes."""
    with h5py.File(path, "w") as file:
        file["time"] = T
        file.create_dataset("q", shape=(10**12,), dtype="f8", chunks=(1000,))


def hdf5(**arrays) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array

    return write


def parquet(column) -> Callable[[Path], None]:
    return lambda path: pq.write_table(pa.table({"time": T, "q": column}), path)


def mcap(*messages: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with path.open("wb") as stream:
            writer = Writer(stream)
            writer.start()
            channel = writer.register_channel("/joints", "json", writer.register_schema("any", "jsonschema", b"{}"))
            for k, message in enumerate(messages):
                writer.add_message(channel, 10**7 * k, message, 10**7 * k)
            writer.finish()

    return write


MALFORMED = {
    # the project itself
    "empty project": (content("project.toml", ""), "project.toml:1", "there is no section [model]"),
    "nothing but a byte order mark": (content("project.toml", b"\xef\xbb\xbf"), "project.toml:1", "no section [data]"),
    "project in UTF-16": (content("project.toml", PROJECT.encode("utf-16")), "project.toml:1", "not UTF-8"),
    "project in Latin-1": (content("project.toml", PROJECT.replace("angle", "Größe").encode("latin-1")),
        "project.toml:10", "not UTF-8"),
    "key twice": (project("dt = 0.01", "dt = 0.01\ndt = 0.02"), "project.toml:4", "the key is defined twice"),
    "key twice in a line": (project("[[free]]", "[[stage]]\nsolver = { name = 'lm', name = 'adam' }\n[[free]]"),
        "project.toml:16", "the key is defined twice"),
    "huge project": (content("project.toml", "#" * 2**21), "project.toml", "more than the 1048576"),
    "zeros": (content("project.toml", bytes(100)), "project.toml:1", "invalid TOML"),
    "project is a folder": (replace_file("project.toml", Path.mkdir), "project.toml", "this is a folder"),
    "project is a loop": (replace_file("project.toml", link_to_itself), "project.toml", "cannot be read"),
    "bounds in a list": (project("[0.0, 1.0]", "[[0.0, 1.0]]"), "project.toml:17", "bounds[0] of [[free]] 1"),
    "files in lists": (project(RUN, "[[['run.csv']]]"), "project.toml:6", "files[0][0] of [data]"),
    "prior without a number": (project("bounds", "prior = [nan, 1.0]\nbounds"), "project.toml:17", "must be finite"),
    "bounds in the wrong order": (project("[0.0, 1.0]", "[1.0, 0.0]"), "project.toml:17", "not below"),
    "a number of 400 digits": (project("dt = 0.01", f"dt = {'9' * 400}"), "project.toml:3", "dt of [model]"),
    "a denormal time step": (project("dt = 0.01", "dt = 1e-320"), "project.toml:3", "too many time steps"),
    "a step longer than all runs": (project("dt = 0.01", "dt = 10.0"), "project.toml:3", "less than a time step"),
    "a window of 1e300 s": (project("[[free]]", "[[stage]]\nwindow = 1e300\n\n[[free]]"),
        "project.toml:16", "too many time steps"),
    "a window of less than a step": (project("[[free]]", "[[stage]]\nwindow = 1e-9\n\n[[free]]"),
        "project.toml:16", "0 is for single steps"),
    "gaps everywhere": (project("held_out = 0.0", "held_out = 0.0\nmax_sample_interval = 1e-9"),
        "project.toml:8", "raise max_sample_interval"),
    # models
    "model is a folder": (model(Path.mkdir), "project.toml:2", "is a folder"),
    "model is binary": (model(lambda path: path.write_bytes(bytes(range(256)))), "arm.urdf:1", "the file is binary"),
    # recordings as text
    "empty recording": (content("run.csv", ""), "run.csv", "the file holds no data"),
    "only a header": (content("run.csv", b"\xef\xbb\xbf" + HEADER.encode()), "run.csv", "a header but no rows"),
    "recording in UTF-16": (content("run.csv", (HEADER + ROWS).encode("utf-16")), "run.csv", "UTF-16"),
    "recording in Latin-1": (content("run.csv", ("# ruhig\n# Größe\n" + HEADER + ROWS).encode("latin-1")),
        "run.csv", "in line 2"),
    "lines of Windows, cut off": (content("run.csv", (HEADER + ROWS + "0.5").replace("\n", "\r\n")),
        "run.csv:52", "line 52 has 1 of 2 cells"),
    "column twice": (content("run.csv", "time,q,q\n" + ROWS.replace("\n", ",1\n")),
        "run.csv", "2 columns are named 'q'"),
    "time backwards": (content("run.csv", HEADER + "\n".join(reversed(ROWS.splitlines()))),
        "run.csv:3", "decreases from"),
    "column of words": (content("run.csv", HEADER + re.sub(r",.*", ",fast", ROWS)),
        "run.csv", "the text 'fast' in line 2"),
    "too large for a number": (content("run.csv", HEADER + ROWS.replace(",1.0", ",1e400")),
        "run.csv:2", "no finite value"),
    "dates": (content("run.csv", HEADER + "2024-01-01 00:00:01,1\n2024-01-01 00:00:02,1\n"),
        "run.csv:2", "'2024-01-01"),
    "a line without end": (content("run.csv", "9" * 3_000_000), "run.csv", "there is no column 'q'"),
    "left behind by Git LFS": (content("run.csv", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"),
        "run.csv", "git lfs pull"),
    "recording is a folder": (replace_file("run.csv", Path.mkdir), "run.csv", "this is a folder"),
    "recording is a loop": (replace_file("run.csv", link_to_itself), "run.csv", "cannot be read"),
    "recording is a pipe": (replace_file("run.csv", os.mkfifo), "run.csv", "this is a pipe"),
    # recordings in binary formats
    "pickled objects": (
        recording_in_format(".npz", lambda path: np.savez(path, time=T, q=np.array([{}] * 50, dtype=object))),
        "run.npz", "never loaded"),
    "half of an NPZ file": (recording_in_format(".npz", lambda path: np.savez(path, time=T, q=T), kept_fraction=0.5),
        "run.npz", "cannot be read"),
    "complex numbers": (recording_in_format(".npz", lambda path: np.savez(path, time=T, q=1j * T)),
        "run.npz", "complex128"),
    "half of an HDF5 file": (recording_in_format(".h5", hdf5(time=T, q=T), kept_fraction=0.5),
        "run.h5", "truncated file"),
    "claimed terabytes": (recording_in_format(".h5", hdf5_with_huge_shape), "run.h5", "GiB allowed"),
    "a link to nothing": (recording_in_format(".h5", hdf5(time=T, q=h5py.SoftLink("/nothing"))),
        "run.h5", "there is no column 'q'"),
    "records in a column": (recording_in_format(".parquet", parquet([{"a": 1.0, "b": 2.0}] * 50)),
        "run.parquet", "'q.a' or 'q.b'"),
    "lists of lists": (recording_in_format(".parquet", parquet([[[1.0]]] * 50)), "run.parquet", "is not numeric"),
    "half of a Parquet file": (recording_in_format(".parquet", parquet(T), kept_fraction=0.5),
        "run.parquet", "cannot be read"),
    "half of an MCAP file": (
        recording_in_format(".mcap", mcap(*[b'{"q": 1.0}'] * 50), kept_fraction=0.5, time="log_time"),
        "run.mcap", "mcap recover"),
    "brackets without end": (recording_in_format(".mcap", mcap(b"[" * 100_000), time="log_time"),
        "run.mcap", "cannot be read"),
}  # fmt: skip
"""Change of the project, location of the error, and part of its message."""


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_explained_at_its_place(name, tmp_path, capsys):
    apply, location, part = MALFORMED[name]
    if "pipe" in name and not hasattr(os, "mkfifo"):
        pytest.skip("there are no pipes here")
    path = write_project(tmp_path)
    apply(tmp_path)
    assert run(["fit", str(path), "--check"]) == 1
    out, err = capsys.readouterr()
    assert not out and "Traceback" not in err and "HYBRIDSIM_DEBUG" not in err
    assert str(tmp_path / location) in err and part in err and "fix:" in err
    assert run(["fit", str(path), "--check", "--json"]) == 1
    for problem in json.loads(capsys.readouterr().out)["problems"]:
        assert problem["file"] and problem["code"] and problem["fix"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="whoever runs this may read everything")
@pytest.mark.parametrize("name", ["project.toml", "run.csv"])
def test_a_file_that_may_not_be_read_is_named(name, tmp_path, capsys):
    path = write_project(tmp_path)
    (tmp_path / name).chmod(0)
    assert run(["fit", str(path), "--check"]) == 1
    assert f"{tmp_path / name}: error: the file cannot be read: Permission denied" in capsys.readouterr().err

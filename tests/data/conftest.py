"""Fixtures that write small data files in every format."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mcap.writer import Writer

from hybridsim.core.errors import DataError, Problem

Columns = Mapping[str, Sequence[float]]


@pytest.fixture
def write_text(tmp_path) -> Callable[..., Path]:
    """Writes a text file and returns its path."""

    def write(content: str | bytes, name: str = "run.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def write_messages(tmp_path) -> Callable[..., Path]:
    """Writes an MCAP file of messages (topic, time [ns], content) and returns its path."""

    def write(content: Sequence[tuple[str, int, object]], *, encoding: str = "json") -> Path:
        path = tmp_path / "run.mcap"
        with path.open("wb") as stream:
            writer = Writer(stream)
            writer.start()
            schema = writer.register_schema("any", "jsonschema", b"{}")
            topics = dict.fromkeys(topic for topic, _, _ in content)
            channels = {
                topic: writer.register_channel(topic, "cdr" if topic.startswith("/cdr") else encoding, schema)
                for topic in topics
            }
            for topic, time, value in content:
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                writer.add_message(channels[topic], time, data, time)
            writer.finish()
        return path

    return write


@pytest.fixture
def write_columns(tmp_path, write_messages) -> Callable[[str, Columns], Path]:
    """Writes columns of equal length in the format of a file extension and returns the path."""

    def write(suffix: str, columns: Columns) -> Path:
        path = tmp_path / f"run{suffix}"
        arrays = {name: np.asarray(values, dtype=float) for name, values in columns.items()}
        match suffix:
            case ".csv":
                rows = [
                    ",".join(columns),
                    *(",".join(map(repr, row)) for row in np.array([*arrays.values()]).T.tolist()),
                ]
                path.write_text("\n".join(rows))
            case ".npz":
                np.savez(path, allow_pickle=False, **arrays)
            case ".h5":
                with h5py.File(path, "w") as file:
                    for name, values in arrays.items():
                        file[name] = values
            case ".parquet":
                pq.write_table(pa.table(arrays), path)
            case ".mcap":
                rows = np.array([*arrays.values()]).T.tolist()
                content = [("/all", k, dict(zip(arrays, row, strict=True))) for k, row in enumerate(rows)]
                write_messages(content)
        return path

    return write


@pytest.fixture
def problems() -> Callable[..., list[Problem]]:
    """Problems raised by a call that must fail."""

    def problems_of(call: Callable[[], object]) -> list[Problem]:
        with pytest.raises(DataError) as caught:
            call()
        return list(caught.value.problems)

    return problems_of

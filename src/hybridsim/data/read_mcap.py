"""MCAP files with JSON messages: numeric fields of a topic's messages, with their log times.

Nested fields are named `pose.x`, entries of lists `position[0]`. Column `log_time` holds seconds since the first
message of the file on any topic, so that topics share one time origin.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.core.errors import DataError, Problem
from hybridsim.core.messages import name_hint, name_list
from hybridsim.data.arrays import MAX_COLUMNS
from hybridsim.data.file_format import FileFormat, FileSelection
from hybridsim.data.reader_errors import import_optional, parser_errors_as_data_errors
from hybridsim.data.table import Table

LOG_TIME = "log_time"
"""Column of the log times of messages [s]."""


def read_mcap(path: Path, selection: FileSelection) -> list[Table]:
    """Table of a topic.

    Args:
        path: the file.
        selection: the topic. If empty and the file has several, columns are named `/topic/column`.

    Raises:
        DataError: the file is damaged, has no such topic, or the topic is not encoded in JSON.
    """
    reader = import_optional(path, "mcap", "reader")
    with (
        parser_errors_as_data_errors(path, "if the recording was cut off, repair a copy with `mcap recover`"),
        path.open("rb") as stream,
    ):
        return [_table(reader.make_reader(stream, validate_crcs=True), str(path), selection.group)]


def _table(reader: Any, file: str, group: str) -> Table:
    topics: dict[str, _Topic] = {}
    unsupported: dict[str, str] = {}
    stamps = []
    # iterate over all topics: the first message of the file may be on another one
    for _, channel, message in reader.iter_messages():
        stamps.append(message.log_time)
        if channel.message_encoding != "json":
            unsupported[channel.topic] = channel.message_encoding
            continue
        topic = topics.setdefault(channel.topic, _Topic(channel.topic, file))
        if group in ("", channel.topic):
            topic.add(message)
    if not topics or (group and group not in topics):
        raise DataError([_missing_topic_problem(group, topics, unsupported, file)])
    start = min(stamps)
    if group or len(topics) == 1:
        topic = topics[group] if group else next(iter(topics.values()))
        return Table(topic.columns(start), file, unreadable=topic.unreadable())
    unreadable = {topic: _encoding_problem(topic, encoding, file) for topic, encoding in unsupported.items()}
    columns = {}
    for name, topic in topics.items():
        columns |= {f"{name}/{field}": column for field, column in topic.columns(start).items()}
        unreadable |= {f"{name}/{field}": problem for field, problem in topic.unreadable().items()}
    return Table(columns, file, unreadable=unreadable)


class _Topic:
    """Numeric fields of one topic's messages."""

    def __init__(self, name: str, file: str):
        self._name, self._file = name, file
        self._log_times: list[int] = []
        self._rows: dict[str, list[int]] = {}
        self._values: dict[str, list[float]] = {}
        self._non_numeric: dict[str, tuple[int, Any]] = {}

    def add(self, message: Any) -> None:
        """Append a message."""
        row = len(self._log_times)
        self._log_times.append(message.log_time)
        try:
            content = json.loads(message.data)
        except ValueError as error:
            text = f"message {row + 1} of topic {self._name!r} is not JSON: {error}"
            fix = "correct the publisher of the topic, or omit the topic"
            raise DataError([Problem(text, fix, self._file, row + 1, code="data.format")]) from None
        for name, value in _scalar_fields(content, ""):
            if isinstance(value, int | float) or value is None:
                self._rows.setdefault(name, []).append(row)
                self._values.setdefault(name, []).append(_float(value))
            else:
                self._non_numeric.setdefault(name, (row, value))

    def columns(self, start: int) -> dict[str, np.ndarray]:
        """Columns by field, NaN where a message has no value.

        Args:
            start: log time of the file's first message [ns].
        """
        # subtract integers: double precision cannot resolve nanoseconds since 1970
        columns = {LOG_TIME: (np.array(self._log_times, dtype=np.int64) - start) * 1e-9}
        for name, values in self._values.items():
            if name not in self._non_numeric:
                column = np.full(len(self._log_times), np.nan)
                column[self._rows[name]] = values
                columns[name] = column
        return columns

    def unreadable(self) -> dict[str, Problem]:
        """Fields that hold a non-numeric value at least once."""
        problems = {}
        for name, (row, value) in self._non_numeric.items():
            content = (
                f"the text {value[:40]!r}" if isinstance(value, str) else f"a list of more than {MAX_COLUMNS} entries"
            )
            message = f"field {name!r} of topic {self._name!r} has {content} in row {row + 1}, not a number"
            problems[name] = Problem(
                message, "choose another column", self._file, row + 1, code="data.text", element=name
            )
        return problems


def _scalar_fields(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Scalar fields of a message, by name."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _scalar_fields(item, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and len(value) <= MAX_COLUMNS:
        for k, item in enumerate(value):
            yield from _scalar_fields(item, f"{name}[{k}]")
    else:
        yield name, value


def _float(value: float | None) -> float:
    try:
        return float("nan") if value is None else float(value)
    except OverflowError:
        return float("inf")  # an integer beyond the range of double precision


def _missing_topic_problem(group: str, topics: Collection[str], unsupported: Mapping[str, str], file: str) -> Problem:
    if group in unsupported:
        return _encoding_problem(group, unsupported[group], file)
    if not topics and unsupported:
        return _encoding_problem(name_list(unsupported), name_list(dict.fromkeys(unsupported.values())), file)
    if not topics:
        return Problem("the file holds no messages", "check whether this is the right file", file, code="data.empty")
    message = f"there is no topic {group!r}"
    return Problem(message, name_hint(group, [*topics, *unsupported]), file, code="data.group", element=group)


def _encoding_problem(topic: str, encoding: str, file: str) -> Problem:
    message = f"topic {topic} is encoded in {encoding}, but only JSON can be read"
    fix = "convert the topic to JSON messages or to CSV, for example with a short script that uses the `mcap` package"
    return Problem(message, fix, file, code="data.encoding", element=topic)


MCAP = FileFormat("MCAP", (".mcap",), read_mcap, group_noun="topic")

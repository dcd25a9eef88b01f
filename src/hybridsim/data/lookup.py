"""Lookup of the column of a channel, with suggestions for names that do not exist."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hybridsim.core.advice import Advice, Setting
from hybridsim.core.errors import Problem
from hybridsim.core.messages import name_hint, name_list
from hybridsim.data.channel import ColumnSettings
from hybridsim.data.table import Table


def find_table(channel: ColumnSettings, tables: Sequence[Table]) -> Table | Problem:
    """The only table that has a channel's column, or the problem."""
    matches = [table for table in tables if channel.column in table.columns]
    if len(matches) == 1:
        return matches[0]
    if matches:
        files = name_list(table.file for table in matches)
        message = (
            f"column {channel.column!r}, which channel {channel.series_name!r} refers to, is in several files: {files}"
        )
        return Problem(message, "specify the file in the channel", code="data.ambiguous", element=channel.column)
    for table in tables:
        problem = _unreadable_problem(channel.column, table)
        if problem is not None:
            return problem
    names = [name for table in tables for name in table.columns]
    message = f"there is no column {channel.column!r}, which channel {channel.series_name!r} refers to"
    return _missing_column(message, channel.column, names, tables)


def missing_time_problem(column: str, table: Table) -> Problem:
    """Problem of a time column that a table does not have."""
    problem = _unreadable_problem(column, table)
    if problem is not None:
        return problem
    missing = _missing_column(f"there is no time column {column!r}", column, table.columns, [table])
    hint = f"{missing.fix}; ".replace("{", "{{").replace("}", "}}") if missing.fix else ""
    alternatives = "name the time column, {}, or set {} for a constant sample interval"
    settings = (Setting("time", "COLUMN", "data"), Setting("sample_interval", 0.001, "data"))
    return replace(missing, fix=Advice(hint + alternatives, *settings), code="data.missing_time")


def _missing_column(message: str, column: str, names: Iterable[str], tables: Sequence[Table]) -> Problem:
    file = tables[0].file
    if len(tables) > 1:
        file, message = "", f"{message} in {name_list(table.file for table in tables)}"
    return Problem(message, name_hint(column, names), file, code="data.missing_column", element=column)


def _unreadable_problem(column: str, table: Table) -> Problem | None:
    """Why a name in the file is not a column, or why the array that it refers to cannot be used."""
    if column in table.unreadable:
        return table.unreadable[column]
    arrays = [name for name in table.unreadable if column.startswith(name) and column[len(name)] in "[./"]
    # an unnamed array is the only one in its file
    if not arrays and "" in table.unreadable:
        arrays = [""]
    if not arrays:
        return None
    problem = table.unreadable[max(arrays, key=len)]
    return replace(problem, message=f"there is no column {column!r}: {problem.message}", element=column)

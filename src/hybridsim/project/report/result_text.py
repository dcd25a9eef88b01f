"""Result of a fit as text: parameters, networks, residuals and remarks; used by Python and the command line."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from hybridsim.core.console import text_table
from hybridsim.core.messages import SIGMA, pluralize
from hybridsim.project.report.result import (
    CONVERGED,
    ESTIMATED,
    STANDARD_ERROR_LEGEND,
    score_label,
    standard_error_text,
)

MAX_ROWS = 40
"""Maximum number of rows of a table; the record contains all of them."""


def result_text(result: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Tables and sentences of a result, without its files.

    Args:
        result: content of `result.json`.
    """
    yield Text(f"{result['name']}: {result['message']}", style="green" if result["status"] == CONVERGED else "yellow")
    rows = result["parameters"]
    if rows:
        titles = ("parameter", "before", "after", "±", "unit", "")
        yield text_table(titles, [_parameter_cells(row) for row in rows[:MAX_ROWS]], right=("before", "after", "±"))
    if len(rows) > MAX_ROWS:
        yield Text(f"and {len(rows) - MAX_ROWS} more parameters")
    if any(row["std_kind"] != ESTIMATED for row in rows):
        yield Text(STANDARD_ERROR_LEGEND)
    if result["run_values"]:
        names = list(next(iter(result["run_values"].values())))
        cells = [(run, *(f"{x:.6g}" for x in values.values())) for run, values in result["run_values"].items()]
        yield text_table(("run", *names), cells[:MAX_ROWS], right=names)
    for network in result["networks"]:
        yield Text(f"network on {', '.join(network['outputs'])}: {pluralize(network['free_weights'], 'weight')} fitted")
    if result["scores"]:
        yield text_table(("RMS residual [σ]", "before", "after"), list(_residuals(result)), right=("before", "after"))
        yield Text(SIGMA)
    for remark in result["remarks"]:
        yield Text(f"remark: {remark}", style="yellow")


def _parameter_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    bound = f"at its {row['at_bound']} bound" if row["at_bound"] else ""
    return row["name"], f"{row['before']:.6g}", f"{row['after']:.6g}", standard_error_text(row), row["unit"], bound


def _residuals(result: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for row in result["scores"]:
        before, after = (row["normalized"][when]["rms"] for when in ("before", "after"))
        before, after = ("diverged" if x is None else f"{x:.4g}" for x in (before, after))
        yield score_label(row), before, after

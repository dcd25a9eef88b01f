"""Result of a fit as text: parameters, networks, residuals and remarks; used by Python and the command line."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from hybridsim.core.console import text_table
from hybridsim.core.messages import SIGMA, pluralize
from hybridsim.project.report.result import CONVERGED, ESTIMATED, UNDETERMINED, score_label

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
        cells = [
            (row["name"], f"{row['before']:.6g}", f"{row['after']:.6g}", _std(row), row["unit"], _bound(row))
            for row in rows[:MAX_ROWS]
        ]
        yield text_table(titles, cells, right=("before", "after", "±"))
    if len(rows) > MAX_ROWS:
        yield Text(f"and {len(rows) - MAX_ROWS} more parameters")
    if any(row["std_kind"] == UNDETERMINED for row in rows):
        yield Text("±: standard error; a question mark where the recordings do not determine the value")
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


def _std(row: Mapping[str, Any]) -> str:
    """Standard error of a parameter; a question mark if the data do not determine it, a dash if it was not computed."""
    if row["std_kind"] == ESTIMATED:
        return f"{row['std']:.2g}"
    return "?" if row["std_kind"] == UNDETERMINED else "–"


def _bound(row: Mapping[str, Any]) -> str:
    return f"at its {row['at_bound']} bound" if row["at_bound"] else ""


def _residuals(result: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for row in result["scores"]:
        before, after = (row["normalized"][when]["rms"] for when in ("before", "after"))
        before, after = ("diverged" if x is None else f"{x:.4g}" for x in (before, after))
        yield score_label(row), before, after

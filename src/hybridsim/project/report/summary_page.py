"""Summary page of a fit: a self-contained HTML file that needs neither network access nor the run folder."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from hybridsim.project.report.comparison import HELD_OUT
from hybridsim.project.report.page_style import STYLE
from hybridsim.project.report.result import CONVERGED, score_label

FIGURE_CAPTIONS = {
    "window_typical.png": (
        "A typical window: measurement, simulations before and after the fit, and error after the fit"
    ),
    "window_worst.png": (
        "The worst window: measurement, simulations before and after the fit, and error after the fit"
    ),
    "windows.png": "RMS residuals of every window before and after the fit",
    "progress.png": "Residuals over the steps of the fit",
}
"""Figures in the order of the page, with their captions."""


def summary_page(result: Mapping[str, Any], manifest: Mapping[str, Any], figures: Mapping[str, bytes]) -> str:
    """Summary page as HTML.

    Args:
        result: content of `result.json`.
        manifest: content of `manifest.json`.
        figures: PNG files by name.
    """
    parts = [
        _head(result, manifest),
        _cards(result),
        _list("Remarks", result["remarks"]),
        _section(
            "Measurements and simulations", [_figure(name, figures) for name in FIGURE_CAPTIONS if name in figures]
        ),
        _section("Errors before and after", [_scores(result)]),
        _section("Parameters", [_parameters(result), _per_run_parameters(result), _networks(result)]),
        _section("Stages", [_stages(result)]),
        _model(result),
        _section("Provenance", [_sources(manifest)]),
    ]
    title = escape(str(result["name"]))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # blocks all external resources, also from names in users' files
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>{title}: fit</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in parts if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def format_number(value: float | None, digits: int = 4) -> str:
    """Value rounded for display."""
    return "–" if value is None else f"{value:.{digits}g}"


def _head(result: Mapping[str, Any], manifest: Mapping[str, Any]) -> str:
    kind = "good" if result["status"] == CONVERGED else "warning"
    created = manifest["created"].replace("T", " ").replace("+00:00", " UTC")
    origin = escape(f"started {created}, hybridsim {manifest['versions']['hybridsim']}")
    status = f"<span class='status {kind}'>{escape(result['status'])}</span> <span class='quiet'>{origin}</span>"
    return f"<header><h1>{escape(str(result['name']))}</h1><p>{status}</p></header>"


def _cards(result: Mapping[str, Any]) -> str:
    """Cards with the RMS residuals before and after the fit, of the held-out runs if there are any."""
    rows = [row for row in result["scores"] if row["run_kind"] == HELD_OUT] or result["scores"]
    cards = []
    for row in rows:
        before, after = (row["normalized"][when]["rms"] for when in ("before", "after"))
        factor = ""
        if before and after:
            factor = f"{before / after:.3g} times smaller" if before >= after else f"{after / before:.3g} times larger"
        cards.append(
            f"<div class='card'><div class='label'>{_score_title(row)}</div>"
            f"<div class='value'>{format_number(before, 3)} → {format_number(after, 3)} <small>σ</small></div>"
            f"<div class='quiet'>{factor}</div></div>"
        )
    note = (
        "<p class='quiet'>Root mean square residuals over all channels; σ is the standard deviation of the noise.</p>"
    )
    return f"<div class='cards'>{''.join(cards)}</div>{note}"


def _score_title(row: Mapping[str, Any]) -> str:
    label = score_label(row)
    return escape(label[0].upper() + label[1:])


def _scores(result: Mapping[str, Any]) -> str:
    rows = []
    for row in result["scores"]:
        names, overall = list(row["channels"]), row["normalized"]
        for k, name in enumerate(names):
            cells, channel = row["channels"][name], result["channels"][name]
            first = f"<th rowspan='{len(names)}'>{_score_title(row)}{_windows(row)}</th>" if k == 0 else ""
            values = _number_cells(cells["before"], cells["after"], channel["noise"])
            rows.append(f"<tr>{first}{_text_cell(name)}{values}{_text_cell(channel['unit'])}</tr>")
        pairs = "".join(_right_cell(_pair(overall[when])) for when in ("before", "after"))
        label = _text_cell("all channels: RMS residual, worst window")
        rows.append(f"<tr class='total'><th></th>{label}{pairs}{_number_cells(1.0)}{_text_cell('σ')}</tr>")
    note = (
        "<p class='quiet'>Root mean square errors. The initial state of a window is fitted to the whole window, that "
        "of a prediction to the samples just before it, which are not scored.</p>"
    )
    return _table(("Runs", "Channel", ">Before", ">After", ">Noise", "Unit"), rows) + note


def _windows(row: Mapping[str, Any]) -> str:
    before, after = (row["normalized"][when]["diverged"] for when in ("before", "after"))
    diverged = f"; {before} diverged before, {after} after" if before or after else ""
    windows = "1 window" if row["windows"] == 1 else f"{row['windows']} windows"
    return f"<div class='quiet'>{windows}{diverged}</div>"


def _pair(statistics: Mapping[str, Any]) -> str:
    return f"{format_number(statistics['rms'])}, {format_number(statistics['worst'])}"


def _parameters(result: Mapping[str, Any]) -> str:
    if not result["parameters"]:
        return "" if result["run_values"] else "<p>No physical parameters were free.</p>"
    rows = []
    for row in result["parameters"]:
        mark = f"<span class='mark'>at its {escape(row['at_bound'])} bound</span>" if row["at_bound"] else ""
        values = (
            _number_cells(row["before"], row["after"])
            + _text_cell(row["unit"])
            + _right_cell(_change(row))
            + _right_cell(_bounds(row))
        )
        rows.append(f"<tr>{_row_header(row['name'])}{values}<td>{mark}</td></tr>")
    return _table(("Name", ">Before", ">After", "Unit", ">Change", ">Bounds", ""), rows)


def _per_run_parameters(result: Mapping[str, Any]) -> str:
    """Parameters estimated separately for each run, one row per run."""
    if not result["run_values"]:
        return ""
    names = list(next(iter(result["run_values"].values())))
    rows = [
        f"<tr>{_row_header(run)}{_number_cells(*values.values())}</tr>" for run, values in result["run_values"].items()
    ]
    return "<h3>Parameters estimated separately for each run</h3>" + _table(
        ("Run", *(f">{escape(name)}" for name in names)), rows
    )


def _change(row: Mapping[str, Any]) -> str:
    before, after = row["before"], row["after"]
    return f"{100.0 * (after - before) / abs(before):+.3g} %" if before else f"{after - before:+.3g}"


def _bounds(row: Mapping[str, Any]) -> str:
    lower, upper = row["lower"], row["upper"]
    if not _is_finite(lower) and not _is_finite(upper):
        return ""
    return (
        f"{format_number(lower) if _is_finite(lower) else '−∞'} … {format_number(upper) if _is_finite(upper) else '∞'}"
    )


def _is_finite(value: float | None) -> bool:
    return value is not None and abs(value) != float("inf")


def _networks(result: Mapping[str, Any]) -> str:
    rows = [
        f"<tr>{_row_header(', '.join(row['outputs']))}{_text_cell(row['mode'])}{_text_cell(', '.join(row['inputs']))}"
        f"{_number_cells(row['free_weights'], row['largest_change'])}</tr>"
        for row in result["networks"]
    ]
    return _table(("Network on", "Mode", "Reads", ">Free weights", ">Largest change"), rows) if rows else ""


def _stages(result: Mapping[str, Any]) -> str:
    rows = []
    for row in result["stages"]:
        window = "whole runs" if row["window"] is None else f"{format_number(row['window'])} s"
        settings = (
            _right_cell(window)
            + _text_cell(row["initial_states"])
            + _text_cell(row["loss"])
            + _text_cell(row["solver"])
        )
        rows.append(
            f"<tr>{_number_cells(row['stage'])}{settings}{_number_cells(row['steps'])}{_text_cell(row['message'])}</tr>"
        )
    return _table((">Stage", ">Windows", "Initial states", "Loss", "Solver", ">Steps", "Termination"), rows)


def _model(result: Mapping[str, Any]) -> str:
    model = result["model"]
    if model is None or model["file"] is None:
        return ""
    rows = []
    for row in model["changes"]:
        values = _right_cell(_values(row["before"])) + _right_cell(_values(row["after"]))
        rows.append(
            f"<tr>{_row_header(row['element'])}{_right_cell(str(row['line'] or ''))}{_text_cell(row['parameter'])}"
            f"{values}{_text_cell(row['note'])}</tr>"
        )
    table = _table(("Element", ">Line", "Parameter", ">Before", ">After", ""), rows)
    text = f"<p>Written to <code>{escape(model['file'])}</code>; all other content is unchanged.</p>"
    return _section("Identified model file", [text, table if rows else "<p>No values changed.</p>"])


def _values(value: Any) -> str:
    if value is None:
        return "–"
    return " ".join(format_number(x, 6) for x in value) if isinstance(value, Sequence) else format_number(value, 6)


def _sources(manifest: Mapping[str, Any]) -> str:
    model = manifest["model"]
    files = [
        ("project", manifest["project"]["file"], manifest["project"]["sha256"]),
        ("model", model["file"] or f"{model['name']} (built in)", model["sha256"] or ""),
        *(("data", entry["file"], entry["sha256"]) for entry in manifest["data"]),
    ]
    rows = [
        f"<tr>{_text_cell(kind)}<td class='path'>{escape(str(file))}</td>"
        f"<td><code title='{sha}'>{sha[:12]}</code></td></tr>"
        for kind, file, sha in files
    ]
    runs, machine = manifest["runs"], manifest["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    environment = f"{versions}; {machine['processor'] or machine['cpu']}, {machine['system']}; seed {manifest['seed']}"
    return (
        f"{_table(('', 'File', 'SHA-256'), rows)}"
        f"<p>Training runs: {escape(', '.join(runs['training']))}<br>"
        f"Held-out runs: {escape(', '.join(runs['held_out']) or 'none')}</p>"
        f"<p class='quiet'>{escape(environment)}<br>"
        f"<code>{escape(' '.join(manifest['command']))}</code></p>"
    )


def _table(titles: Sequence[str], rows: Sequence[str]) -> str:
    """HTML table; titles of right-aligned columns begin with `>`."""
    cells = "".join(
        f"<th class='n'>{title[1:]}</th>" if title.startswith(">") else f"<th>{title}</th>" for title in titles
    )
    return f"<div class='wide'><table><thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _row_header(text: str) -> str:
    return f"<th>{escape(text)}</th>"


def _text_cell(text: str) -> str:
    return f"<td>{escape(text)}</td>"


def _right_cell(text: str) -> str:
    return f"<td class='n'>{escape(text)}</td>"


def _number_cells(*values: float | None) -> str:
    return "".join(_right_cell(format_number(value)) for value in values)


def _figure(name: str, figures: Mapping[str, bytes]) -> str:
    data = base64.b64encode(figures[name]).decode()
    return f"<img alt='{escape(FIGURE_CAPTIONS[name])}' src='data:image/png;base64,{data}'>"


def _list(title: str, items: Iterable[str]) -> str:
    entries = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f"<section class='remarks'><h2>{title}</h2><ul>{entries}</ul></section>" if entries else ""


def _section(title: str, parts: Sequence[str]) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"

"""Summary page of a fit: a self-contained HTML file that needs neither network access nor the run folder.

Its structure is a template (`templates/summary.html.j2`), which escapes everything that it inserts.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from hybridsim.project.report.comparison import HELD_OUT
from hybridsim.project.report.result import CONVERGED, STANDARD_ERROR_LEGEND, score_label, standard_error_text

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
_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, marks that reverse the direction of text, and surrogates, which cannot be encoded."""


def summary_page(result: Mapping[str, Any], manifest: Mapping[str, Any], figures: Mapping[str, bytes]) -> str:
    """Summary page as HTML.

    Args:
        result: content of `result.json`.
        manifest: content of `manifest.json`.
        figures: PNG files by name.
    """
    return (
        _environment()
        .get_template("summary.html.j2")
        .render(
            result=result,
            manifest=manifest,
            has_converged=result["status"] == CONVERGED,
            created=manifest["created"].replace("T", " ").replace("+00:00", " UTC"),
            cards=_cards(result),
            figures=[
                (caption, base64.b64encode(figures[name]).decode())
                for name, caption in FIGURE_CAPTIONS.items()
                if name in figures
            ],
            sources=_sources(manifest),
            standard_error_legend=STANDARD_ERROR_LEGEND,
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("hybridsim.project.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_with_visible_characters,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "number": format_number,
        "values": _format_values,
        "change": _change,
        "bounds": _bounds,
        "standard_error": standard_error_text,
        "windows": _windows,
        "score_title": _score_title,
        "right_aligned": _right_aligned,
    }
    return environment


def _with_visible_characters(value: Any) -> Any:
    """A string whose invisible characters are replaced by escape sequences; other values, markup included, as is."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return _INVISIBLE.sub(lambda match: match.group().encode("unicode_escape").decode(), value)


def format_number(value: float | None, digits: int = 4) -> str:
    """Value rounded for display."""
    return "–" if value is None else f"{value:.{digits}g}"


def _format_values(value: Any) -> str:
    """One value or several, with the precision of a model file."""
    return " ".join(format_number(x, 6) for x in value) if isinstance(value, Sequence) else format_number(value, 6)


def _change(row: Mapping[str, Any]) -> str:
    """Change of a parameter, relative unless it was zero."""
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


def _windows(row: Mapping[str, Any]) -> str:
    """Number of windows of a row of scores, and how many of them diverged."""
    before, after = (row["normalized"][when]["diverged"] for when in ("before", "after"))
    diverged = f"; {before} diverged before, {after} after" if before or after else ""
    windows = "1 window" if row["windows"] == 1 else f"{row['windows']} windows"
    return f"{windows}{diverged}"


def _score_title(row: Mapping[str, Any]) -> str:
    label = score_label(row)
    return label[0].upper() + label[1:]


def _right_aligned(title: str) -> str:
    return f">{title}"


def _cards(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """RMS residuals before and after the fit, of the held-out runs if there are any."""
    rows = [row for row in result["scores"] if row["run_kind"] == HELD_OUT] or result["scores"]
    cards = []
    for row in rows:
        before, after = (row["normalized"][when]["rms"] for when in ("before", "after"))
        ratio = ""
        if before and after:
            ratio = f"{before / after:.3g} times smaller" if before >= after else f"{after / before:.3g} times larger"
        cards.append({"row": row, "before": before, "after": after, "ratio": ratio})
    return cards


def _sources(manifest: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Kind, path and hash of every input file."""
    model = manifest["model"]
    return [
        ("project", manifest["project"]["file"], manifest["project"]["sha256"]),
        ("model", model["file"] or f"{model['name']} (built in)", model["sha256"] or ""),
        *(("data", entry["file"], entry["sha256"]) for entry in manifest["data"]),
    ]

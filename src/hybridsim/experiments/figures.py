"""Figures shared by the experiments."""

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from hybridsim.viz.save_figure import save_figure

COLOURS = ("#c8443c", "#e9a19b")
"""Colours of the median, and of the maximum or mean."""
LOG_SCALE_RATIO = 8.0
"""Ratio of the largest to the smallest value above which the scale is logarithmic."""


def draw_errors(results: Mapping[str, Any], path: Path, title: str, second_statistic: str = "worst") -> None:
    """Bar chart of the errors of every case, with one panel per kind of score.

    Args:
        results: results of an experiment with scores in mrad.
        path: output file.
        title: title of the figure.
        second_statistic: statistic shown in addition to the median.
    """
    cases = results["cases"]
    names, labels = list(cases), [case["description"] for case in cases.values()]
    kinds = list(cases[names[0]]["scores"])
    figure = Figure(figsize=(2.4 + 2.2 * len(kinds), 1.2 + 0.42 * len(names)), layout="constrained")
    axes = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for ax, kind in zip(axes, kinds, strict=True):
        statistics_of_cases = [cases[name]["scores"][kind] for name in names]
        for k, statistics in enumerate(statistics_of_cases):
            ax.barh(k, statistics[second_statistic], height=0.62, color=COLOURS[1])
            ax.barh(k, statistics["median"], height=0.62, color=COLOURS[0])
            ax.text(
                statistics[second_statistic],
                k,
                f" {_format_value(statistics['median'])} / {_format_value(statistics[second_statistic])}",
                va="center",
                fontsize=8,
            )
        _set_scale(
            ax,
            [statistics[statistic] for statistics in statistics_of_cases for statistic in ("median", second_statistic)],
        )
        ax.set_title(kind, fontsize=10)
        ax.set_xlabel("mrad", fontsize=9)
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(names)), labels)
    axes[0].invert_yaxis()
    figure.suptitle(f"{title} (median / {second_statistic})", fontsize=11, x=0.01, ha="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(figure, path)


def _set_scale(ax: Axes, values: list[float]) -> None:
    """Set a linear scale from zero, or a logarithmic one for a wide range, with room for the values beside the bars."""
    if max(values) < LOG_SCALE_RATIO * min(values):
        ax.set_xlim(0.0, 1.7 * max(values))
        return
    ax.set_xscale("log")
    ax.set_xlim(0.5 * min(values), max(values) * (max(values) / min(values)) ** 0.7)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if max(values) > 50.0 * min(values) else (1.0, 3.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    ax.xaxis.set_minor_locator(NullLocator())


def _format_value(value: float) -> str:
    return f"{value:.0f}" if value >= 100.0 else f"{value:.2g}"


def draw_horizon_errors(results: Mapping[str, Any], path: Path, title: str) -> None:
    """Plot the errors of all models at the end of each prediction horizon, with one line per run."""
    cases = results["cases"]
    models = list(dict.fromkeys(name.partition("/")[0] for name in cases))
    labels = {name.partition("/")[0]: case["description"] for name, case in cases.items()}
    runs = list(dict.fromkeys(name.partition("/")[2] for name in cases))
    kinds = [kind for kind in cases[f"{models[0]}/{runs[0]}"]["scores"] if kind.startswith("error after")]
    figure = Figure(figsize=(2.6 * len(kinds) + 1.0, 3.4), layout="constrained")
    axes = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for ax, kind in zip(axes, kinds, strict=True):
        values = {run: [cases[f"{model}/{run}"]["scores"][kind] for model in models] for run in runs}
        for run, line in values.items():
            ax.plot(range(len(models)), line, "o-", color="#9aa5b1", lw=1, ms=4, label=run)
        medians = [median(column) for column in zip(*values.values(), strict=True)]
        ax.plot(range(len(models)), medians, "o", color=COLOURS[0], ms=7)
        ax.set_yscale("log")
        ax.set_title(kind.removesuffix(" [rad]"), fontsize=10)
        ax.set_xticks(range(len(models)), [labels[model] for model in models], rotation=30, ha="right", fontsize=8)
        ax.grid(axis="y", which="both", alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("rad")
    figure.suptitle(f"{title} (red: median of the runs)", fontsize=11, x=0.01, ha="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(figure, path)

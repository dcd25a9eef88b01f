"""Pictures of a fit: measured, before and after; residuals; errors of all windows; how the fit went."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, MaxNLocator

Array = np.ndarray
MEASURED, BEFORE, AFTER, QUIET = "#333333", "#e07b00", "#0a6ebd", "#999999"
"""Colours: readable beside each other, also by those who do not tell red from green."""
DOTS = 150
"""Samples up to which each is drawn as a dot."""
DPI = 130


@dataclass(frozen=True, eq=False)
class Curves:
    """One channel over one window."""

    name: str
    unit: str
    noise: float
    """Standard deviation of the measurement."""
    t: Float[Array, " k"]
    """Times of the samples [s]."""
    measured: Float[Array, " k"]
    before: Float[Array, " k"] | None
    """Simulated at the same times; none if the simulation diverged."""
    after: Float[Array, " k"] | None


@dataclass(frozen=True, eq=False)
class StageCourse:
    """How one stage went, step by step."""

    step: Float[Array, " k"]
    """Counted over all stages."""
    rms: Float[Array, " k"]
    """Of the training runs, in standard deviations of the noise."""
    held_out: Float[Array, " k"]
    """Of the held-out runs; NaN where it was not looked at."""


def window_figure(channels: Sequence[Curves], title: str) -> Figure:
    """Measured, before and after of every channel, each with the residual below it."""
    heights = [3.0, 1.0] * len(channels)
    figure = Figure(figsize=(9.0, 2.7 * len(channels) + 0.9), layout="constrained")
    axes = figure.subplots(2 * len(channels), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    for k, curves in enumerate(channels):
        _draw_channel(axes[2 * k], curves)
        _draw_residual(axes[2 * k + 1], curves)
    axes[-1].set_xlabel("time [s]")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower right", ncols=len(labels), frameon=False, fontsize="small")
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    figure.align_ylabels(axes)
    return figure


def errors_figure(before: Float[Array, " W"], after: Float[Array, " W"], title: str) -> Figure:
    """Errors of all windows in standard deviations of the noise, those that are worst after the fit on the right."""
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    ax = figure.subplots()
    order = np.argsort(np.where(np.isfinite(after), after, np.inf), kind="stable")
    number = np.arange(1, len(order) + 1)
    for k, at in zip(number, order, strict=True):
        ax.plot([k, k], [before[at], after[at]], color=QUIET, linewidth=0.8, zorder=1)
    ax.plot(number, before[order], "o", color=BEFORE, markersize=5, label="before")
    ax.plot(number, after[order], "o", color=AFTER, markersize=5, label="after")
    ax.axhline(1.0, color=QUIET, linestyle=":", linewidth=1.2)
    ax.annotate("noise", (1.0, 1.0), xycoords=("axes fraction", "data"), ha="right", va="bottom", color=QUIET)
    _scale(ax, np.concatenate([before, after]))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlim(0.5, len(order) + 0.5)
    ax.set_xlabel("windows, from the best to the worst")
    ax.set_ylabel("error [standard\ndeviations of the noise]")
    _finished(figure, ax, title)
    return figure


def course_figure(stages: Sequence[StageCourse], title: str) -> Figure:
    """Root mean square residual over the steps of a fit, stage by stage."""
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    ax = figure.subplots()
    for k, stage in enumerate(stages):
        # one entry in the legend for all stages
        training, held_out = ("training runs", "held-out runs") if k == 0 else (None, None)
        ax.plot(stage.step, stage.rms, color=AFTER, linewidth=1.5, marker=".", markersize=5, label=training)
        seen = np.isfinite(stage.held_out)
        ax.plot(stage.step[seen], stage.held_out[seen], "o", color=BEFORE, markersize=5, label=held_out)
        if k:
            ax.axvline(float(stage.step[0]) - 0.5, color=QUIET, linewidth=0.8)
        if len(stages) > 1:
            place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "top"}
            ax.annotate(f"stage {k + 1}", (float(stage.step[0]) - 0.5, 1.0), (4, -4), color=QUIET, fontsize=8, **place)
    _scale(ax, np.concatenate([np.concatenate([stage.rms, stage.held_out]) for stage in stages]))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlim(float(stages[0].step[0]) - 0.5, float(stages[-1].step[-1]) + 0.5)
    ax.set_xlabel("step")
    ax.set_ylabel("residual [standard\ndeviations of the noise]")
    _finished(figure, ax, title)
    return figure


def as_png(figure: Figure) -> bytes:
    """A figure as the content of a PNG file."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, facecolor="white")
    return buffer.getvalue()


def _draw_channel(ax: Axes, curves: Curves) -> None:
    few = len(curves.t) <= DOTS
    if few:
        ax.plot(curves.t, curves.measured, "o", color=MEASURED, markersize=2.5, label="measured")
    else:
        ax.plot(curves.t, curves.measured, color=MEASURED, linewidth=3.0, alpha=0.35, label="measured")
    if curves.before is not None:
        ax.plot(curves.t, curves.before, color=BEFORE, linewidth=1.2, linestyle="--", label="before")
    if curves.after is not None:
        ax.plot(curves.t, curves.after, color=AFTER, linewidth=1.4, label="after")
    ax.set_ylabel(f"{curves.name}{_in_brackets(curves.unit)}")
    ax.grid(alpha=0.25)
    ax.margins(x=0.0)


def _draw_residual(ax: Axes, curves: Curves) -> None:
    ax.axhspan(-curves.noise, curves.noise, color=QUIET, alpha=0.25, linewidth=0.0)
    if curves.after is None:
        ax.text(0.5, 0.5, "the simulation diverged", transform=ax.transAxes, ha="center", va="center", color=QUIET)
    else:
        residual = curves.after - curves.measured
        ax.plot(curves.t, residual, "." if len(curves.t) <= DOTS else "-", color=AFTER, markersize=3, linewidth=0.8)
        reach = 1.1 * max(float(np.max(np.abs(residual))), curves.noise)
        ax.set_ylim(-reach, reach)
    ax.set_ylabel("residual", fontsize="small")
    ax.yaxis.set_major_locator(MaxNLocator(nbins=3, symmetric=True))
    ax.tick_params(axis="y", labelsize="small")
    ax.grid(alpha=0.25)


def _scale(ax: Axes, values: Float[Array, " k"]) -> None:
    """Logarithmic, as errors are before and after, with numbers as people write them."""
    if np.any(values[np.isfinite(values)] > 0.0):
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(LogFormatter())
        ax.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))


def _finished(figure: Figure, ax: Axes, title: str) -> None:
    ax.grid(alpha=0.25, which="both")
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False, fontsize="small")
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium")


def _in_brackets(unit: str) -> str:
    return f" [{unit}]" if unit else ""

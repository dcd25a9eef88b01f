"""Plots of a fit: measured and simulated channels, their errors, residuals of all windows, progress of the solver."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, MaxNLocator

Array = np.ndarray
MEASURED, BEFORE, AFTER, MUTED = "#333333", "#e07b00", "#0a6ebd", "#999999"
"""Colours that people with red-green colour blindness can distinguish."""
MAX_MARKERS = 150
"""Maximum number of samples drawn as markers; longer series are drawn as a line."""
DPI = 130


@dataclass(frozen=True, eq=False)
class ChannelCurves:
    """Measurement and simulations of one channel in one window."""

    name: str
    unit: str
    noise: float
    """Standard deviation of the measurement noise."""
    t: Float[Array, " k"]
    """Times of the samples [s]."""
    measured: Float[Array, " k"]
    before: Float[Array, " k"] | None
    """Simulated at the same times before the fit; None if the simulation diverged."""
    after: Float[Array, " k"] | None
    """The same after the fit."""


@dataclass(frozen=True, eq=False)
class StageProgress:
    """Progress of one stage, step by step."""

    step: Float[Array, " k"]
    """Index of the step, counted over all stages."""
    rms: Float[Array, " k"]
    """Root mean square residual of the training runs, in standard deviations of the noise."""
    held_out: Float[Array, " k"]
    """The same for the held-out runs; NaN where it was not evaluated."""


def window_figure(channels: Sequence[ChannelCurves], title: str) -> Figure:
    """Measurement of every channel and its simulation before and after the fit, with the error after the fit below."""
    heights = [3.0, 1.0] * len(channels)
    figure = Figure(figsize=(9.0, 2.7 * len(channels) + 0.9), layout="constrained")
    axes = figure.subplots(2 * len(channels), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    for k, curves in enumerate(channels):
        _draw_channel(axes[2 * k], curves)
        _draw_error(axes[2 * k + 1], curves)
    axes[-1].set_xlabel("time [s]")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower right", ncols=len(labels), frameon=False, fontsize="small")
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    figure.align_ylabels(axes)
    return figure


def residuals_figure(before: Float[Array, " W"], after: Float[Array, " W"], title: str) -> Figure:
    """RMS residuals of windows before and after the fit [standard deviations of the noise], sorted by those after."""
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    ax = figure.subplots()
    order = np.argsort(np.where(np.isfinite(after), after, np.inf), kind="stable")
    rank = np.arange(1, len(order) + 1)
    for k, window in zip(rank, order, strict=True):
        ax.plot([k, k], [before[window], after[window]], color=MUTED, linewidth=0.8, zorder=1)
    ax.plot(rank, before[order], "o", color=BEFORE, markersize=5, label="before")
    ax.plot(rank, after[order], "o", color=AFTER, markersize=5, label="after")
    ax.axhline(1.0, color=MUTED, linestyle=":", linewidth=1.2)
    ax.annotate("noise", (1.0, 1.0), xycoords=("axes fraction", "data"), ha="right", va="bottom", color=MUTED)
    _set_log_scale(ax, np.concatenate([before, after]))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlim(0.5, len(order) + 0.5)
    ax.set_xlabel("windows, sorted by residual after the fit")
    ax.set_ylabel("RMS residual [standard\ndeviations of the noise]")
    _finish(figure, ax, title)
    return figure


def progress_figure(stages: Sequence[StageProgress], title: str) -> Figure:
    """Root mean square residual over the steps of a fit, by stage."""
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    ax = figure.subplots()
    for k, stage in enumerate(stages):
        # one entry in the legend for all stages
        training, held_out = ("training runs", "held-out runs") if k == 0 else (None, None)
        ax.plot(stage.step, stage.rms, color=AFTER, linewidth=1.5, marker=".", markersize=5, label=training)
        evaluated = np.isfinite(stage.held_out)
        ax.plot(stage.step[evaluated], stage.held_out[evaluated], "o", color=BEFORE, markersize=5, label=held_out)
        if k:
            ax.axvline(float(stage.step[0]) - 0.5, color=MUTED, linewidth=0.8)
        if len(stages) > 1:
            style = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "top"}
            ax.annotate(f"stage {k + 1}", (float(stage.step[0]) - 0.5, 1.0), (4, -4), color=MUTED, fontsize=8, **style)
    _set_log_scale(ax, np.concatenate([np.concatenate([stage.rms, stage.held_out]) for stage in stages]))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlim(float(stages[0].step[0]) - 0.5, float(stages[-1].step[-1]) + 0.5)
    ax.set_xlabel("step")
    ax.set_ylabel("RMS residual [standard\ndeviations of the noise]")
    _finish(figure, ax, title)
    return figure


def as_png(figure: Figure) -> bytes:
    """Content of a PNG file of a figure."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, facecolor="white")
    return buffer.getvalue()


def _draw_channel(ax: Axes, curves: ChannelCurves) -> None:
    if len(curves.t) <= MAX_MARKERS:
        ax.plot(curves.t, curves.measured, "o", color=MEASURED, markersize=2.5, label="measured")
    else:
        ax.plot(curves.t, curves.measured, color=MEASURED, linewidth=3.0, alpha=0.35, label="measured")
    if curves.before is not None:
        ax.plot(curves.t, curves.before, color=BEFORE, linewidth=1.2, linestyle="--", label="before")
    if curves.after is not None:
        ax.plot(curves.t, curves.after, color=AFTER, linewidth=1.4, label="after")
    ax.set_ylabel(f"{curves.name}{_unit_label(curves.unit)}")
    ax.grid(alpha=0.25)
    ax.margins(x=0.0)


def _draw_error(ax: Axes, curves: ChannelCurves) -> None:
    ax.axhspan(-curves.noise, curves.noise, color=MUTED, alpha=0.25, linewidth=0.0)
    if curves.after is None:
        ax.text(0.5, 0.5, "the simulation diverged", transform=ax.transAxes, ha="center", va="center", color=MUTED)
    else:
        error = curves.after - curves.measured
        ax.plot(curves.t, error, "." if len(curves.t) <= MAX_MARKERS else "-", color=AFTER, markersize=3, linewidth=0.8)
        limit = 1.1 * max(float(np.max(np.abs(error))), curves.noise)
        ax.set_ylim(-limit, limit)
    ax.set_ylabel("error", fontsize="small")
    ax.yaxis.set_major_locator(MaxNLocator(nbins=3, symmetric=True))
    ax.tick_params(axis="y", labelsize="small")
    ax.grid(alpha=0.25)


class _DecimalLogFormatter(LogFormatter):
    """Labels the same ticks as `LogFormatter`, in decimal notation."""

    def __call__(self, x, pos=None):
        return f"{x:g}" if super().__call__(x, pos) else ""


def _set_log_scale(ax: Axes, values: Float[Array, " k"]) -> None:
    """Set a logarithmic scale with tick labels such as 0.5, unless no value is positive."""
    if np.any(values[np.isfinite(values)] > 0.0):
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(_DecimalLogFormatter())
        ax.yaxis.set_minor_formatter(_DecimalLogFormatter(minor_thresholds=(1.5, 0.5)))


def _finish(figure: Figure, ax: Axes, title: str) -> None:
    """Add the grid, the legend and the title."""
    ax.grid(alpha=0.25, which="both")
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False, fontsize="small")
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium")


def _unit_label(unit: str) -> str:
    return f" [{unit}]" if unit else ""

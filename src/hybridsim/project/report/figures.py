"""Figures of a fit: selected windows, residuals of all windows, and residuals over the steps."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from hybridsim.data.run import Run
from hybridsim.identify.score import WindowScores
from hybridsim.project.run_folder.history import Step
from hybridsim.viz.fit_plots import (
    ChannelCurves,
    StageProgress,
    progress_figure,
    residuals_figure,
    window_figure,
)

MAX_CHANNELS = 6
"""Maximum number of channels in a figure; the channels with the largest residuals are selected."""


def figure_makers(
    scores: WindowScores, runs: Sequence[Run], label: str, history: Sequence[Step], units: Mapping[str, str]
) -> dict[str, Callable[[], Figure]]:
    """Functions that draw the figures, by the names of their files.

    Args:
        scores: windows of the runs before and after the fit.
        runs: recordings.
        label: kind of the runs, such as `held-out`.
        history: history of the fit.
        units: units of the channels.
    """
    before, after = scores.residual_rms
    makers: dict[str, Callable[[], Figure]] = {
        name: partial(window_figure, *arguments)
        for name, arguments in _selected_windows(scores, runs, label, units).items()
    }
    if len(after) > 1:
        makers["windows.png"] = partial(residuals_figure, before, after, f"All windows of the {label} runs")
    if stages := _stage_progress(history):
        makers["progress.png"] = partial(progress_figure, stages, "Residuals during the fit")
    return makers


def _selected_windows(scores: WindowScores, runs: Sequence[Run], label: str, units: Mapping[str, str]):
    """Curves and titles of the windows with median and largest residual after the fit."""
    after = np.where(np.isfinite(scores.residual_rms[1]), scores.residual_rms[1], np.inf)
    order = np.argsort(after, kind="stable")
    selected = {"typical": int(order[(len(order) - 1) // 2]), "worst": int(order[-1])}
    if selected["typical"] == selected["worst"]:
        selected = {"typical": selected["typical"]}
    w = scores.objective.windows
    figures = {}
    for kind, index in selected.items():
        begin = float(w.start[index])
        interval = f"run {runs[int(w.recording[index])].name}, {begin:.4g} s to {begin + w.steps * w.dt:.4g} s"
        name = "The only window" if len(order) == 1 else "A typical window" if kind == "typical" else "The worst window"
        residual = f"RMS residual {after[index]:.3g} standard deviations of the noise"
        title = f"{name} of the {label} runs: {interval}\n{residual if np.isfinite(after[index]) else 'diverged'}"
        figures[f"window_{kind}.png"] = (window_curves(scores, index, units), title)
    return figures


def window_curves(scores: WindowScores, window: int, units: Mapping[str, str]) -> list[ChannelCurves]:
    """Curves of the channels of a window; of many channels, those with the largest residuals."""
    w, sensors = scores.objective.windows, scores.objective.simulator.setup.sensors
    channels = []
    for channel, name in enumerate(sensors.names):
        samples = np.flatnonzero((w.channel[window] == channel) & (w.weight[window] > 0.0))
        if not len(samples):
            continue
        samples = samples[np.argsort(w.time_in_steps[window, samples], kind="stable")]
        before, after = (
            scores.sampled_readings[k, window, samples] if scores.ok[k, window] else None for k in range(len(scores.ok))
        )
        t = w.start[window] + w.time_in_steps[window, samples] * w.dt
        noise = 1.0 / float(w.weight[window, samples[0]])
        channels.append(ChannelCurves(name, units.get(name, ""), noise, t, w.value[window, samples], before, after))
    ranked = sorted(channels, key=lambda curves: -_residual_rms(curves))[:MAX_CHANNELS]
    return [curves for curves in channels if curves in ranked]


def _residual_rms(curves: ChannelCurves) -> float:
    """Root mean square residual of a channel, in standard deviations of the noise; infinity after divergence."""
    if curves.after is None:
        return np.inf
    return float(np.sqrt(np.mean(np.square(curves.after - curves.measured)))) / curves.noise


def _stage_progress(history: Sequence[Step]) -> list[StageProgress]:
    """Residuals of every stage over the steps of the fit, numbered consecutively."""
    evaluated = [(number, step) for number, step in enumerate(history, start=1) if step.normalized_cost is not None]
    stages = []
    for stage in sorted({step.stage for _, step in evaluated}):
        steps = [(number, step) for number, step in evaluated if step.stage == stage]
        stages.append(
            StageProgress(
                np.array([number for number, _ in steps], dtype=float),
                np.array([step.normalized_cost for _, step in steps], dtype=float),
                np.array([np.nan if step.held_out_rms is None else step.held_out_rms for _, step in steps]),
            )
        )
    return stages

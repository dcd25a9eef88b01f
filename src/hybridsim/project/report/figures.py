"""Pictures of a fit, by the names of their files: which windows are worth a look, and what is drawn of them."""

from collections.abc import Mapping, Sequence

import numpy as np

from hybridsim.data.recording import Recording
from hybridsim.identify.score import WindowScores
from hybridsim.project.record.history import Step
from hybridsim.viz.fit_plots import Curves, StageCourse, as_png, course_figure, errors_figure, window_figure

MOST_CHANNELS = 6
"""Channels in one picture; of more, those with the largest errors are drawn."""


def fit_pictures(
    judged: WindowScores, runs: Sequence[Recording], called: str, history: Sequence[Step], units: Mapping[str, str]
) -> dict[str, bytes]:
    """PNG files by their names.

    Args:
        judged: windows of these runs before and after the fit.
        runs: recordings.
        called: what runs they are, such as `held out`.
        history: how the fit went.
        units: of the channels.
    """
    before, after = judged.errors
    pictures = {name: as_png(window_figure(*what)) for name, what in _windows(judged, runs, called, units).items()}
    if len(after) > 1:
        pictures["windows.png"] = as_png(errors_figure(before, after, f"Every window of the {called} runs"))
    if courses := _courses(history):
        pictures["course.png"] = as_png(course_figure(courses, "Course of the fit"))
    return pictures


def _windows(judged: WindowScores, runs: Sequence[Recording], called: str, units: Mapping[str, str]):
    """A typical window and the worst one, by their errors after the fit; titles with their places."""
    after = np.where(np.isfinite(judged.errors[1]), judged.errors[1], np.inf)
    order = np.argsort(after, kind="stable")
    chosen = {"typical": int(order[(len(order) - 1) // 2]), "worst": int(order[-1])}
    if chosen["typical"] == chosen["worst"]:
        chosen = {"typical": chosen["typical"]}
    w = judged.objective.windows
    found = {}
    for kind, at in chosen.items():
        begin = float(w.start[at])
        place = f"run {runs[int(w.run[at])].name}, {begin:.4g} s to {begin + w.steps * w.dt:.4g} s"
        which = (
            "The only window" if len(order) == 1 else f"A {kind} window" if kind == "typical" else "The worst window"
        )
        error = f"off by {after[at]:.3g} times the noise" if np.isfinite(after[at]) else "diverged"
        title = f"{which} of the {called} runs: {place}; {error}"
        found[f"window_{kind}.png"] = (curves_of(judged, at, units), title)
    return found


def curves_of(judged: WindowScores, window: int, units: Mapping[str, str]) -> list[Curves]:
    """Channels of one window, those with the largest errors if there are many."""
    w, sensors = judged.objective.windows, judged.objective.simulated.setup.sensors
    found = []
    for channel, name in enumerate(sensors.names):
        own = np.flatnonzero((w.channel[window] == channel) & (w.weight[window] > 0.0))
        if not len(own):
            continue
        own = own[np.argsort(w.position[window, own], kind="stable")]
        before, after = (
            judged.samples[k, window, own] if judged.ok[k, window] else None for k in range(len(judged.ok))
        )
        t = w.start[window] + w.position[window, own] * w.dt
        noise = 1.0 / float(w.weight[window, own[0]])
        found.append(Curves(name, units.get(name, ""), noise, t, w.value[window, own], before, after))
    ranked = sorted(found, key=lambda curves: -_error(curves))[:MOST_CHANNELS]
    return [curves for curves in found if curves in ranked]


def _error(curves: Curves) -> float:
    if curves.after is None:
        return np.inf
    return float(np.sqrt(np.mean(np.square(curves.after - curves.measured)))) / curves.noise


def _courses(history: Sequence[Step]) -> list[StageCourse]:
    """Steps of every stage, counted through."""
    known = [(number, step) for number, step in enumerate(history, start=1) if step.rms is not None]
    found = []
    for stage in sorted({step.stage for _, step in known}):
        own = [(number, step) for number, step in known if step.stage == stage]
        found.append(
            StageCourse(
                np.array([number for number, _ in own], dtype=float),
                np.array([step.rms for _, step in own], dtype=float),
                np.array([np.nan if step.held_out_rms is None else step.held_out_rms for _, step in own]),
            )
        )
    return found

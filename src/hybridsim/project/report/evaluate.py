"""Evaluation of a fit: scores of the model before and after it, and standard errors."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from hybridsim.identify.score import WindowScores, score_windows
from hybridsim.identify.task import Task
from hybridsim.project.report.comparison import (
    HELD_OUT,
    RECONSTRUCTED,
    TRAINING,
    Comparison,
    comparison,
    prediction_comparisons,
    scoring_window,
    theta_before_fit,
)


class ScoredWindows(NamedTuple):
    """Windows before and after a fit, with initial states fitted to them."""

    training: WindowScores
    held_out: WindowScores | None


def scored_windows(task: Task, theta: Float[np.ndarray, " n"]) -> ScoredWindows:
    """Windows of the training and held-out runs, simulated before and after a fit."""
    problem, window, burn_in = task.problem, scoring_window(task.stages[-1]), task.stages[-1].burn_in
    thetas = np.stack([theta_before_fit(problem), theta])
    training = score_windows(problem, thetas, problem.train, window, burn_in=burn_in)
    if not problem.held_out:
        return ScoredWindows(training, None)
    return ScoredWindows(training, score_windows(problem, thetas, problem.held_out, window, burn_in=burn_in))


def windows_to_plot(windows: ScoredWindows) -> WindowScores:
    """Held-out windows, or training windows if there are none."""
    return windows.training if windows.held_out is None else windows.held_out


def comparisons(task: Task, theta: Float[np.ndarray, " n"], windows: ScoredWindows) -> list[Comparison]:
    """All scores before and after a fit, those of held-out runs first."""
    problem, burn_in = task.problem, task.stages[-1].burn_in
    thetas = np.stack([theta_before_fit(problem), theta])
    found: list[Comparison] = []
    if windows.held_out is not None:
        found.append(comparison(windows.held_out, HELD_OUT, RECONSTRUCTED))
        found += prediction_comparisons(problem, thetas, problem.held_out, HELD_OUT, burn_in)
    found.append(comparison(windows.training, TRAINING, RECONSTRUCTED))
    return found + prediction_comparisons(problem, thetas, problem.train, TRAINING, burn_in)

"""A fit with a run folder: start or resume, checkpoints and history during the fit, result and report at the end."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.fit import FitResult, Progress, fit
from hybridsim.identify.score import WindowScores, score_windows
from hybridsim.project.build.task import Task
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
from hybridsim.project.report.figures import fit_figures
from hybridsim.project.report.held_out import HeldOutMonitor
from hybridsim.project.report.result import result_json
from hybridsim.project.report.summary_page import summary_page
from hybridsim.project.run_folder.checkpoint import StageResult
from hybridsim.project.run_folder.checkpoint_store import FolderCheckpointStore
from hybridsim.project.run_folder.export_fit import write_model, write_weights
from hybridsim.project.run_folder.folder import Mode, RunFolder
from hybridsim.project.run_folder.history import History, Step
from hybridsim.project.run_folder.lock import folder_lock
from hybridsim.project.run_folder.manifest import input_changes, manifest, version_changes
from hybridsim.project.run_folder.write import write_file, write_json


class Outcome(NamedTuple):
    """Outcome of `run_fit`."""

    fit: FitResult | None
    """Result of the fit; None if it had been completed before."""
    result: dict[str, Any] | None
    """Content of `result.json`; None if the fit was stopped."""
    last_step: tuple[int, int]
    """Indices of the last stage, from 0, and of its last step, from 1."""


def run_fit(
    task: Task,
    run_folder: RunFolder,
    *,
    mode: Mode = "new",
    command: Sequence[str] = (),
    callback: Callable[[Progress, float | None], None] = lambda progress, held_out_rms: None,
    stop: Callable[[], bool] = lambda: False,
    log: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Fit, and write all results into a run folder.

    Args:
        task: fit problem, stages and their origin.
        run_folder: run folder.
        mode: `new` requires a run folder without a fit, `resume` continues the fit in it or starts one, and `fresh`
            deletes a fit in it first. A complete fit is not resumed and its files stay unchanged.
        command: command line, for the manifest.
        callback: called after every step with the progress and, where it was evaluated, the RMS residual of the
            held-out runs in standard deviations of the noise.
        stop: polled before every step; a stopped fit can be resumed.
        log: callback for messages to the user.
    """
    now = manifest(task, command)
    if mode == "resume" and run_folder.is_complete:
        _check_unchanged(run_folder, now, log)
        log(f"The fit in {run_folder.path} is complete; --fresh starts it over.")
        stored = run_folder.result()
        return Outcome(None, stored, (len(task.stages) - 1, stored["stages"][-1]["steps"]))
    run_folder.make_folder()
    with folder_lock(run_folder.path):
        run_folder.check_mode(mode)
        run_folder.remove_partial_files()
        if mode == "resume" and run_folder.exists:
            _check_unchanged(run_folder, now, log)
        else:
            run_folder.begin(now, task.project_text)
        history, store = History(run_folder.history_file), FolderCheckpointStore(run_folder.path, log=log)
        last_step = _rewind(history, store, log if mode == "resume" else lambda text: None)
        monitor = HeldOutMonitor(task.problem, task.stages)

        def on_step(progress: Progress) -> None:
            nonlocal last_step
            last_step = (progress.stage, progress.step)
            held_out_rms = monitor.evaluate(progress, is_last=progress.stage in store.stage_results)
            history.append(
                Step(
                    progress.stage,
                    progress.step,
                    progress.cost,
                    progress.normalized_cost,
                    held_out_rms,
                    round(progress.elapsed, 3),
                )
            )
            callback(progress, held_out_rms)

        fit_result = fit(task.problem, task.stages, checkpoint_store=store, callback=on_step, stop=stop)
        store.flush()
        if fit_result.stopped:
            return Outcome(fit_result, None, last_step)
        result = _write_report(task, run_folder, fit_result, store.stage_results, history.read())
        return Outcome(fit_result, result, last_step)


def _check_unchanged(run_folder: RunFolder, now: dict[str, Any], log: Callable[[str], None]) -> None:
    """Raise if the inputs of the fit have changed; log changes of software and hardware."""
    before = run_folder.manifest()
    if changes := input_changes(before, now):
        raise HybridsimError(
            f"cannot resume the fit in {run_folder.path}, because its inputs have changed: "
            f"{'; '.join(changes)}. Undo the changes, or start over with --fresh."
        )
    if changes := version_changes(before, now):
        log(
            f"The fit was started with different software or hardware ({'; '.join(changes)}): results may differ "
            "in the last digits."
        )


def _rewind(history: History, store: FolderCheckpointStore, log: Callable[[str], None]) -> tuple[int, int]:
    """Truncate the history to the newest checkpoint; returns its stage and step."""
    checkpoint = store.load_newest()
    if checkpoint is None:
        log("There is no checkpoint yet: starting from the beginning.")
        history.path.unlink(missing_ok=True)
        return (0, 0)
    step, cost = int(checkpoint.state.steps), float(np.min(checkpoint.state.cost))
    log(f"Resuming in stage {checkpoint.stage + 1} after step {step}.")
    history.truncate(Step(checkpoint.stage, step, cost))
    return (checkpoint.stage, step)


def _write_report(
    task: Task,
    run_folder: RunFolder,
    fit_result: FitResult,
    stage_results: dict[int, StageResult],
    history: Sequence[Step],
) -> dict[str, Any]:
    """Score the fit and write model, weights, plots, summary page and, last, the result, which marks completeness."""
    thetas = np.stack([theta_before_fit(task.problem), fit_result.theta])
    windows, comparisons = _score(task, thetas)
    model = write_model(task, fit_result.theta, run_folder)
    write_weights(task, fit_result.theta, run_folder)
    result = result_json(task, fit_result, stage_results, comparisons, model)
    held_out = task.problem.held_out
    runs, label = (held_out, HELD_OUT) if held_out else (task.problem.train, TRAINING)
    figures = fit_figures(windows, runs, label, history, task.units)
    run_folder.plots.mkdir(exist_ok=True)
    for name, content in figures.items():
        write_file(run_folder.plots / name, content)
    write_file(run_folder.summary_file, summary_page(result, run_folder.manifest(), figures))
    write_json(run_folder.result_file, result)
    return result


def _score(task: Task, thetas: np.ndarray) -> tuple[WindowScores, list[Comparison]]:
    """Windows to be plotted, and all scores, those of held-out runs first."""
    problem, window = task.problem, scoring_window(task.stages[-1])
    training = score_windows(problem, thetas, problem.train, window)
    scores = [
        comparison(training, TRAINING, RECONSTRUCTED),
        *prediction_comparisons(problem, thetas, problem.train, TRAINING),
    ]
    if not problem.held_out:
        return training, scores
    held_out = score_windows(problem, thetas, problem.held_out, window)
    held_out_scores = [
        comparison(held_out, HELD_OUT, RECONSTRUCTED),
        *prediction_comparisons(problem, thetas, problem.held_out, HELD_OUT),
    ]
    return held_out, [*held_out_scores, *scores]

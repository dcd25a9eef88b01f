"""A fit with a run record: start or resume, checkpoints and history during the fit, result and report at the end."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.fit import FitResult, Progress, fit
from hybridsim.identify.score import WindowScores, score_windows
from hybridsim.project.build.task import Task
from hybridsim.project.record.checkpoint import StageResult
from hybridsim.project.record.checkpoint_store import FolderCheckpointStore
from hybridsim.project.record.export_fit import write_model, write_weights
from hybridsim.project.record.history import History, Step
from hybridsim.project.record.lock import RecordLock
from hybridsim.project.record.manifest import input_changes, manifest, version_changes
from hybridsim.project.record.record import Mode, Record
from hybridsim.project.record.write import write_file, write_json
from hybridsim.project.report.comparison import (
    EXPLAINED,
    HELD_OUT,
    TRAINING,
    Comparison,
    comparison,
    predictions,
    scoring_window,
    theta_before,
)
from hybridsim.project.report.figures import fit_figures
from hybridsim.project.report.held_out import HeldOutMonitor
from hybridsim.project.report.result import result
from hybridsim.project.report.summary_page import summary_page


class Outcome(NamedTuple):
    """Outcome of a run."""

    fit: FitResult | None
    """Result of the fit; None if the run had been completed before."""
    result: dict[str, Any] | None
    """Content of `result.json`; None if the fit was stopped."""
    position: tuple[int, int]
    """Indices of the last stage, from 0, and of its last step, from 1."""


def run_fit(
    task: Task,
    record: Record,
    *,
    mode: Mode = "new",
    command: Sequence[str] = (),
    callback: Callable[[Progress, float | None], None] = lambda progress, held_out: None,
    stop: Callable[[], bool] = lambda: False,
    log: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Fit, and write all results into a record.

    Args:
        task: the fit.
        record: run record.
        mode: `new` requires an empty record, `resume` continues an existing one or starts a new one, and `fresh`
            deletes an existing one first. A complete record is not resumed and stays unchanged.
        command: command line of the run, for the record.
        callback: called after every step with the progress and, where it was evaluated, the RMS residual of the
            held-out runs in standard deviations of the noise.
        stop: polled before every step; a stopped fit can be resumed.
        log: callback for messages to the user.
    """
    now = manifest(task, command)
    if mode == "resume" and record.is_complete:
        _check_unchanged(record, now, log)
        log(f"The run in {record.folder} is complete; --fresh starts it over.")
        stored = record.result()
        return Outcome(None, stored, (len(task.stages) - 1, stored["stages"][-1]["steps"]))
    record.make_folder()
    with RecordLock(record.folder):
        record.check_mode(mode)
        record.remove_partial_files()
        if mode == "resume" and record.exists:
            _check_unchanged(record, now, log)
        else:
            record.begin(now, task.project_text)
        history, store = History(record.history_file), FolderCheckpointStore(record.folder, log=log)
        position = _rewind(history, store, log if mode == "resume" else lambda text: None)
        monitor = HeldOutMonitor(task.problem, task.stages)

        def on_step(progress: Progress) -> None:
            nonlocal position
            position = (progress.stage, progress.step)
            held_out = monitor.evaluate(progress, is_last=progress.stage in store.stage_results)
            history.append(
                Step(progress.stage, progress.step, progress.cost, progress.rms, held_out, round(progress.seconds, 3))
            )
            callback(progress, held_out)

        fit_result = fit(task.problem, task.stages, checkpoint_store=store, callback=on_step, stop=stop)
        store.flush()
        if fit_result.stopped:
            return Outcome(fit_result, None, position)
        report = _write_report(task, record, fit_result, store.stage_results, history.read())
        return Outcome(fit_result, report, position)


def _check_unchanged(record: Record, now: dict[str, Any], log: Callable[[str], None]) -> None:
    """Raise if the inputs of the run have changed; log changes of software and hardware."""
    before = record.manifest()
    if changes := input_changes(before, now):
        raise HybridsimError(
            f"cannot resume the run in {record.folder}, because its inputs have changed: "
            f"{'; '.join(changes)}. Undo the changes, or start over with --fresh."
        )
    if changes := version_changes(before, now):
        log(
            f"The run was started with different software or hardware ({'; '.join(changes)}): results may differ "
            "in the last digits."
        )


def _rewind(history: History, store: FolderCheckpointStore, log: Callable[[str], None]) -> tuple[int, int]:
    """Truncate the history to the newest checkpoint; returns its stage and step."""
    checkpoint = store.newest()
    if checkpoint is None:
        log("There is no checkpoint yet: starting from the beginning.")
        history.path.unlink(missing_ok=True)
        return (0, 0)
    step, cost = int(checkpoint.state.steps), float(np.min(checkpoint.state.cost))
    log(f"Resuming in stage {checkpoint.stage + 1} after step {step}.")
    history.truncate(Step(checkpoint.stage, step, cost))
    return (checkpoint.stage, step)


def _write_report(
    task: Task, record: Record, fit_result: FitResult, stage_results: dict[int, StageResult], history: Sequence[Step]
) -> dict[str, Any]:
    """Score the fit and write model, weights, plots, summary page and, last, the result, which marks completeness."""
    thetas = np.stack([theta_before(task.problem), fit_result.theta])
    windows, comparisons = _score(task, thetas)
    model = write_model(task, fit_result.theta, record)
    write_weights(task, fit_result.theta, record)
    report = result(task, fit_result, stage_results, comparisons, model)
    held_out = task.problem.held_out
    runs, label = (held_out, HELD_OUT) if held_out else (task.problem.train, TRAINING)
    figures = fit_figures(windows, runs, label, history, task.units)
    record.plots.mkdir(exist_ok=True)
    for name, content in figures.items():
        write_file(record.plots / name, content)
    write_file(record.summary_file, summary_page(report, record.manifest(), figures))
    write_json(record.result_file, report)
    return report


def _score(task: Task, thetas: np.ndarray) -> tuple[WindowScores, list[Comparison]]:
    """Windows to be plotted, and all scores, those of held-out runs first."""
    problem, window = task.problem, scoring_window(task.stages[-1])
    training = score_windows(problem, thetas, problem.train, window)
    scores = [comparison(training, TRAINING, EXPLAINED), *predictions(problem, thetas, problem.train, TRAINING)]
    if not problem.held_out:
        return training, scores
    held_out = score_windows(problem, thetas, problem.held_out, window)
    held_out_scores = [
        comparison(held_out, HELD_OUT, EXPLAINED),
        *predictions(problem, thetas, problem.held_out, HELD_OUT),
    ]
    return held_out, [*held_out_scores, *scores]

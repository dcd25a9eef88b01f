"""A fit with a run folder: start or resume, checkpoints and history during the fit, result and report at the end."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import FolderError, HybridsimError
from hybridsim.identify.score import WindowScores
from hybridsim.identify.solve import Progress, Solution, solve
from hybridsim.identify.task import Task
from hybridsim.identify.uncertainty import inapplicability, standard_errors
from hybridsim.project.report.comparison import HELD_OUT, TRAINING
from hybridsim.project.report.evaluate import comparisons, scored_windows, windows_to_plot
from hybridsim.project.report.figures import figure_makers
from hybridsim.project.report.held_out import HeldOutMonitor
from hybridsim.project.report.result import result_json, with_model
from hybridsim.project.report.summary_page import summary_page
from hybridsim.project.run_folder.checkpoint import StageResult
from hybridsim.project.run_folder.checkpoint_store import FolderCheckpointStore
from hybridsim.project.run_folder.export_fit import write_model, write_weights
from hybridsim.project.run_folder.folder import Mode, RunFolder
from hybridsim.project.run_folder.history import History, Step
from hybridsim.project.run_folder.lock import folder_lock
from hybridsim.project.run_folder.manifest import input_changes, manifest, version_changes
from hybridsim.project.run_folder.write import write_file
from hybridsim.viz.fit_plots import as_png


class Outcome(NamedTuple):
    """Outcome of `run_fit`."""

    solution: Solution | None
    """Solution of the fit problem; None if it had been completed before."""
    result: dict[str, Any] | None
    """Content of `result.json`; None if the fit was stopped."""
    windows: WindowScores | None
    """Windows that were plotted; None if none were."""
    last_step: tuple[int, int]
    """Indices of the last stage, from 0, and of its last step, from 1."""


class FitEvaluation(NamedTuple):
    """Evaluation of a fit."""

    record: dict[str, Any]
    """Result as data; content of `result.json` without the exported model."""
    windows: WindowScores | None
    """Windows to be plotted; None if they could not be scored."""


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
        log(f"The fit in {run_folder.path} is complete.")
        stored = run_folder.result()
        return Outcome(None, stored, None, (len(task.stages) - 1, stored["stages"][-1]["steps"]))
    run_folder.make_folder()
    with folder_lock(run_folder.path):
        run_folder.check_mode(mode)
        run_folder.remove_partial_files()
        if mode == "resume" and run_folder.exists:
            _check_unchanged(run_folder, now, log)
            run_folder.write_specification(task.project_text, task.files)
        else:
            run_folder.begin(now, task.project_text, task.files)
        history, store = (
            History(run_folder.history_file),
            FolderCheckpointStore(run_folder.path, run_folder.fit_id(), log=log),
        )
        last_step = _rewind(history, store, log if mode == "resume" else lambda text: None)
        monitor = HeldOutMonitor(task.problem, task.stages)

        def on_step(progress: Progress) -> None:
            nonlocal last_step
            last_step = (progress.stage, progress.step)
            held_out_rms = monitor.evaluate(progress)
            history.append(history_step(progress, held_out_rms))
            callback(progress, held_out_rms)

        try:
            solution = solve(task.problem, task.stages, checkpoint_store=store, callback=on_step, stop=stop)
        finally:
            # also after Ctrl-C in Python, which raises
            store.flush()
        if solution.stopped:
            return Outcome(solution, None, None, last_step)
        evaluation = evaluate(task, solution, store.stage_results)
        record = write_report(task, run_folder, solution.theta, *evaluation, history.read())
        return Outcome(solution, record, evaluation.windows, last_step)


def history_step(progress: Progress, held_out_rms: float | None) -> Step:
    """Line of the history after a step."""
    elapsed = round(progress.elapsed, 3)
    return Step(progress.stage, progress.step, progress.cost, progress.normalized_cost, held_out_rms, elapsed)


def _check_unchanged(run_folder: RunFolder, now: dict[str, Any], log: Callable[[str], None]) -> None:
    """Raise if the inputs of the fit have changed; log changes of software and hardware."""
    before = run_folder.manifest()
    if changes := input_changes(before, now):
        raise FolderError(
            f"cannot resume the fit in {run_folder.path}, because its inputs have changed: {'; '.join(changes)}",
            python="undo the changes, or choose another folder",
            command="undo the changes, or start over with --fresh",
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


def evaluate(task: Task, solution: Solution, stage_results: Mapping[int, StageResult]) -> FitEvaluation:
    """Result of a fit as data, and the windows to be plotted."""
    # a solution is worth more than its standard errors and scores
    remarks = []
    if reason := inapplicability(solution.objective):
        remarks.append(f"No standard errors were computed: {reason}.")
    try:
        errors = standard_errors(solution.objective, solution.point)
    except (HybridsimError, np.linalg.LinAlgError) as error:
        errors = {}
        remarks.append(f"The standard errors could not be computed: {error}.")
    try:
        windows = scored_windows(task, solution.theta)
        scores = comparisons(task, solution.theta, windows)
    except HybridsimError as error:
        remarks.append(f"The fit could not be scored: {error}.")
        return FitEvaluation(result_json(task, solution, stage_results, [], errors, remarks), None)
    record = result_json(task, solution, stage_results, scores, errors, remarks)
    return FitEvaluation(record, windows_to_plot(windows))


def write_report(
    task: Task,
    run_folder: RunFolder,
    theta: Float[np.ndarray, " n"],
    record: Mapping[str, Any],
    windows: WindowScores | None,
    history: Sequence[Step],
) -> dict[str, Any]:
    """Write model, weights, plots, summary page and, last, the result, which marks completeness.

    Returns:
        The result, completed by what was written.
    """
    model = write_model(task, theta, run_folder)
    write_weights(task, theta, run_folder)
    result = with_model(record, model)
    held_out = task.problem.held_out
    runs, label = (held_out, HELD_OUT) if held_out else (task.problem.train, TRAINING)
    makers = {} if windows is None else figure_makers(windows, runs, label, history, task.units)
    figures = {name: as_png(make()) for name, make in makers.items()}
    run_folder.plots.mkdir(exist_ok=True)
    for name, content in figures.items():
        write_file(run_folder.plots / name, content)
    write_file(run_folder.summary_file, summary_page(result, run_folder.manifest(), figures))
    run_folder.write_result(result)
    return result

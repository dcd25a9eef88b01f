"""A fit in a run record: begun or gone on with, watched, kept, and written up at its end."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.fit import FitResult, Progress, fit
from hybridsim.identify.score import WindowScores, score_windows
from hybridsim.project.build.task import Task
from hybridsim.project.record.checkpoint import StageEnd
from hybridsim.project.record.checkpoint_store import FolderCheckpointStore
from hybridsim.project.record.export_fit import write_model, write_weights
from hybridsim.project.record.history import History, Step
from hybridsim.project.record.lock import RecordLock
from hybridsim.project.record.manifest import changed, manifest, other_versions
from hybridsim.project.record.record import Mode, Record
from hybridsim.project.record.write import write_file, write_json
from hybridsim.project.report.comparison import (
    EXPLAINED,
    HELD_OUT,
    TRAINING,
    Comparison,
    comparison,
    judging_window,
    predictions,
    theta_before,
)
from hybridsim.project.report.figures import fit_pictures
from hybridsim.project.report.held_out import HeldOutGap
from hybridsim.project.report.result import result
from hybridsim.project.report.summary_page import summary_page


class Outcome(NamedTuple):
    """What a run came to."""

    fitted: FitResult | None
    """None if the run was complete already: all that is known of it is its result."""
    result: dict[str, Any] | None
    """What `result.json` holds; none if somebody stopped the fit."""
    place: tuple[int, int]
    """Number of the stage, counted from 0, and of its step, that the fit has come to."""


def run_fit(
    task: Task,
    record: Record,
    *,
    mode: Mode = "new",
    command: Sequence[str] = (),
    watch: Callable[[Progress, float | None], None] = lambda progress, held_out: None,
    stop: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Fit, and write everything into a record.

    Args:
        task: what to fit.
        record: where to write.
        mode: `new` refuses a record that is there already, `resume` goes on with it or begins if there is none, and
            `fresh` deletes it first. A record that is complete is not resumed: nothing in it changes.
        command: that started the run, for the record.
        watch: told after every step how the fit goes, and the error of the held-out runs in standard deviations of the
            noise, where it was looked at.
        stop: asked before every step; the fit can be resumed from there.
        tell: told what a user should know.
    """
    now = manifest(task, command)
    if mode == "resume" and record.is_complete:
        _check_unchanged(record, now, tell)
        tell(f"The run in {record.folder} is complete; --fresh starts it again.")
        found = record.result()
        return Outcome(None, found, (len(task.stages) - 1, found["stages"][-1]["steps"]))
    record.make_folder()
    with RecordLock(record.folder):
        record.check_mode(mode)
        record.tidy()
        if mode == "resume" and record.exists:
            _check_unchanged(record, now, tell)
        else:
            record.begin(now, task.project_text)
        history, keeper = History(record.history_file), FolderCheckpointStore(record.folder, tell=tell)
        place = _rewind(history, keeper, tell if mode == "resume" else lambda text: None)
        gap = HeldOutGap(task.problem, task.stages)

        def watched(progress: Progress) -> None:
            nonlocal place
            place = (progress.stage, progress.step)
            held_out = gap.after(progress, is_last=progress.stage in keeper.ends)
            history.add(
                Step(progress.stage, progress.step, progress.cost, progress.rms, held_out, round(progress.seconds, 3))
            )
            watch(progress, held_out)

        fitted = fit(task.problem, task.stages, keeper=keeper, watch=watched, stop=stop)
        keeper.flush()
        if fitted.stopped:
            return Outcome(fitted, None, place)
        found = _write_up(task, record, fitted, keeper.ends, history.read())
        return Outcome(fitted, found, place)


def _check_unchanged(record: Record, now: dict[str, Any], tell: Callable[[str], None]) -> None:
    """Raise if going on would mix two different fits."""
    before = record.manifest()
    if different := changed(before, now):
        raise HybridsimError(
            f"cannot go on with the run in {record.folder}, because this has changed since it began: "
            f"{'; '.join(different)}. Undo that, or start again with --fresh."
        )
    if different := other_versions(before, now):
        tell(f"The run was begun with other software or hardware ({'; '.join(different)}): its last digits may differ.")


def _rewind(history: History, keeper: FolderCheckpointStore, tell: Callable[[str], None]) -> tuple[int, int]:
    """Take the history back to where the fit goes on: returns the stage and its step."""
    found = keeper.newest()
    if found is None:
        tell("Nothing was saved yet: starting from the beginning.")
        history.path.unlink(missing_ok=True)
        return (0, 0)
    step, cost = int(found.state.steps), float(np.min(found.state.cost))
    tell(f"Going on with stage {found.stage + 1} after step {step}.")
    history.cut(Step(found.stage, step, cost))
    return (found.stage, step)


def _write_up(
    task: Task, record: Record, fitted: FitResult, ends: dict[int, StageEnd], history: Sequence[Step]
) -> dict[str, Any]:
    """Score the fit and write it up for people and programs; the result comes last and tells that all is there."""
    thetas = np.stack([theta_before(task.problem), fitted.theta])
    shown, comparisons = _scored(task, thetas)
    model = write_model(task, fitted.theta, record)
    write_weights(task, fitted.theta, record)
    found = result(task, fitted, ends, comparisons, model)
    held_out = task.problem.held_out
    runs, called = (held_out, HELD_OUT) if held_out else (task.problem.train, TRAINING)
    pictures = fit_pictures(shown, runs, called, history, task.units)
    record.plots.mkdir(exist_ok=True)
    for name, content in pictures.items():
        write_file(record.plots / name, content)
    write_file(record.summary_file, summary_page(found, record.manifest(), pictures))
    write_json(record.result_file, found)
    return found


def _scored(task: Task, thetas: np.ndarray) -> tuple[WindowScores, list[Comparison]]:
    """Windows to be drawn, and all scores: held-out runs first, since they are what counts."""
    problem, window = task.problem, judging_window(task.stages[-1])
    training = score_windows(problem, thetas, problem.train, window)
    scores = [comparison(training, TRAINING, EXPLAINED), *predictions(problem, thetas, problem.train, TRAINING)]
    if not problem.held_out:
        return training, scores
    judged = score_windows(problem, thetas, problem.held_out, window)
    judging = [comparison(judged, HELD_OUT, EXPLAINED), *predictions(problem, thetas, problem.held_out, HELD_OUT)]
    return judged, [*judging, *scores]

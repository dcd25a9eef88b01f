"""`hybridsim.fit`: fit the parameters of an experiment to recordings."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hybridsim.core.errors import DataError, HybridsimError, Problem, Severity, SpecificationError
from hybridsim.core.key_path import with_place
from hybridsim.core.specification import as_plain
from hybridsim.core.warnings import warn_user
from hybridsim.data.recording import Recording, as_recordings, with_unique_names
from hybridsim.identify.experiment import Experiment
from hybridsim.identify.fit_settings import FitSettings
from hybridsim.identify.solve import Progress, solve
from hybridsim.identify.stage import Stage
from hybridsim.identify.task import DEFAULT_HELD_OUT, HeldOut, Task, hold_out, make_task
from hybridsim.params.free import Free
from hybridsim.project.fit_progress import FitProgress
from hybridsim.project.fit_result import FitResult
from hybridsim.project.fit_run import evaluate, history_step, run_fit
from hybridsim.project.report.held_out import HeldOutMonitor
from hybridsim.project.run_folder.checkpoint import StageResult
from hybridsim.project.run_folder.folder import RunFolder
from hybridsim.project.run_folder.history import Step
from hybridsim.project.write_project import recorded_task, warn_if_unrecorded

Recordings = Recording | Sequence[Recording]
Callback = Callable[[Progress, float | None], None]


def fit(
    experiment: Experiment,
    free: str | Free | Sequence[str | Free],
    train: Recordings,
    held_out: Recordings | HeldOut = DEFAULT_HELD_OUT,
    *,
    stages: Stage | Sequence[Stage] = (),
    seed: int = 0,
    name: str = "fit",
    folder: str | Path | None = None,
    resume: bool = False,
    quiet: bool = False,
) -> FitResult:
    """Fit the parameters of an experiment to recordings.

        result = fit(experiment, ["joint.damping[*]", Free("body.mass[arm]", bounds=(0.5, 2.0))], runs[:6], runs[6:])
        print(result)

    Args:
        experiment: mechanism, channels and commands.
        free: free parameters by name, or `Free(name, ...)` with bounds, priors and the like; all others are fixed.
        train: training recordings.
        held_out: held-out recordings; or the fraction of `train` to hold out, or names among them, with wildcards. Of a
            single recording, a fraction is its last part. 0 for none.
        stages: stages in order; by default windows of 0.25 s, then of 1 s, fitted by Levenberg–Marquardt, and whole
            runs if actuators have internal states.
        seed: random seed of stochastic solvers.
        name: name of the fit.
        folder: run folder for checkpoints during the fit and the result, as `hybridsim fit` writes it.
        resume: continue an unfinished fit in `folder`, or load a complete one; start one if there is none.
        quiet: show no progress.

    Raises:
        SpecificationError: names do not match the model, or values are invalid; carries every error.
        DataError: the recordings cannot be used; carries every error.
        DivergedError: the simulation diverges at the initial values.
        HybridsimError: `folder` contains a fit and `resume` is not set, or the inputs of its fit have changed.
    """
    task = fit_task(experiment, free, train, held_out, stages=stages, seed=seed, name=name)
    if resume and folder is None:
        raise HybridsimError("resume needs the folder of the fit")
    with FitProgress(quiet=quiet or not sys.stderr.isatty()) as progress:
        if folder is None:
            return _fit_in_memory(task, progress.show)
        run_folder = RunFolder(folder)
        task = recorded_task(task)
        warn_if_unrecorded(task)
        mode = "resume" if resume else "new"
        outcome = run_fit(task, run_folder, mode=mode, callback=progress.show, log=progress.log)
    assert outcome.result is not None
    return FitResult(task, run_folder.theta(), outcome.result, run_folder.history(), outcome.windows)


def fit_task(
    experiment: Experiment,
    free: str | Free | Sequence[str | Free],
    train: Recordings,
    held_out: Recordings | HeldOut = DEFAULT_HELD_OUT,
    *,
    stages: Stage | Sequence[Stage] = (),
    seed: int = 0,
    name: str = "fit",
) -> Task:
    """The task of a fit, checked as a whole; takes the arguments of `fit`."""
    if not isinstance(experiment, Experiment):
        raise TypeError(f"fit needs an Experiment, not {type(experiment).__name__}")
    entries = [free] if isinstance(free, str | Free) else list(free)
    parameters = [entry if isinstance(entry, Free) else Free(entry) for entry in entries]
    problems: list[Problem] = []
    held_out = as_plain(held_out)
    settings = FitSettings(name=name, seed=seed)
    is_selection = _is_selection(held_out)
    training = as_recordings("train", train)
    if not training:
        raise ValueError("train is empty: a fit needs at least one recording")
    recordings = training if is_selection else [*training, *as_recordings("held_out", held_out)]
    if not is_selection or len({recording.name for recording in recordings}) < len(recordings):
        recordings = with_unique_names(recordings)
    training, validation = recordings[: len(training)], recordings[len(training) :]
    train_runs, held_out_runs = (experiment.runs(recordings, problems) for recordings in (training, validation))
    if problems:
        raise DataError(dict.fromkeys(problems))
    selection: Any = held_out if is_selection else [recording.name for recording in validation] or 0.0
    runs = hold_out(train_runs, selection, problems) if is_selection else (train_runs, held_out_runs)
    stage_list = (stages,) if isinstance(stages, Stage) or not isinstance(stages, Sequence) else tuple(stages)
    if invalid := [stage for stage in stage_list if not isinstance(stage, Stage)]:
        raise TypeError(f"stages must be Stage(...) or a list of stages, not {type(invalid[0]).__name__}")
    task = make_task(
        experiment, experiment.assembly, parameters, runs, stage_list, problems, name=settings.name, seed=settings.seed
    )
    if task is None:
        errors = [problem for problem in problems if problem.severity is Severity.ERROR]
        raise SpecificationError(map(with_place, errors))
    for problem in problems:
        if problem.severity is Severity.WARNING:
            warn_user(str(with_place(problem)))
    return replace(task, recordings=(*training, *validation), held_out=selection)


def _is_selection(held_out: object) -> bool:
    """Whether held-out runs are specified by a fraction or by name."""
    if isinstance(held_out, float | int | str):
        return True
    return isinstance(held_out, Sequence) and bool(held_out) and all(isinstance(entry, str) for entry in held_out)


def _fit_in_memory(task: Task, callback: Callback) -> FitResult:
    history: list[Step] = []
    monitor = HeldOutMonitor(task.problem, task.stages)

    def on_step(progress: Progress) -> None:
        held_out_rms = monitor.evaluate(progress)
        history.append(history_step(progress, held_out_rms))
        callback(progress, held_out_rms)

    solution = solve(task.problem, task.stages, callback=on_step)
    results = zip(solution.costs, solution.terminations, solution.steps, strict=True)
    record, windows = evaluate(task, solution, {k: StageResult(*result) for k, result in enumerate(results)})
    return FitResult(task, solution.theta, record, history, windows)

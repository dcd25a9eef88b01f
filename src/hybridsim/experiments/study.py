"""Study: fits of several models to the same recordings, scored in the same way, with goals.

Cases are fitted one after the other and saved as soon as they are finished, so that an interrupted experiment resumes
with the first unfinished case. `results.json` holds everything needed for figures and checks.
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import HybridsimError
from hybridsim.core.files import write_atomically
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.score import score_predictions, score_windows
from hybridsim.identify.solve import Progress, solve
from hybridsim.identify.stage import Stage

Array = np.ndarray
FORMAT = 3
"""Version of the format of results."""
STORED = Path(__file__).parent / "stored"
"""Results of complete experiments, whose scores are recomputed by tests."""
SCORE_TOLERANCE = 0.01
"""Relative difference allowed between stored and recomputed scores."""


class Case(NamedTuple):
    """One fit of an experiment."""

    name: str
    description: str
    """Description of the fitted model; for tables and figures."""
    make_problem: Callable[[], FitProblem]
    stages: tuple[Stage, ...]
    """Empty to score the model without fitting."""
    initial_case: str = ""
    """Case whose estimates are the initial values of the parameters in common."""


class Goal(NamedTuple):
    """An upper limit on a metric."""

    metric: str
    limit: float
    description: str


@dataclass(frozen=True)
class Study:
    """A claim and the fits that support it."""

    name: str
    claim: str
    source: str
    """Source of the recordings."""
    cases: Callable[[bool], Sequence[Case]]
    """The fits; fewer and smaller ones in a smoke test."""
    score: Callable[[FitProblem, Float[Array, " n"]], dict[str, Any]]
    """Scores of one fit."""
    metrics: Callable[[Mapping[str, dict[str, Any]]], dict[str, float]]
    """Metrics of the experiment, from the scores by case name."""
    goals: tuple[Goal, ...]
    draw: Callable[[Mapping[str, Any], Path], None]
    """Save figures of the results in a folder."""
    recording_results: Callable[[], dict[str, Any]] = field(default=dict)
    """Additional results about the recordings."""


class GoalResult(NamedTuple):
    """A goal and the measured value of its metric."""

    goal: Goal
    value: float | None
    """None if the metric was not evaluated."""

    @property
    def is_met(self) -> bool:
        """Whether the goal is met."""
        return self.value is not None and self.value <= self.goal.limit


def run(
    experiment: Study,
    folder: Path,
    *,
    smoke: bool = False,
    on_step: Callable[[str, Progress], None] = lambda name, progress: None,
    on_case: Callable[[str, dict[str, Any]], None] = lambda name, result: None,
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any] | None:
    """Run an experiment; cases already in the folder are not fitted again.

    Args:
        experiment: the experiment.
        folder: output folder.
        smoke: run a smoke test with few, small fits.
        on_step: called after every solver step with the case name and the progress.
        on_case: called with the name and result of each finished case.
        stop: called before every step; True stops the experiment.

    Returns:
        The content of `results.json`; None if the experiment was stopped.
    """
    cases: dict[str, dict[str, Any]] = {}
    for case in experiment.cases(smoke):
        path = folder / "cases" / f"{case.name.replace('/', '_')}.json"
        result = _load_case(path)
        if result is None:
            initial = cases.get(case.initial_case, {"labels": [], "theta": []})
            entries = dict(zip(initial["labels"], initial["theta"], strict=True))
            result = _fit_case(
                experiment, case, entries, lambda progress, name=case.name: on_step(name, progress), stop
            )
            if result is None:
                return None
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, _json_bytes(result))
        cases[case.name] = result
        on_case(case.name, result)
    results = {
        "format": FORMAT,
        "experiment": experiment.name,
        "smoke": smoke,
        "recording_results": experiment.recording_results(),
        "cases": cases,
        "metrics": experiment.metrics({name: case["scores"] for name, case in cases.items()}),
    }
    write_atomically(folder / "results.json", _json_bytes(results))
    experiment.draw(results, folder)
    return results


def goal_results(experiment: Study, results: Mapping[str, Any]) -> list[GoalResult]:
    """Goals with the measured values of their metrics."""
    return [GoalResult(goal, results["metrics"].get(goal.metric)) for goal in experiment.goals]


def load_stored_results(experiment: Study) -> dict[str, Any]:
    """Load the results of the complete experiment that are distributed with the package."""
    path = STORED / f"{experiment.name}.json"
    if not path.exists():
        raise HybridsimError(f"there are no stored results of {experiment.name}; run it without --check")
    return json.loads(path.read_text(encoding="utf-8"))


def recompute_scores(experiment: Study, results: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Recompute the scores of all cases from their estimated parameters and the recordings.

    Raises:
        HybridsimError: the free parameters of the results differ from those of the experiment.
    """
    scores = {}
    for case in experiment.cases(bool(results["smoke"])):
        result = results["cases"][case.name]
        problem = case.make_problem()
        if list(problem.space.names) != result["labels"]:
            raise HybridsimError(f"{experiment.name}: the stored case {case.name!r} has different free parameters")
        scores[case.name] = experiment.score(problem, np.array(result["theta"]))
    return scores


class ScoreCheck(NamedTuple):
    """A score, stored and recomputed."""

    case: str
    score: str
    stored: float
    recomputed: float

    @property
    def is_reproduced(self) -> bool:
        """Whether both agree up to rounding errors, amplified by chaos."""
        return abs(self.recomputed - self.stored) <= SCORE_TOLERANCE * abs(self.stored)


def check_stored_scores(experiment: Study) -> list[ScoreCheck]:
    """Recompute all stored scores of an experiment."""
    results = load_stored_results(experiment)
    rows = []
    for case, scores in recompute_scores(experiment, results).items():
        stored, recomputed = dict(_flatten(results["cases"][case]["scores"])), dict(_flatten(scores))
        rows += [ScoreCheck(case, name, stored[name], recomputed[name]) for name in stored]
    return rows


def _flatten(scores: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in scores.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}, ")
        else:
            yield f"{prefix}{name}", float(value)


def held_out_errors(
    problem: FitProblem,
    theta: Float[Array, " n"],
    *,
    windows: Sequence[float],
    horizons: Sequence[float] = (0.25, 1.0),
    initialization_time: float = 0.1,
) -> dict[str, Any]:
    """RMS errors on held-out runs [mrad]; all channels are angles, so a single error for all of them is meaningful.

    Args:
        problem: fit problem.
        theta: parameters.
        windows: lengths of windows that are reconstructed, with initial states fitted to the whole window [s].
        horizons: prediction horizons [s].
        initialization_time: length of the interval before a prediction to which its initial state is fitted [s].
    """
    scores: dict[str, Any] = {}
    for window in windows:
        scores[f"reconstructed over {window:g} s"] = _error_statistics(
            score_windows(problem, theta, problem.held_out, window).scores[0]
        )
    for horizon in horizons:
        predictions = score_predictions(
            problem, theta, problem.held_out, initialization_time=initialization_time, horizon=horizon
        )
        scores[f"predicted over {horizon:g} s"] = _error_statistics(predictions.scores[0])
    return scores


def error_metrics(scores: Mapping[str, dict[str, Any]], second_statistic: str) -> dict[str, float]:
    """Median and another statistic of every case, for each of the `held_out_errors`."""
    return {
        f"{case}, {kind}, {statistic} [mrad]": case_scores[kind][statistic]
        for case, case_scores in scores.items()
        for kind in case_scores
        for statistic in ("median", second_statistic)
    }


def _error_statistics(score) -> dict[str, Any]:
    errors = 1e3 * score.window_rms
    return {
        "median": float(np.median(errors)),
        "mean": float(np.mean(errors)),
        "worst": float(np.max(errors)),
        "windows": len(errors),
        "diverged": score.diverged_count,
        "unconverged": score.unconverged_count,
    }


def settings_hash(experiment: Study, smoke: bool) -> str:
    """Hash of the source file of an experiment, which contains its settings, and of the format of results."""
    text = Path(sys.modules[experiment.cases.__module__].__file__ or "").read_bytes()
    return hashlib.sha256(text + repr((FORMAT, smoke)).encode()).hexdigest()[:10]


def _fit_case(
    experiment: Study,
    case: Case,
    initial: Mapping[str, float],
    on_step: Callable[[Progress], None],
    stop: Callable[[], bool],
) -> dict[str, Any] | None:
    problem, start = case.make_problem(), time.monotonic()
    problem = replace(problem, space=problem.space.with_initial_entries(initial))
    theta, run_values, termination = np.asarray(problem.space.initial), {}, "not fitted"
    if case.stages:
        fitted = solve(problem, case.stages, callback=on_step, stop=stop)
        if fitted.stopped:
            return None
        theta, run_values, termination = fitted.theta, fitted.run_values, fitted.terminations[-1].message
    elapsed = time.monotonic() - start
    return {
        "description": case.description,
        "termination": termination,
        "elapsed": round(elapsed, 1),
        "labels": list(problem.space.names),
        "theta": theta.tolist(),
        "values": problem.space.values(theta),
        "run_values": run_values,
        "scores": experiment.score(problem, theta),
    }


def _load_case(path: Path) -> dict[str, Any] | None:
    """Saved result of a case; None if it is not finished."""
    if not path.exists():
        return None
    result = json.loads(path.read_text(encoding="utf-8"))
    if "description" not in result:
        raise HybridsimError(f"{path} was written by an earlier version of hybridsim; choose another folder with --out")
    return result


def _json_bytes(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()

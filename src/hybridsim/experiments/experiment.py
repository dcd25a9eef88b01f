"""What every experiment is: fits of several models to the same recordings, scored alike, with goals to be met.

Its cases are fitted one after the other, and each is kept as soon as it is done, so that a run that was stopped goes on
from there. `results.json` holds everything that pictures and checks need.
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
from hybridsim.identify.fit import Progress, fit
from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.identify.score import score_predictions, score_windows

Array = np.ndarray
FORMAT = 1
STORED = Path(__file__).parent / "stored"
"""Numbers of full runs, which tests evaluate again."""
SAME = 0.01
"""Share of a number by which it may differ when it is evaluated again."""


class Case(NamedTuple):
    """One fit of an experiment."""

    name: str
    words: str
    """What is fitted, for people."""
    make: Callable[[], FitProblem]
    stages: tuple[Stage, ...]
    """None at all: the model is scored as it is."""
    after: str = ""
    """Case whose numbers this one starts from, as far as it has them."""


class Goal(NamedTuple):
    """A number that is to be at most so large."""

    metric: str
    most: float
    words: str


@dataclass(frozen=True)
class Experiment:
    """A claim, and how it is shown."""

    name: str
    claim: str
    source: str
    """Where the recordings come from."""
    cases: Callable[[bool], Sequence[Case]]
    """The fits; fewer and smaller ones for a smoke test."""
    score: Callable[[FitProblem, Float[Array, " n"]], dict[str, Any]]
    """Numbers of one fit."""
    metrics: Callable[[Mapping[str, dict[str, Any]]], dict[str, float]]
    """Numbers of the whole, from the scores of the cases by name."""
    goals: tuple[Goal, ...]
    draw: Callable[[Mapping[str, Any], Path], None]
    """Pictures of results, into a folder."""
    facts: Callable[[], dict[str, Any]] = field(default=dict)
    """What else was found out about the recordings."""


class Verdict(NamedTuple):
    """Is a goal met?"""

    goal: Goal
    value: float | None
    """None where the run did not measure it."""

    @property
    def met(self) -> bool:
        """Is it?"""
        return self.value is not None and self.value <= self.goal.most


def run(
    experiment: Experiment,
    folder: Path,
    *,
    smoke: bool = False,
    watch: Callable[[str, Progress], None] = lambda name, progress: None,
    tell: Callable[[str, dict[str, Any]], None] = lambda name, found: None,
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any] | None:
    """Run an experiment; cases that are in the folder already are not fitted again.

    Args:
        experiment: what to run.
        folder: for everything that comes out.
        smoke: small and quick, to see that everything works.
        watch: told after every step of a fit.
        tell: told when a case is done.
        stop: asked before every step.

    Returns:
        What `results.json` holds; none if it was stopped.
    """
    found: dict[str, dict[str, Any]] = {}
    for case in experiment.cases(smoke):
        path = folder / "cases" / f"{case.name.replace('/', '_')}.json"
        known = _known(path)
        if known is None:
            start = found.get(case.after, {"labels": [], "theta": []})
            values = dict(zip(start["labels"], start["theta"], strict=True))
            known = _fitted(experiment, case, values, lambda progress, name=case.name: watch(name, progress), stop)
            if known is None:
                return None
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, _text(known))
        found[case.name] = known
        tell(case.name, known)
    results = {
        "format": FORMAT,
        "experiment": experiment.name,
        "smoke": smoke,
        "facts": experiment.facts(),
        "cases": found,
        "metrics": experiment.metrics({name: one["scores"] for name, one in found.items()}),
    }
    write_atomically(folder / "results.json", _text(results))
    experiment.draw(results, folder)
    return results


def verdicts(experiment: Experiment, results: Mapping[str, Any]) -> list[Verdict]:
    """Which goals are met."""
    return [Verdict(goal, results["metrics"].get(goal.metric)) for goal in experiment.goals]


def stored(experiment: Experiment) -> dict[str, Any]:
    """Results of the full run that comes with the package."""
    path = STORED / f"{experiment.name}.json"
    if not path.exists():
        raise HybridsimError(f"no results of {experiment.name} are stored; run it without --check")
    return json.loads(path.read_text(encoding="utf-8"))


def evaluated_again(experiment: Experiment, results: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Scores of the cases of results, from the numbers that were found and the recordings.

    Raises:
        HybridsimError: the results are of other free numbers than the experiment has now.
    """
    found = {}
    for case in experiment.cases(bool(results["smoke"])):
        known = results["cases"][case.name]
        problem = case.make()
        if list(problem.space.labels) != known["labels"]:
            raise HybridsimError(f"{experiment.name}: the stored case {case.name!r} is of other free numbers")
        found[case.name] = experiment.score(problem, np.array(known["theta"]))
    return found


class Again(NamedTuple):
    """A stored number beside what it is now."""

    case: str
    metric: str
    stored: float
    now: float

    @property
    def agrees(self) -> bool:
        """Are they the same but for rounding, which chaos makes larger?"""
        return abs(self.now - self.stored) <= SAME * abs(self.stored)


def checked(experiment: Experiment) -> list[Again]:
    """Every stored number of an experiment, evaluated again."""
    results = stored(experiment)
    rows = []
    for case, scores in evaluated_again(experiment, results).items():
        before, now = dict(_flat(results["cases"][case]["scores"])), dict(_flat(scores))
        rows += [Again(case, name, before[name], now[name]) for name in before]
    return rows


def _flat(scores: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in scores.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}, ")
        else:
            yield f"{prefix}{name}", float(value)


def usual_scores(
    problem: FitProblem,
    theta: Float[Array, " n"],
    *,
    windows: Sequence[float],
    horizons: Sequence[float] = (0.25, 1.0),
    before: float = 0.1,
) -> dict[str, Any]:
    """Errors of held-out runs [mrad]: explained over windows [s], and predicted from the time before [s].

    The channels are angles, so that one number for all of them makes sense.
    """
    found: dict[str, Any] = {}
    for window in windows:
        found[f"explained {window:g} s"] = _spread(score_windows(problem, theta, problem.held_out, window).scores[0])
    for after in horizons:
        judged = score_predictions(problem, theta, problem.held_out, before=before, after=after)
        found[f"predicted {after:g} s"] = _spread(judged.scores[0])
    return found


def spread_metrics(scores: Mapping[str, dict[str, Any]], second: str) -> dict[str, float]:
    """Medians of all cases and kinds of `usual_scores`, and what else of them is looked at."""
    return {
        f"{case}, {kind}, {which} [mrad]": of[kind][which]
        for case, of in scores.items()
        for kind in of
        for which in ("median", second)
    }


def _spread(score) -> dict[str, Any]:
    errors = 1e3 * score.of_windows
    return {
        "median": float(np.median(errors)),
        "mean": float(np.mean(errors)),
        "worst": float(np.max(errors)),
        "windows": len(errors),
        "diverged": score.diverged,
    }


def settings_hash(experiment: Experiment, smoke: bool) -> str:
    """What tells runs of different settings apart: the text of the experiment, in which they all stand."""
    text = Path(sys.modules[experiment.cases.__module__].__file__ or "").read_bytes()
    return hashlib.sha256(text + repr(smoke).encode()).hexdigest()[:10]


def _fitted(
    experiment: Experiment,
    case: Case,
    start: Mapping[str, float],
    watch: Callable[[Progress], None],
    stop: Callable[[], bool],
) -> dict[str, Any] | None:
    problem, begun = case.make(), time.monotonic()
    problem = replace(problem, space=problem.space.with_initial_values(start))
    theta, of_runs, words = np.asarray(problem.space.initial), {}, "as it is"
    if case.stages:
        fitted = fit(problem, case.stages, watch=watch, stop=stop)
        if fitted.stopped:
            return None
        theta, of_runs, words = fitted.theta, fitted.of_runs, fitted.verdicts[-1].words
    seconds = time.monotonic() - begun
    return {
        "words": case.words,
        "ended": words,
        "seconds": round(seconds, 1),
        "labels": list(problem.space.labels),
        "theta": theta.tolist(),
        "values": problem.space.values(theta),
        "of_runs": of_runs,
        "scores": experiment.score(problem, theta),
    }


def _known(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _text(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()

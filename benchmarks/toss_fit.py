"""Fitting a simulator to the training tosses: samples everywhere, then simplexes from the best of them.

Cubes that tumble are chaotic: the loss is rough and has many minima, so that no descent from one place can be trusted.
Every form of a simulator is tried at the same number of parameters, spread evenly on logarithmic scales; from the best
of all of them, as many Nelder–Mead searches as for any other simulator go on.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from benchmarks.toss_data import Errors, Round, Tosses, errors
from benchmarks.toss_simulators import Form, Simulated

STUCK = 1e3
"""Loss of parameters with which the simulation diverges."""
FIRST_STEP = 0.2
"""Size of the first simplex, in logarithms of the parameters."""


@dataclass(frozen=True)
class Effort:
    """How much is tried."""

    samples: int
    """Of each form; a power of two."""
    searches: int
    """Simplexes of each simulator."""
    evaluations: int
    """Of each simplex."""


FULL = Effort(samples=32, searches=4, evaluations=50)
QUICK = Effort(samples=8, searches=1, evaluations=20)


@dataclass(frozen=True)
class Fit:
    """What was found for a simulator in a round."""

    simulator: str
    form: str
    parameters: dict[str, float]
    loss: float
    """On the training tosses."""
    evaluations: int
    seconds: float
    training: Errors
    test: Errors


class Loss:
    """A form's loss on the training tosses, as a function of its parameters' logarithms."""

    def __init__(self, form: Form, tosses: Tosses, numbers: Sequence[int], told: Callable[[], None]):
        self.form, self.tosses, self.numbers, self.told = form, tosses, numbers, told
        self.simulated: Simulated = form.ready(tosses)

    def __call__(self, logarithms: np.ndarray) -> float:
        found = self.errors(np.exp(logarithms), self.numbers).loss
        self.told()
        return found if np.isfinite(found) else STUCK

    def errors(self, parameters: np.ndarray, numbers: Sequence[int]) -> Errors:
        return errors(self.simulated(parameters, numbers), self.tosses, numbers)

    def samples(self, count: int) -> np.ndarray:
        """Logarithms of parameters, spread evenly."""
        low, high = np.log(np.array(list(self.form.ranges.values()))).T
        return low + (high - low) * qmc.Sobol(len(low), seed=0).random(count)

    def descended(self, start: np.ndarray, evaluations: int) -> tuple[float, np.ndarray]:
        """Lowest loss that a simplex finds, and where."""
        simplex = np.vstack([start, start + FIRST_STEP * np.eye(len(start))])
        options = {"maxfev": evaluations, "initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-4}
        found = minimize(self, start, method="Nelder-Mead", options=options)
        return float(found.fun), found.x


def fit(
    forms: Sequence[Form],
    tosses: Tosses,
    chosen: Round,
    effort: Effort,
    told: Callable[[], None] = lambda: None,
    starts: Sequence[Sequence[float]] | None = None,
) -> Fit:
    """Fit a simulator and test it.

    Args:
        forms: the simulator's, of which the best is taken.
        tosses: the recordings.
        chosen: which of them are fitted and tested.
        effort: how much is tried.
        told: called after every evaluation, to show progress.
        starts: parameters of each form to begin with instead of samples.
    """
    began, evaluations = time.perf_counter(), 0

    def counted() -> None:
        nonlocal evaluations
        evaluations += 1
        told()

    losses = [Loss(form, tosses, chosen.training, counted) for form in forms]
    tried = []
    for k, loss in enumerate(losses):
        places = loss.samples(effort.samples) if starts is None else [np.log(starts[k])]
        tried += [(loss(place), k, tuple(place)) for place in places]
    found = []
    for _, k, place in sorted(tried)[: effort.searches]:
        found.append((*losses[k].descended(np.array(place), effort.evaluations), k))
    value, place, k = min(found, key=lambda f: f[0])
    parameters, best = np.exp(place), losses[k]
    return Fit(
        simulator=forms[k].simulator,
        form=forms[k].form,
        parameters=dict(zip(forms[k].ranges, map(float, parameters), strict=True)),
        loss=value,
        evaluations=evaluations,
        seconds=time.perf_counter() - began,
        training=best.errors(parameters, chosen.training),
        test=best.errors(parameters, chosen.test),
    )


def planned(forms: Sequence[Form], effort: Effort) -> int:
    """Evaluations at most, without those of the test."""
    return len(forms) * effort.samples + effort.searches * effort.evaluations

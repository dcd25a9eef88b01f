"""Fit of a simulator to the training tosses: quasi-random sampling, then Nelder–Mead searches from the best samples.

Tumbling cubes are chaotic: the loss is rough and has many minima, so a single local search is unreliable. Every variant
of a simulator is evaluated at the same number of samples, evenly spread on logarithmic scales; the best samples of all
variants initialize the same number of Nelder–Mead searches for every simulator.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from benchmarks.toss_data import Errors, Round, Tosses, errors
from benchmarks.toss_simulators import Simulated, Variant

DIVERGED_LOSS = 1e3
"""Loss of parameters for which the simulation diverges."""
FIRST_STEP = 0.2
"""Size of the initial simplex, in logarithms of the parameters."""


@dataclass(frozen=True)
class Effort:
    """Budget of a fit."""

    samples: int
    """Samples per variant; a power of two."""
    searches: int
    """Searches per simulator."""
    evaluations: int
    """Evaluations per search."""


FULL = Effort(samples=32, searches=4, evaluations=50)
QUICK = Effort(samples=8, searches=1, evaluations=20)


@dataclass(frozen=True)
class Fit:
    """Fit of a simulator in a round."""

    simulator: str
    variant: str
    parameters: dict[str, float]
    loss: float
    """Loss on the training tosses."""
    evaluations: int
    seconds: float
    training: Errors
    test: Errors


class Loss:
    """Loss of a variant on the training tosses, as a function of the logarithms of its parameters."""

    def __init__(self, variant: Variant, tosses: Tosses, numbers: Sequence[int], on_evaluation: Callable[[], None]):
        self.variant, self.tosses, self.numbers, self.on_evaluation = variant, tosses, numbers, on_evaluation
        self.simulate: Simulated = variant.bind(tosses)

    def __call__(self, logarithms: np.ndarray) -> float:
        loss = self.errors(np.exp(logarithms), self.numbers).loss
        self.on_evaluation()
        return loss if np.isfinite(loss) else DIVERGED_LOSS

    def errors(self, parameters: np.ndarray, numbers: Sequence[int]) -> Errors:
        return errors(self.simulate(parameters, numbers), self.tosses, numbers)

    def samples(self, count: int) -> np.ndarray:
        """Evenly spread samples of the logarithms of the parameters."""
        low, high = np.log(np.array(list(self.variant.ranges.values()))).T
        return low + (high - low) * qmc.Sobol(len(low), seed=0).random(count)

    def minimize(self, initial: np.ndarray, evaluations: int) -> tuple[float, np.ndarray]:
        """Minimize by Nelder–Mead; returns the loss and its argument."""
        simplex = np.vstack([initial, initial + FIRST_STEP * np.eye(len(initial))])
        options = {"maxfev": evaluations, "initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-4}
        solution = minimize(self, initial, method="Nelder-Mead", options=options)
        return float(solution.fun), solution.x


def fit(
    variants: Sequence[Variant],
    tosses: Tosses,
    split: Round,
    effort: Effort,
    on_evaluation: Callable[[], None] = lambda: None,
    initial_values: Sequence[Sequence[float]] | None = None,
) -> Fit:
    """Fit a simulator and test it.

    Args:
        variants: variants of the simulator, of which the best is selected.
        tosses: the recordings.
        split: training and test tosses.
        effort: budget of the fit.
        on_evaluation: called after every evaluation, to show progress.
        initial_values: initial parameters of each variant, instead of samples.
    """
    start, evaluations = time.perf_counter(), 0

    def count_evaluation() -> None:
        nonlocal evaluations
        evaluations += 1
        on_evaluation()

    losses = [Loss(variant, tosses, split.training, count_evaluation) for variant in variants]
    candidates = []
    for k, loss in enumerate(losses):
        points = loss.samples(effort.samples) if initial_values is None else [np.log(initial_values[k])]
        candidates += [(loss(point), k, tuple(point)) for point in points]
    minima = []
    for _, k, point in sorted(candidates)[: effort.searches]:
        minima.append((*losses[k].minimize(np.array(point), effort.evaluations), k))
    value, point, k = min(minima, key=lambda m: m[0])
    parameters, best = np.exp(point), losses[k]
    return Fit(
        simulator=variants[k].simulator,
        variant=variants[k].variant,
        parameters=dict(zip(variants[k].ranges, map(float, parameters), strict=True)),
        loss=value,
        evaluations=evaluations,
        seconds=time.perf_counter() - start,
        training=best.errors(parameters, split.training),
        test=best.errors(parameters, split.test),
    )


def max_evaluations(variants: Sequence[Variant], effort: Effort) -> int:
    """Maximum number of evaluations of a fit."""
    return len(variants) * effort.samples + effort.searches * effort.evaluations

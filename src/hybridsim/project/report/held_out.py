"""Residual of held-out runs during a fit, evaluated at bounded cost and without effect on the fit."""

import time
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.score import calibrate
from hybridsim.identify.solve import Progress
from hybridsim.identify.stage import Stage

MAX_TIME_SHARE, MAX_TIME_SHARE_AT_POWERS_OF_TWO = 0.1, 0.25
"""Maximum fractions of the time of a fit spent on held-out runs: in general, and at the steps 1, 2, 4, 8 and so on of a
stage, so that short stages are evaluated as well."""
MAX_STEPS_FROM_GUESS, MAX_STEPS_FROM_SOLUTION = 10, 3
"""Maximum solver steps for the initial states of windows: from the initial guess, and from the solution for the last
θ."""


class HeldOutMonitor:
    """Evaluation of held-out runs after selected steps."""

    def __init__(self, problem: FitProblem, stages: tuple[Stage, ...]):
        self._problem, self._stages = problem, stages
        self._stage = -1
        self._objective: Objective | None = None
        self._point: Point | None = None
        self._total_time = self._expected_time = 0.0

    def evaluate(self, progress: Progress) -> float | None:
        """Root mean square residual of the held-out runs after a step, in standard deviations of the noise.

        Args:
            progress: after the step. The last step of a stage is always evaluated.

        Returns:
            None if there are no held-out runs, if the time budget is exhausted, or if every window diverges.
        """
        if not self._problem.held_out or not (progress.is_last or self._is_within_budget(progress)):
            return None
        is_first, is_new = self._stage < 0, progress.stage != self._stage
        start = time.monotonic()
        rms = self._rms(progress.stage, progress.theta)
        elapsed = time.monotonic() - start
        # the first evaluation includes compilation, which the scores at the end need in any case
        self._total_time += 0.0 if is_first else elapsed
        # the first evaluation of a stage takes more solver steps than the others
        self._expected_time = 0.0 if is_new else elapsed
        return rms

    def _is_within_budget(self, progress: Progress) -> bool:
        """Whether another evaluation fits into the time budget."""
        is_power_of_two = progress.step & (progress.step - 1) == 0
        expected_time = self._expected_time if progress.stage == self._stage else 0.0
        share = MAX_TIME_SHARE_AT_POWERS_OF_TWO if is_power_of_two else MAX_TIME_SHARE
        return self._total_time + expected_time <= share * progress.elapsed

    def _rms(self, stage: int, theta: Float[np.ndarray, " n"]) -> float | None:
        if stage != self._stage or self._objective is None or self._point is None:
            # without continuity, every window is fitted separately
            independent = replace(self._stages[stage], continuity=None)
            self._objective, _ = self._problem.objective(independent, self._problem.held_out)
            self._stage, self._point, max_steps = stage, self._objective.point(theta), MAX_STEPS_FROM_GUESS
        else:
            layout, previous = self._objective.layout, self._point.theta
            updated = np.where(layout.is_common, layout.stack(np.array(theta)[None]), previous)
            self._point, max_steps = self._point._replace(theta=updated), MAX_STEPS_FROM_SOLUTION
        from_guess = max_steps == MAX_STEPS_FROM_GUESS
        # few steps by design: the residual is a progress indicator, and the scores of the result are computed afresh
        self._point = calibrate(self._objective, self._point, max_steps=max_steps, growing=from_guess).point
        return residual_rms(self._objective, self._point)


def residual_rms(objective: Objective, point: Point) -> float | None:
    """Root mean square residual over all windows that do not diverge, in standard deviations of the noise."""
    sampled, ok = objective.sampled_readings(point)
    w = objective.windows
    used = (w.weight > 0.0) & ok[0][:, None]
    if not used.any():
        return None
    return float(np.sqrt(np.mean(np.square((w.weight * (sampled[0] - w.value))[used]))))

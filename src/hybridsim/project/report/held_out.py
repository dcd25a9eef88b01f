"""The gap on held-out runs while a fit goes on: cheap enough to be watched, never part of the fit itself."""

import time
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from hybridsim.identify.fit import Progress
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.identify.score import calibrate

SHARE, MOST = 0.1, 0.25
"""Shares of a fit's time that looking at held-out runs may take: usually, and at the steps 1, 2, 4, 8 and so on of a
stage, so that short stages are not left without because of those before them."""
FIRST_STEPS, NEXT_STEPS = 10, 3
"""Steps that find the starts of windows: from the first guess, and from where they were for the last θ."""


class HeldOutGap:
    """Looks at held-out runs now and then."""

    def __init__(self, problem: FitProblem, stages: tuple[Stage, ...]):
        self._problem, self._stages = problem, stages
        self._stage = -1
        self._objective: Objective | None = None
        self._point: Point | None = None
        self._spent = self._expected = 0.0

    def after(self, progress: Progress, *, is_last: bool) -> float | None:
        """Root mean square residual of the held-out runs, in standard deviations of the noise.

        Args:
            progress: after a step.
            is_last: is it the last step of its stage? That one is always looked at.

        Returns:
            None where there are none, where it would take too much time by now, or where every window diverges.
        """
        if not self._problem.held_out or not (is_last or self._is_cheap(progress)):
            return None
        is_first, is_new = self._stage < 0, progress.stage != self._stage
        begun = time.monotonic()
        rms = self._rms(progress.stage, progress.theta)
        took = time.monotonic() - begun
        # the first look waits for a compiler, whose work the scores at the end need in any case
        self._spent += 0.0 if is_first else took
        # the first look at a stage takes more steps than the others, and tells nothing of them
        self._expected = 0.0 if is_new else took
        return rms

    def _is_cheap(self, progress: Progress) -> bool:
        """Is there time to look, by what it took so far?"""
        is_marked = progress.step & (progress.step - 1) == 0
        expected = self._expected if progress.stage == self._stage else 0.0
        return self._spent + expected <= (MOST if is_marked else SHARE) * progress.seconds

    def _rms(self, stage: int, theta: Float[np.ndarray, " n"]) -> float | None:
        if stage != self._stage or self._objective is None or self._point is None:
            # windows side by side as the stage has them; ties between them would fit several at once
            alone = replace(self._stages[stage], ties=None)
            self._objective, _ = self._problem.objective(alone, self._problem.held_out)
            self._stage, self._point, steps = stage, self._objective.point(theta), FIRST_STEPS
        else:
            layout, known = self._objective.layout, self._point.theta
            common = np.where(layout.is_common, layout.lengthened(np.array(theta)[None]), known)
            self._point, steps = self._point._replace(theta=common), NEXT_STEPS
        self._point = calibrate(self._objective, self._point, max_steps=steps, growing=steps == FIRST_STEPS)
        return rms_in_noise(self._objective, self._point)


def rms_in_noise(objective: Objective, point: Point) -> float | None:
    """Root mean square residual over all windows that do not diverge, in standard deviations of the noise."""
    samples, ok = objective.samples(point)
    w = objective.windows
    used = (w.weight > 0.0) & ok[0][:, None]
    if not used.any():
        return None
    return float(np.sqrt(np.mean(np.square((w.weight * (samples[0] - w.value))[used]))))

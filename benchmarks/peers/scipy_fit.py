"""scipy's `least_squares` on MuJoCo rollouts, with finite differences of all parameters simulated in parallel.

Optimized as far as possible: one call of MuJoCo's rollout simulates all windows for all columns of the Jacobian on all
threads, models are not recompiled, and known residuals are reused. A free initial state affects only its own window, so
four more columns give the derivatives of all of them. The Jacobian is dense: with a sparse one `least_squares` uses an
iterative solver, which does not converge in ten times the time.
"""

from collections.abc import Iterator

import numpy as np
from scipy.optimize import least_squares

from benchmarks.fitting_attempts import COLD, RUNNING, Attempt, FitLog, command_line
from benchmarks.fitting_problem import PendulumProblem, load, scaled_values
from benchmarks.measure import require

require("scipy", "mujoco")
from benchmarks.peers import mujoco_pendulum  # noqa: E402  imported before timing starts, and after the check

PROGRAM = "scipy"
STEP = np.finfo(float).eps ** 0.5
"""Step of finite differences, as in scipy and MuJoCo."""


class FixedInitialStates:
    """Residuals and their finite differences with respect to the parameters, with fixed initial states."""

    method = "trf, 2-point differences"

    def __init__(self, problem: PendulumProblem, log: FitLog):
        self.problem, self.log = problem, log
        self.simulations = mujoco_pendulum.Simulations(problem)
        self.start, self.lower, self.upper, self.scale = scaled_values(problem.published.free())
        self.cached: tuple[np.ndarray, np.ndarray] | None = None
        """Last point and its residuals."""

    def residuals(self, x: np.ndarray) -> np.ndarray:
        residuals = self._simulate([x])[0]
        self.cached = x.copy(), residuals
        self.log.record(0.5 * float(residuals @ residuals))
        return residuals

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        base, columns, steps = self._differences(x)
        return ((columns - base) / steps[:, None]).T

    def values(self, x: np.ndarray) -> np.ndarray:
        return x[: len(self.scale)] * self.scale

    def _differences(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residuals at x and a step along each entry, and the steps."""
        steps = STEP * np.maximum(1.0, np.abs(x))
        steps = np.where(x + steps > self.upper, -steps, steps)
        points = x + np.diag(steps)
        return self._base(x), self._simulate(list(points)), np.diag(points) - x

    def _base(self, x: np.ndarray) -> np.ndarray:
        if self.cached is None or not np.array_equal(self.cached[0], x):
            self.residuals(x)
        assert self.cached is not None
        return self.cached[1]

    def _simulate(self, points: list[np.ndarray]) -> np.ndarray:
        self.log.simulations += len(points)
        return self.simulations.residuals([self.values(x) for x in points])


class FreeInitialStates(FixedInitialStates):
    """The same with free initial states of all windows: angles and velocities."""

    method = "trf, 2-point differences with free initial states"

    def __init__(self, problem: PendulumProblem, log: FitLog):
        super().__init__(problem, log)
        self.n, self.windows = len(self.scale), len(problem.q0)
        guess = np.concatenate([problem.q0, problem.qd0], axis=1).ravel()
        self.start = np.concatenate([self.start, guess])
        self.lower = np.concatenate([self.lower, np.full(len(guess), -np.inf)])
        self.upper = np.concatenate([self.upper, np.full(len(guess), np.inf)])

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        theta, starts = self._parts(x)
        points, steps = [], []
        for k in range(self.n):
            shifted = theta.copy()
            shifted[k] += STEP * max(1.0, abs(theta[k])) * (-1.0 if theta[k] > self.upper[k] - 1e-6 else 1.0)
            points.append((shifted, starts))
            steps.append(np.full(self.windows, shifted[k] - theta[k]))
        for k in range(4):
            shifted = starts.copy()
            shifted[:, k] += STEP * np.maximum(1.0, np.abs(starts[:, k]))
            points.append((theta, shifted))
            steps.append(shifted[:, k] - starts[:, k])
        columns = self._residuals_of([theta for theta, _ in points], np.stack([s for _, s in points]))
        rows = len(self._base(x)) // self.windows
        slopes = (columns - self._base(x)).reshape(self.n + 4, self.windows, rows) / np.stack(steps)[:, :, None]
        jacobian = np.zeros((self.windows, rows, len(x)))
        jacobian[:, :, : self.n] = slopes[: self.n].transpose(1, 2, 0)
        for w in range(self.windows):
            first = self.n + 4 * w
            jacobian[w, :, first : first + 4] = slopes[self.n :, w].T
        return jacobian.reshape(-1, len(x))

    def _parts(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return x[: self.n], x[self.n :].reshape(self.windows, 4)

    def _simulate(self, points: list[np.ndarray]) -> np.ndarray:
        parts = [self._parts(x) for x in points]
        return self._residuals_of([theta for theta, _ in parts], np.stack([starts for _, starts in parts]))

    def _residuals_of(self, thetas: list[np.ndarray], starts: np.ndarray) -> np.ndarray:
        self.log.simulations += len(thetas)
        angles = self.simulations.angles([self.values(t) for t in thetas], starts[..., :2], starts[..., 2:])
        return self.problem.residuals(angles)


def run_fit(task: str, process: str, since: float | None = None) -> Attempt:
    """Fit, and log the cost."""
    version = require("scipy", "mujoco")
    problem = load(task)
    log = FitLog() if since is None else FitLog(since)
    objective = (FreeInitialStates if problem.task.free_initial_states else FixedInitialStates)(problem, log)
    bounds = (objective.lower, objective.upper)
    solution = least_squares(
        objective.residuals, objective.start, objective.jacobian, bounds, method="trf", x_scale="jac"
    )
    return log.finish(PROGRAM, version, task, objective.method, process, objective.values(solution.x))


def attempts(task: str, new: float | None) -> Iterator[Attempt]:
    """One attempt."""
    yield run_fit(task, RUNNING) if new is None else run_fit(task, COLD, new)


if __name__ == "__main__":
    command_line(__doc__, "benchmarks.peers.scipy_fit", attempts)

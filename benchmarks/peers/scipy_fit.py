"""scipy's `least_squares` on MuJoCo rollouts, with differences of all parameters simulated side by side.

Written as well as can be: one call of MuJoCo's rollout simulates all windows for all columns of the Jacobian on all
threads, nothing is compiled again, and residuals are reused where they are known. With free starts, every start moves
its own window alone, so that four more columns tell all of them. The Jacobian is handed over with its zeros: given as
a sparse one, `least_squares` solves for its steps by iteration, and has not arrived after ten times as long.
"""

from collections.abc import Iterator

import numpy as np
from scipy.optimize import least_squares

from benchmarks.fitting_attempts import COLD, RUNNING, Attempt, Watch, command_line
from benchmarks.fitting_problem import FitProblem, load, scaled
from benchmarks.measure import needs

needs("scipy", "mujoco")
from benchmarks.peers import mujoco_pendulum  # noqa: E402  imported before a clock runs, and after what it needs is known

WHO = "scipy"
STEP = np.finfo(float).eps ** 0.5
"""Of the differences, as scipy and MuJoCo have it."""


class Held:
    """Residuals and their differences by the parameters, from the same starts always."""

    method = "trf, 2-point differences"

    def __init__(self, given: FitProblem, watch: Watch):
        self.given, self.watch = given, watch
        self.simulations = mujoco_pendulum.Simulations(given)
        self.start, self.lower, self.upper, self.scale = scaled(given.published.free())
        self.known: tuple[np.ndarray, np.ndarray] | None = None
        """The last point and its residuals."""

    def residuals(self, x: np.ndarray) -> np.ndarray:
        found = self._simulated([x])[0]
        self.known = x.copy(), found
        self.watch.saw(0.5 * float(found @ found))
        return found

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        here, columns, steps = self._differences(x)
        return ((columns - here) / steps[:, None]).T

    def values(self, x: np.ndarray) -> np.ndarray:
        return x[: len(self.scale)] * self.scale

    def _differences(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residuals here and a step along each entry, and the steps."""
        steps = STEP * np.maximum(1.0, np.abs(x))
        steps = np.where(x + steps > self.upper, -steps, steps)
        moved = x + np.diag(steps)
        return self._here(x), self._simulated(list(moved)), np.diag(moved) - x

    def _here(self, x: np.ndarray) -> np.ndarray:
        if self.known is None or not np.array_equal(self.known[0], x):
            self.residuals(x)
        assert self.known is not None
        return self.known[1]

    def _simulated(self, points: list[np.ndarray]) -> np.ndarray:
        self.watch.simulations += len(points)
        return self.simulations.residuals([self.values(x) for x in points])


class Free(Held):
    """The same with the starts of all windows unknown, too: angles and velocities of each."""

    method = "trf, 2-point differences of all starts at once"

    def __init__(self, given: FitProblem, watch: Watch):
        super().__init__(given, watch)
        self.n, self.windows = len(self.scale), len(given.q0)
        guess = np.concatenate([given.q0, given.qd0], axis=1).ravel()
        self.start = np.concatenate([self.start, guess])
        self.lower = np.concatenate([self.lower, np.full(len(guess), -np.inf)])
        self.upper = np.concatenate([self.upper, np.full(len(guess), np.inf)])

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        theta, starts = self._parts(x)
        moved, steps = [], []
        for k in range(self.n):
            there = theta.copy()
            there[k] += STEP * max(1.0, abs(theta[k])) * (-1.0 if theta[k] > self.upper[k] - 1e-6 else 1.0)
            moved.append((there, starts))
            steps.append(np.full(self.windows, there[k] - theta[k]))
        for k in range(4):
            there = starts.copy()
            there[:, k] += STEP * np.maximum(1.0, np.abs(starts[:, k]))
            moved.append((theta, there))
            steps.append(there[:, k] - starts[:, k])
        columns = self._all([theta for theta, _ in moved], np.stack([s for _, s in moved]))
        rows = len(self._here(x)) // self.windows
        slopes = (columns - self._here(x)).reshape(self.n + 4, self.windows, rows) / np.stack(steps)[:, :, None]
        found = np.zeros((self.windows, rows, len(x)))
        found[:, :, : self.n] = slopes[: self.n].transpose(1, 2, 0)
        for w in range(self.windows):
            own = self.n + 4 * w
            found[w, :, own : own + 4] = slopes[self.n :, w].T
        return found.reshape(-1, len(x))

    def _parts(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return x[: self.n], x[self.n :].reshape(self.windows, 4)

    def _simulated(self, points: list[np.ndarray]) -> np.ndarray:
        parts = [self._parts(x) for x in points]
        return self._all([theta for theta, _ in parts], np.stack([starts for _, starts in parts]))

    def _all(self, thetas: list[np.ndarray], starts: np.ndarray) -> np.ndarray:
        self.watch.simulations += len(thetas)
        angles = self.simulations.angles([self.values(t) for t in thetas], starts[..., :2], starts[..., 2:])
        return self.given.residuals(angles)


def fitted(task: str, begun: str, since: float | None = None) -> Attempt:
    """Fit, and keep how it went."""
    version = needs("scipy", "mujoco")
    given = load(task)
    watch = Watch() if since is None else Watch(since)
    of = (Free if given.task.free_starts else Held)(given, watch)
    bounds = (of.lower, of.upper)
    found = least_squares(of.residuals, of.start, of.jacobian, bounds, method="trf", x_scale="jac")
    return watch.ended(WHO, version, task, of.method, begun, of.values(found.x))


def attempts(task: str, new: float | None) -> Iterator[Attempt]:
    """One."""
    yield fitted(task, RUNNING) if new is None else fitted(task, COLD, new)


if __name__ == "__main__":
    command_line(__doc__, "benchmarks.peers.scipy_fit", attempts)

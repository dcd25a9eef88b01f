"""MuJoCo's system identification toolbox `mujoco.sysid`, with its optimizers and its finite differences.

The common residuals are computed through the toolbox's hook (`modify_residual`); its default residuals would weight
windows differently. "As documented" is `build_residual_fn`, which recompiles the model for every window and simulates
windows one after the other; "windows together" passes all windows to `model_residual`. The toolbox does not support
free initial states.
"""

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.fitting_attempts import COLD, RUNNING, Attempt, FitLog, command_line, threads
from benchmarks.fitting_problem import PendulumProblem, load, scaled_values
from benchmarks.measure import require

require("mujoco", "tabulate", "colorama")
from mujoco import sysid  # noqa: E402  imported before timing starts, and after the check of its requirements

from benchmarks.peers import mujoco_pendulum  # noqa: E402

PROGRAM = "mujoco.sysid"
METHODS = {
    "as documented, its own optimizer": (False, {"optimizer": "mujoco", "xtol": 1e-4}),
    "windows together, its own optimizer": (True, {"optimizer": "mujoco", "xtol": 1e-4}),
    "windows together, scipy's optimizer": (True, {"optimizer": "scipy_parallel_fd", "x_scale": "jac"}),
}
"""Whether all windows are simulated together, and the options of `optimize`.

With its default tolerance of 1e-8, or 1e-6, the toolbox's own optimizer continues for most of a minute at the noise
level of the finite differences; the time to reach the minimum is the same.
"""
FASTEST = "windows together, its own optimizer"


class Toolbox:
    """The problem in terms of the toolbox."""

    def __init__(self, problem: PendulumProblem, log: FitLog):
        self.problem, self.log = problem, log
        self.spec = mujoco_pendulum.specification(problem)
        model = self.spec.compile()
        times = problem.task.dt * np.arange(problem.steps + 1)
        empty = sysid.TimeSeries(times, np.zeros((len(times), 0)))
        windows = range(len(problem.q0))
        self.sequences = sysid.ModelSequences(
            "lab",
            self.spec,
            [f"window {k}" for k in windows],
            [sysid.create_initial_state(model, problem.q0[k], problem.qd0[k]) for k in windows],
            [empty for _ in windows],
            # measured angles are used in the hook: a sensor in the model would only cost time
            [empty for _ in windows],
        )
        self.options = {"modify_residual": self.modify_residual, "resample_true": False, "n_threads": threads()}

    def parameters(self):
        """Free parameters, each with a function that writes it to the model specification."""
        start, lower, upper, scale = scaled_values(self.problem.published.free())
        parameters = sysid.ParameterDict()
        for k, (free, write) in enumerate(zip(self.problem.published.free(), WRITE, strict=True)):

            def modifier(spec, parameter, write=write, unit=scale[k]):
                write(spec, float(parameter.value[0]) * unit)

            parameters.add(sysid.Parameter(free.name, start[k], lower[k], upper[k], modifier=modifier))
        return parameters

    def modify_residual(self, params, predicted, measured, model, return_all, state):
        """Return joint angles instead of residuals, which are computed from all windows afterwards."""
        del params, measured, model, return_all
        return state[:, 1:3], predicted, predicted

    def as_documented(self) -> Callable:
        """Residuals by `build_residual_fn`."""
        angles_of = sysid.build_residual_fn(models_sequences=[self.sequences], **self.options)

        def residuals(x, params):
            angles, predicted, measured = angles_of(x, params)
            # for each window (steps · 2) or (steps · 2, columns)
            columns = np.stack([a.reshape(a.shape[0], -1).T for a in angles], axis=1)
            return [self._residuals(columns, x)], predicted, measured

        return residuals

    def batched(self) -> Callable:
        """Residuals by `model_residual`, with all windows in one rollout."""

        def residuals(x, params):
            angles, predicted, measured = sysid.model_residual(
                x,
                params,
                lambda p: sysid.apply_param_modifiers(p, self.spec),
                self.sequences.measured_rollout,
                **self.options,
            )
            columns = angles.T.reshape(x.shape[1] if x.ndim == 2 else 1, len(self.problem.q0), -1)
            return [self._residuals(columns, x)], predicted, measured

        return residuals

    def _residuals(self, angles: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Residuals (m,) or (m, columns) of joint angles (columns, windows, steps · 2)."""
        residuals = self.problem.residuals(angles.reshape(*angles.shape[:2], self.problem.steps, 2))
        self.log.simulations += len(residuals)
        if len(residuals) == 1:
            self.log.record(0.5 * float(residuals[0] @ residuals[0]))
        return residuals.T if x.ndim == 2 else residuals[0]


def _inertia(body: str) -> Callable:
    def write(spec, value: float) -> None:
        spec.body(body).inertia = [value] * 3

    return write


def _entry(find: Callable, field: str, k: int) -> Callable:
    def write(spec, value: float) -> None:
        getattr(find(spec), field)[k] = value

    return write


WRITE = (
    _inertia("link0"),
    _inertia("link1"),
    _entry(lambda spec: spec.body("link0"), "ipos", 2),
    _entry(lambda spec: spec.body("link1"), "pos", 2),
    _entry(lambda spec: spec.body("link0"), "ipos", 0),
    _entry(lambda spec: spec.body("link1"), "ipos", 0),
    _entry(lambda spec: spec.joint("joint0"), "damping", 0),
    _entry(lambda spec: spec.joint("joint1"), "damping", 0),
)
"""In the order of `Published.free`."""


def run_fit(task: str, method: str, process: str, since: float | None = None) -> Attempt:
    """Fit, and log the cost."""
    version = require("mujoco", "tabulate", "colorama")
    problem = load(task)
    log = FitLog() if since is None else FitLog(since)
    toolbox = Toolbox(problem, log)
    together, options = METHODS[method]
    residuals = toolbox.batched() if together else toolbox.as_documented()
    parameters, _ = sysid.optimize(toolbox.parameters(), residuals, verbose=False, **options)
    scale = scaled_values(problem.published.free())[3]
    return log.finish(PROGRAM, version, task, method, process, parameters.as_vector() * scale)


def attempts(task: str, new: float | None) -> Iterator[Attempt]:
    """One attempt with the fastest method if the process is new, otherwise one with each method."""
    if load(task).task.free_initial_states:
        return
    if new is not None:
        yield run_fit(task, FASTEST, COLD, new)
        return
    for method in METHODS:
        yield run_fit(task, method, RUNNING)


if __name__ == "__main__":
    command_line(__doc__, "benchmarks.peers.mujoco_sysid", attempts)

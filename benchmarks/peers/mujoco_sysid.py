"""MuJoCo's own toolbox for identification, `mujoco.sysid`, with its optimizers and its finite differences.

Residuals are those of everybody by the toolbox's hook for that (`modify_residual`); its own would weigh every window
differently. "As documented" is `build_residual_fn`, which compiles the model again for every window and simulates
window after window; "windows together" hands all windows to `model_residual` at once. The toolbox has no free starts.
"""

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.fitting_attempts import COLD, RUNNING, Attempt, Watch, command_line, threads
from benchmarks.fitting_problem import FitProblem, load, scaled
from benchmarks.measure import needs

needs("mujoco", "tabulate", "colorama")
from mujoco import sysid  # noqa: E402  imported before a clock runs, and after what it needs is known

from benchmarks.peers import mujoco_pendulum  # noqa: E402

WHO = "mujoco.sysid"
METHODS = {
    "as documented, its own optimizer": (False, {"optimizer": "mujoco", "xtol": 1e-4}),
    "windows together, its own optimizer": (True, {"optimizer": "mujoco", "xtol": 1e-4}),
    "windows together, scipy's optimizer": (True, {"optimizer": "scipy_parallel_fd", "x_scale": "jac"}),
}
"""All windows at once? And the options of `optimize`.

With its usual tolerance of 1e-8, or one of 1e-6, the toolbox's own optimizer goes on for most of a minute where
differences are all noise; the time at which it reaches the minimum is the same.
"""
FASTEST = "windows together, its own optimizer"


class Toolbox:
    """The problem as the toolbox has it."""

    def __init__(self, given: FitProblem, watch: Watch):
        self.given, self.watch = given, watch
        self.spec = mujoco_pendulum.specification(given)
        model = self.spec.compile()
        times = given.task.dt * np.arange(given.steps + 1)
        nothing = sysid.TimeSeries(times, np.zeros((len(times), 0)))
        windows = range(len(given.q0))
        self.sequences = sysid.ModelSequences(
            "lab",
            self.spec,
            [f"window {k}" for k in windows],
            [sysid.create_initial_state(model, given.q0[k], given.qd0[k]) for k in windows],
            [nothing for _ in windows],
            # measured angles are those of the hook: a sensor in the model would only cost time
            [nothing for _ in windows],
        )
        self.options = {"modify_residual": self.modified, "resample_true": False, "n_threads": threads()}

    def parameters(self):
        """Free parameters, each with a function that puts it into the specification of the model."""
        start, lower, upper, scale = scaled(self.given.published.free())
        found = sysid.ParameterDict()
        for k, (free, write) in enumerate(zip(self.given.published.free(), WRITE, strict=True)):

            def modifier(spec, parameter, write=write, unit=scale[k]):
                write(spec, float(parameter.value[0]) * unit)

            found.add(sysid.Parameter(free.name, start[k], lower[k], upper[k], modifier=modifier))
        return found

    def modified(self, params, predicted, measured, model, return_all, state):
        """Joint angles instead of residuals: these are made of all windows at once afterwards."""
        del params, measured, model, return_all
        return state[:, 1:3], predicted, predicted

    def as_documented(self) -> Callable:
        """Residuals by `build_residual_fn`."""
        angles_of = sysid.build_residual_fn(models_sequences=[self.sequences], **self.options)

        def residuals(x, params):
            angles, predicted, measured = angles_of(x, params)
            # of each window (steps · 2) or (steps · 2, columns)
            columns = np.stack([a.reshape(a.shape[0], -1).T for a in angles], axis=1)
            return [self._seen(columns, x)], predicted, measured

        return residuals

    def together(self) -> Callable:
        """Residuals by `model_residual`, of all windows in one rollout."""

        def residuals(x, params):
            angles, predicted, measured = sysid.model_residual(
                x,
                params,
                lambda p: sysid.apply_param_modifiers(p, self.spec),
                self.sequences.measured_rollout,
                **self.options,
            )
            columns = angles.T.reshape(x.shape[1] if x.ndim == 2 else 1, len(self.given.q0), -1)
            return [self._seen(columns, x)], predicted, measured

        return residuals

    def _seen(self, angles: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Residuals (m,) or (m, columns) of joint angles (columns, windows, steps · 2)."""
        found = self.given.residuals(angles.reshape(*angles.shape[:2], self.given.steps, 2))
        self.watch.simulations += len(found)
        if len(found) == 1:
            self.watch.saw(0.5 * float(found[0] @ found[0]))
        return found.T if x.ndim == 2 else found[0]


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


def fitted(task: str, method: str, begun: str, since: float | None = None) -> Attempt:
    """Fit, and keep how it went."""
    version = needs("mujoco", "tabulate", "colorama")
    given = load(task)
    watch = Watch() if since is None else Watch(since)
    toolbox = Toolbox(given, watch)
    at_once, options = METHODS[method]
    residuals = toolbox.together() if at_once else toolbox.as_documented()
    parameters, _ = sysid.optimize(toolbox.parameters(), residuals, verbose=False, **options)
    scale = scaled(given.published.free())[3]
    return watch.ended(WHO, version, task, method, begun, parameters.as_vector() * scale)


def attempts(task: str, new: float | None) -> Iterator[Attempt]:
    """One with the fastest method if the process is new, otherwise one with each."""
    if load(task).task.free_starts:
        return
    if new is not None:
        yield fitted(task, FASTEST, COLD, new)
        return
    for method in METHODS:
        yield fitted(task, method, RUNNING)


if __name__ == "__main__":
    command_line(__doc__, "benchmarks.peers.mujoco_sysid", attempts)

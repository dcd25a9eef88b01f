"""MuJoCo: rollouts in C and their central differences.

Two gradients, as in user code:

- with respect to the parameters, by central differences: two rollouts per parameter, in one call of mujoco.rollout;
- with respect to the initial state and the torques of every step, by a reverse sweep in NumPy over the Jacobians of
  mjd_transitionFD.
"""

import numpy as np

from benchmarks.measure import Row, best, check_motion, command_line, require, row, use_one_thread
from benchmarks.peers.mujoco_reference import model_of
from benchmarks.references import REFERENCES
from benchmarks.workloads import BATCH, BATCH_STEPS, W1, W2, W3, Workload, initial_coordinates, mjcf

PEER = "MuJoCo"
EPSILON = 1e-6
"""Step of finite differences, relative for parameters and absolute for states and controls."""


class Rollouts:
    """Rollouts of several models on one thread, with preallocated states."""

    def __init__(self, models: list, q: np.ndarray, steps: int):
        import mujoco

        self.models, self.steps = models, steps
        model = models[0]
        # time, positions, velocities: the full state of these mechanisms
        self.start = np.zeros((len(q), mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
        self.positions = slice(1, 1 + model.nq)
        self.start[:, self.positions] = q
        self.states = np.zeros((len(q), steps, self.start.shape[1]))
        self.data = mujoco.MjData(model)

    def __call__(self) -> None:
        from mujoco import rollout

        models = self.models if len(self.models) > 1 else self.models[0]
        rollout.rollout(models, self.data, self.start, nstep=self.steps, state=self.states)

    def losses(self) -> np.ndarray:
        return np.sum(self.states[:, :, self.positions] ** 2, axis=(1, 2))


class ParameterDifferences:
    """Central differences of the loss with respect to the parameters."""

    def __init__(self, w: Workload, steps: int):
        self.h = EPSILON * np.abs(w.parameters)
        shifts = np.diag(self.h)
        models = [model_of(w, w.parameters + s * shift) for shift in shifts for s in (1.0, -1.0)]
        self.rollouts = Rollouts(models, np.tile(w.q0, (len(models), 1)), steps)
        self.gradient = np.zeros_like(self.h)

    def __call__(self) -> None:
        self.rollouts()
        losses = self.rollouts.losses()
        self.gradient = (losses[0::2] - losses[1::2]) / (2.0 * self.h)


class Transitions:
    """Gradient with respect to the initial state and all controls, from the Jacobians of single steps."""

    def __init__(self, w: Workload, steps: int):
        import mujoco

        self.w, self.steps = w, steps
        self.model = mujoco.MjModel.from_xml_string(mjcf(w, motors=True))
        self.data = mujoco.MjData(self.model)
        nv, nu = self.model.nv, self.model.nu
        self.A, self.B = np.zeros((steps, 2 * nv, 2 * nv)), np.zeros((steps, 2 * nv, nu))
        self.q = np.zeros((steps, self.model.nq))
        self.start, self.controls = np.zeros(2 * nv), np.zeros((steps, nu))

    def __call__(self) -> None:
        import mujoco

        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self.w.q0
        for t in range(self.steps):
            mujoco.mjd_transitionFD(self.model, self.data, EPSILON, True, self.A[t], self.B[t], None, None)
            mujoco.mj_step(self.model, self.data)
            self.q[t] = self.data.qpos
        g = np.zeros_like(self.start)
        cotangent_q = 2.0 * self.q
        if self.w.is_free:
            cotangent_q = np.delete(cotangent_q, 6, axis=1)
            cotangent_q[:, 3:6] = 0.0  # a rotation does not change the length of a quaternion
        for t in reversed(range(self.steps)):
            g[: self.model.nv] += cotangent_q[t]
            self.controls[t] = self.B[t].T @ g
            g = self.A[t].T @ g
        self.start = g


def measure(w: Workload) -> list[Row]:
    """Forward of one trajectory and of a batch, and both gradients of one trajectory."""
    version = require("mujoco")
    rows = []

    def add(what, call, note, batch=1, steps=w.steps, method=""):
        about = {"method": method, "batch": batch, "steps": steps, "note": note}
        rows.append(row(PEER, version, w.name, what, best(call), **about))

    model = model_of(w, w.parameters)
    for batch, steps in ((1, w.steps), (BATCH, min(w.steps, BATCH_STEPS))):
        run = Rollouts([model], initial_coordinates(w, batch), steps)
        run()
        add("forward", run, check_motion(w, steps, loss=run.losses()[0]), batch, steps)
    if REFERENCES[w.name, w.steps].parameters is not None:
        differences = ParameterDifferences(w, w.steps)
        differences()
        loss = np.mean(differences.rollouts.losses()[:2])
        summary = check_motion(w, w.steps, loss=loss, parameters=differences.gradient, tolerance=1e-5)
        add("gradient", differences, f"{w.parameter_names}; {summary}", method="differences")
    transitions = Transitions(w, w.steps)
    transitions()
    nv = transitions.model.nv
    results = {"qd0": transitions.start[nv:]} | ({} if w.is_free else {"q0": transitions.start[:nv]})
    summary = check_motion(w, w.steps, loss=np.sum(transitions.q**2), **results, tolerance=1e-5)
    note = f"initial state and torques; mjd_transitionFD in a Python loop; {summary}"
    add("gradient of initial state and torques", transitions, note, method="differences")
    return rows


PARTS = {w.name: lambda w=w: measure(w) for w in (W1, W2, W3)}

if __name__ == "__main__":
    use_one_thread()
    command_line(__doc__, "benchmarks.peers.mujoco_differences", PARTS)

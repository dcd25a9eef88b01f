"""The lab's double pendulum in MuJoCo: its model, its parameters, and windows simulated side by side on all threads."""

import copy
from collections.abc import Sequence

import mujoco
import numpy as np
from jaxtyping import Float
from mujoco import rollout

from benchmarks.fitting_attempts import threads
from benchmarks.fitting_problem import INTEGRATOR, FitProblem

MJCF = """
<mujoco>
  <option integrator="{integrator}" timestep="{dt}" gravity="0 0 {gravity}">
    <flag contact="disable" constraint="disable" actuation="disable" sensor="disable"/>
  </option>
  <worldbody>
    <body name="link0">
      <inertial pos="0 0 {com0}" mass="{m0}" diaginertia="{i0} {i0} {i0}"/>
      <joint name="joint0" axis="0 1 0" damping="{k0}"/>
      <body name="link1" pos="0 0 {length}">
        <inertial pos="0 0 {com1}" mass="{m1}" diaginertia="{i1} {i1} {i1}"/>
        <joint name="joint1" axis="0 1 0" damping="{k1}"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def specification(given: FitProblem) -> mujoco.MjSpec:
    """The pendulum as published, with nothing switched on that it does not need."""
    known = given.published
    numbers = {f"m{k}": known.mass[k] for k in range(2)} | {f"i{k}": known.inertia[k] for k in range(2)}
    numbers |= {f"k{k}": known.damping[k] for k in range(2)} | {f"com{k}": -known.com[k] for k in range(2)}
    numbers |= {"length": -known.length, "gravity": -known.gravity, "dt": given.task.dt}
    exact = {name: repr(value) for name, value in numbers.items()}
    return mujoco.MjSpec.from_string(MJCF.format(integrator=INTEGRATOR, **exact))


def write(model: mujoco.MjModel, values: Float[np.ndarray, " n"]) -> None:
    """Put values of the free parameters, in the order of `Published.free`, into a compiled model."""
    inertia0, inertia1, com_z, placement_z, com_x0, com_x1, damping0, damping1 = values
    # body 0 is the world
    model.body_inertia[1], model.body_inertia[2] = inertia0, inertia1
    model.body_ipos[1, 2], model.body_pos[2, 2] = com_z, placement_z
    model.body_ipos[1, 0], model.body_ipos[2, 0] = com_x0, com_x1
    model.dof_damping[:] = damping0, damping1


class Simulations:
    """All windows for several values of the parameters at once, on all threads."""

    def __init__(self, given: FitProblem):
        self.given = given
        self.model = specification(given).compile()
        self.models = [copy.copy(self.model)]
        self.data = [mujoco.MjData(self.model) for _ in range(threads())]
        self.pool = rollout.Rollout(nthread=len(self.data))

    def angles(
        self,
        values: Sequence[Float[np.ndarray, " n"]],
        q0: Float[np.ndarray, "k windows 2"],
        qd0: Float[np.ndarray, "k windows 2"],
    ) -> Float[np.ndarray, "k windows steps 2"]:
        """Joint angles after every step; with free starts those at the start first, and not those after the last.

        Args:
            values: of the parameters, k times.
            q0: where windows start, each time.
            qd0: how fast they start.
        """
        while len(self.models) < len(values):
            self.models.append(copy.copy(self.model))
        for model, numbers in zip(self.models, values, strict=False):
            write(model, numbers)
        count, windows = q0.shape[:2]
        each = [model for model in self.models[:count] for _ in range(windows)]
        start = np.concatenate([np.zeros((count, windows, 1)), q0, qd0], axis=2).reshape(count * windows, -1)
        steps = self.given.steps - self.given.task.free_starts
        state, _ = self.pool.rollout(each, self.data, start, nstep=steps)
        found = state[:, :, 1:3].reshape(count, windows, steps, 2)
        return np.concatenate([q0[:, :, None], found], axis=2) if self.given.task.free_starts else found

    def residuals(self, values: Sequence[Float[np.ndarray, " n"]]) -> Float[np.ndarray, "k m"]:
        """Residuals for several values of the parameters, from the given starts."""
        shape = (len(values), *self.given.q0.shape)
        starts = np.broadcast_to(self.given.q0, shape), np.broadcast_to(self.given.qd0, shape)
        return self.given.residuals(self.angles(values, *starts))

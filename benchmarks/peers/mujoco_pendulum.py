"""The laboratory double pendulum in MuJoCo: model, parameters, and parallel simulation of windows on all threads."""

import copy
from collections.abc import Sequence

import mujoco
import numpy as np
from jaxtyping import Float
from mujoco import rollout

from benchmarks.fitting_attempts import threads
from benchmarks.fitting_problem import INTEGRATOR, PendulumProblem

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


def specification(problem: PendulumProblem) -> mujoco.MjSpec:
    """Published model of the pendulum, with all unused features disabled."""
    known = problem.published
    constants = {f"m{k}": known.mass[k] for k in range(2)} | {f"i{k}": known.inertia[k] for k in range(2)}
    constants |= {f"k{k}": known.damping[k] for k in range(2)} | {f"com{k}": -known.com[k] for k in range(2)}
    constants |= {"length": -known.length, "gravity": -known.gravity, "dt": problem.task.dt}
    exact = {name: repr(value) for name, value in constants.items()}
    return mujoco.MjSpec.from_string(MJCF.format(integrator=INTEGRATOR, **exact))


def write(model: mujoco.MjModel, values: Float[np.ndarray, " n"]) -> None:
    """Write values of the free parameters, in the order of `Published.free`, to a compiled model."""
    inertia0, inertia1, com_z, placement_z, com_x0, com_x1, damping0, damping1 = values
    # body 0 is the world
    model.body_inertia[1], model.body_inertia[2] = inertia0, inertia1
    model.body_ipos[1, 2], model.body_pos[2, 2] = com_z, placement_z
    model.body_ipos[1, 0], model.body_ipos[2, 0] = com_x0, com_x1
    model.dof_damping[:] = damping0, damping1


class Simulations:
    """Parallel simulation of all windows for several parameter values, on all threads."""

    def __init__(self, problem: PendulumProblem):
        self.problem = problem
        self.model = specification(problem).compile()
        self.models = [copy.copy(self.model)]
        self.data = [mujoco.MjData(self.model) for _ in range(threads())]
        self.pool = rollout.Rollout(nthread=len(self.data))

    def angles(
        self,
        values: Sequence[Float[np.ndarray, " n"]],
        q0: Float[np.ndarray, "k windows 2"],
        qd0: Float[np.ndarray, "k windows 2"],
    ) -> Float[np.ndarray, "k windows steps 2"]:
        """Joint angles after every step; with free initial states, the initial ones first and without the last.

        Args:
            values: k sets of parameter values.
            q0: initial joint angles of the windows, for each set.
            qd0: initial joint velocities of the windows, for each set.
        """
        while len(self.models) < len(values):
            self.models.append(copy.copy(self.model))
        for model, parameters in zip(self.models, values, strict=False):
            write(model, parameters)
        count, windows = q0.shape[:2]
        models = [model for model in self.models[:count] for _ in range(windows)]
        start = np.concatenate([np.zeros((count, windows, 1)), q0, qd0], axis=2).reshape(count * windows, -1)
        steps = self.problem.steps - self.problem.task.free_initial_states
        state, _ = self.pool.rollout(models, self.data, start, nstep=steps)
        angles = state[:, :, 1:3].reshape(count, windows, steps, 2)
        return np.concatenate([q0[:, :, None], angles], axis=2) if self.problem.task.free_initial_states else angles

    def residuals(self, values: Sequence[Float[np.ndarray, " n"]]) -> Float[np.ndarray, "k m"]:
        """Residuals for several parameter values, with the initial states of the problem."""
        shape = (len(values), *self.problem.q0.shape)
        starts = np.broadcast_to(self.problem.q0, shape), np.broadcast_to(self.problem.qd0, shape)
        return self.problem.residuals(self.angles(values, *starts))

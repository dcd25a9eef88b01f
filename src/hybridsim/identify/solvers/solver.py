"""Interface of local solvers: the solver state before the first step, a step, and a termination status.

A solver state holds arrays only, with a leading axis of independent instances. It determines the next step completely,
so that a fit that resumes from a saved state is bit-identical to an uninterrupted one.
"""

import abc
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from hybridsim.identify.objective import Objective, Point

Array = np.ndarray


class Termination(IntEnum):
    """Why a solver stopped on an instance."""

    RUNNING = 0
    STATIONARY = 1
    """The gradient vanishes, except where it is balanced by active bounds."""
    SMALL_STEP = 2
    """Steps have become negligible."""
    SMALL_DECREASE = 3
    """The decrease of the objective has become negligible."""
    STUCK = 4
    """No acceptable step was found: none decreased the objective enough, or (Adam) the simulation kept diverging."""
    DIVERGED = 5
    """The simulation diverges at the initial values."""
    OUT_OF_STEPS = 6
    """The step limit was reached."""
    INACCURATE_STEP = 7
    """The last step is negligible, but the subproblem that it solves reached its own iteration limit."""

    @property
    def has_converged(self) -> bool:
        """Whether a convergence criterion was met."""
        return self in (Termination.STATIONARY, Termination.SMALL_STEP, Termination.SMALL_DECREASE)

    @property
    def message(self) -> str:
        """Description for users."""
        return _MESSAGES[self]


_MESSAGES = {
    Termination.RUNNING: "running",
    Termination.STATIONARY: "converged (gradient is zero)",
    Termination.SMALL_STEP: "converged (steps are negligible)",
    Termination.SMALL_DECREASE: "converged (decrease is negligible)",
    Termination.STUCK: "stuck: no acceptable step was found",
    Termination.DIVERGED: "the simulation diverges at the initial values",
    Termination.OUT_OF_STEPS: "step limit reached",
    Termination.INACCURATE_STEP: "stopped: the last step is negligible, but was not computed accurately",
}


class SolverState(NamedTuple):
    """State of a solver; the fields before `internal` are common to all solvers."""

    point: Point
    """Best point so far."""
    cost: Float[Array, " P"]
    termination: Int[Array, " P"]
    steps: Int[Array, ""]
    """Number of steps taken."""
    internal: Any
    """Solver-specific state: nested tuples or dictionaries of arrays."""


class Solver(abc.ABC):
    """A local solver. Its settings are fields of a frozen dataclass."""

    name: str
    max_steps: int
    supports_kinks: ClassVar[bool] = False
    """Whether objectives may have penalties with kinks, which select inputs, grafts or neurons."""

    @abc.abstractmethod
    def init(self, objective: Objective, point: Point) -> SolverState:
        """State before the first step."""

    @abc.abstractmethod
    def step(self, objective: Objective, state: SolverState) -> SolverState:
        """Take a step in every running instance."""

    def compact(self, state: SolverState) -> SolverState:
        """Drop from a state what `restore` can recompute; by default nothing."""
        return state

    def restore(self, objective: Objective, state: SolverState) -> SolverState:
        """Restore the state from the result of `compact`, bit-identically."""
        del objective
        return state

    def is_done(self, state: SolverState) -> bool:
        """Whether no instance is running any more."""
        return not np.any(state.termination == Termination.RUNNING)


def apply_step_limit(max_steps: int, steps: Int[Array, ""], termination: Int[Array, " P"]) -> Int[Array, " P"]:
    """Terminate running instances at the step limit."""
    running = termination == Termination.RUNNING
    return np.where(running & (steps >= max_steps), Termination.OUT_OF_STEPS, termination)

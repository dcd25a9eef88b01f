"""What every local solver is: a beginning, a step, and a word on whether it is done.

A state holds arrays only, with a leading axis of problems that are solved side by side. It is all that the next step
depends on, so that a run that goes on from a saved state is the run that was never interrupted, bit by bit.
"""

import abc
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from hybridsim.identify.objective import Objective, Point

Array = np.ndarray


class Termination(IntEnum):
    """Why a problem is no longer worked on."""

    RUNNING = 0
    FLAT = 1
    """The gradient vanishes: a minimum, or a bound that holds it."""
    SMALL_STEP = 2
    """Steps no longer move anything."""
    SMALL_GAIN = 3
    """Steps no longer gain anything."""
    STUCK = 4
    """No step gains anything, although the gradient does not vanish: the objective is rough here."""
    DIVERGED = 5
    """The simulation diverges at the start, so that there is no way on."""
    OUT_OF_STEPS = 6
    """As many steps as allowed were made."""

    @property
    def converged(self) -> bool:
        """Is the answer a minimum, as far as anybody can tell?"""
        return self in (Termination.FLAT, Termination.SMALL_STEP, Termination.SMALL_GAIN)

    @property
    def words(self) -> str:
        """For people."""
        return _WORDS[self]


_WORDS = {
    Termination.RUNNING: "still running",
    Termination.FLAT: "converged (no slope left)",
    Termination.SMALL_STEP: "converged (steps have become tiny)",
    Termination.SMALL_GAIN: "converged (nothing more to gain)",
    Termination.STUCK: "stuck: no step gains anything although there is a slope",
    Termination.DIVERGED: "the simulation diverges at the starting values",
    Termination.OUT_OF_STEPS: "out of steps",
}


class SolverState(NamedTuple):
    """What all solvers keep."""

    point: Point
    """The best so far."""
    cost: Float[Array, " P"]
    verdict: Int[Array, " P"]
    steps: Int[Array, ""]
    """Steps made."""
    own: Any
    """What a solver keeps beside: a named tuple or dictionary of arrays."""


class Solver(abc.ABC):
    """A local solver. Its settings are fields of a frozen dataclass."""

    name: str
    max_steps: int

    @abc.abstractmethod
    def init(self, objective: Objective, point: Point) -> SolverState:
        """The state before the first step."""

    @abc.abstractmethod
    def step(self, objective: Objective, state: SolverState) -> SolverState:
        """The state after one more step of every problem that is still running."""

    def kept(self, state: SolverState) -> SolverState:
        """What of a state must be kept to go on from it; by default all of it."""
        return state

    def resumed(self, objective: Objective, state: SolverState) -> SolverState:
        """The state that was kept, as it was."""
        del objective
        return state

    def is_done(self, state: SolverState) -> bool:
        """Is there nothing left to do?"""
        return not np.any(state.verdict == Termination.RUNNING)


def apply_step_limit(max_steps: int, steps: Int[Array, ""], verdict: Int[Array, " P"]) -> Int[Array, " P"]:
    """Verdicts after this step, if there is a limit of them."""
    running = verdict == Termination.RUNNING
    return np.where(running & (steps >= max_steps), Termination.OUT_OF_STEPS, verdict)

"""Solution of a fit problem: stages in sequence, each a sequence of solver steps, with checkpoints.

After every step the complete state is passed to the checkpoint store, so that an interrupted fit resumes from there
with bit-identical results, and progress is reported to the callback.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float

from hybridsim.core.blas import limit_blas_to_one_thread
from hybridsim.core.errors import DivergedError, HybridsimError
from hybridsim.identify.initial_guess import InitialGuess
from hybridsim.identify.initial_state_fit import fit_initial_states
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.solvers.registry import as_solver
from hybridsim.identify.solvers.solver import SolverState, Termination
from hybridsim.identify.stage import Stage

Array = np.ndarray


class Checkpoint(NamedTuple):
    """Complete state of a fit."""

    stage: int
    state: SolverState
    """As returned by the solver's `compact`."""


class CheckpointStore(Protocol):
    """Storage of checkpoints."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Save a checkpoint; the previous one may be discarded."""
        ...

    def load_newest(self) -> Checkpoint | None:
        """Load the newest checkpoint, if there is any."""
        ...


class Progress(NamedTuple):
    """Progress of a fit, for callbacks."""

    stage: int
    stages: int
    step: int
    max_steps: int
    cost: float
    """Lowest cost so far."""
    normalized_cost: float
    """√(2 cost / number of samples): the root mean square residual, in standard deviations of the noise, if there are
    no priors, continuity constraints, penalties or robust losses."""
    theta: Float[Array, " n"]
    """θ with the common parameters."""
    elapsed: float
    """Wall-clock time since the fit was started or resumed [s]."""
    is_last: bool
    """Whether this was the last step of the stage."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Solution of a fit problem."""

    theta: Float[Array, " n"]
    """θ with the common parameters; per-run parameters have their initial values."""
    run_values: dict[str, dict[str, float]]
    """Per-run parameter values, by run and parameter name."""
    costs: tuple[float, ...]
    """Final cost of each stage run in this process; not comparable between stages, whose windows differ."""
    terminations: tuple[Termination, ...]
    """Why each of these stages ended."""
    steps: tuple[int, ...]
    """Number of steps of each of these stages."""
    objective: Objective
    """Objective of the last stage."""
    state: SolverState
    """Final state."""
    stopped: bool
    """Whether the `stop` callback ended the fit."""

    @property
    def point(self) -> Point:
        """Solution of the last stage, with initial states."""
        return self.state.point.select([int(np.argmin(self.state.cost))])

    @property
    def normalized_cost(self) -> float:
        """√(2 cost / number of samples) of the last stage: see `Progress`."""
        return float(np.sqrt(2.0 * self.costs[-1] / max(self.objective.windows.sample_count, 1)))

    @property
    def has_converged(self) -> bool:
        """Whether the last stage converged."""
        return not self.stopped and self.terminations[-1].has_converged


@limit_blas_to_one_thread()
def solve(
    problem: FitProblem,
    stages: Sequence[Stage] = (Stage(),),
    *,
    checkpoint_store: CheckpointStore | None = None,
    callback: Callable[[Progress], None] = lambda progress: None,
    stop: Callable[[], bool] = lambda: False,
) -> Solution:
    """Solve a fit problem.

    Args:
        problem: setup, free parameters and recordings.
        stages: stages in order, each initialized with the result of the previous one; short windows converge from
            poorer initial values and come first.
        checkpoint_store: storage of checkpoints; the fit resumes from its newest one, if any.
        callback: called after every step.
        stop: called before every step; the fit stops when it returns true.
    """
    if not stages:
        raise HybridsimError("a fit needs at least one stage")
    start_time = time.monotonic()
    checkpoint = checkpoint_store.load_newest() if checkpoint_store else None
    first = checkpoint.stage if checkpoint else 0
    layout = problem.layout()
    theta, costs, terminations, steps = layout.initial, [], [], []
    state, previous = None, None
    for stage_index in range(first, len(stages)):
        stage = stages[stage_index]
        objective, guess = problem.objective(stage)
        solver = as_solver(stage.solver)
        if checkpoint is not None and stage_index == first:
            state = solver.restore(objective, checkpoint.state)
        else:
            point = objective.stacked_point(theta)
            if previous is not None:
                point = carry_over_initial_states(previous[0], previous[1], objective, point)
                # not in the first stage: while θ is far from its optimum, initial states would absorb its errors
                # convergence does not matter: the solver fits them further, together with θ
                point = fit_initial_states(objective, point).point
            state = solver.init(objective, point)
            _check_not_diverged(state, objective, guess)
            if checkpoint_store and solver.is_done(state):
                checkpoint_store.save(Checkpoint(stage_index, solver.compact(state)))
        while not solver.is_done(state) and not stop():
            state = solver.step(objective, state)
            if checkpoint_store:
                checkpoint_store.save(Checkpoint(stage_index, solver.compact(state)))
            callback(_progress(stage_index, stages, state, objective, start_time))
        best = int(np.argmin(state.cost))
        theta, previous = state.point.theta[best], (objective, state.point.select([best]))
        costs.append(float(state.cost[best]))
        terminations.append(Termination(int(state.termination[best])))
        steps.append(int(state.steps))
        if not solver.is_done(state):
            break
    assert state is not None and previous is not None
    stopped = bool(np.any(state.termination == Termination.RUNNING))
    common, run_values = layout.common_theta(theta), layout.run_values(theta)
    return Solution(
        common, run_values, tuple(costs), tuple(terminations), tuple(steps), previous[0], state, stopped=stopped
    )


def carry_over_initial_states(previous: Objective, fitted: Point, current: Objective, guess: Point) -> Point:
    """Replace guesses by initial states fitted in the previous stage, for windows that begin at the same time."""
    window_at = {(index, round(t / previous.windows.dt)): k for k, (index, t) in enumerate(_start_times(previous))}
    q, qd = guess.q.copy(), guess.qd.copy()
    for w, (index, t) in enumerate(_start_times(current)):
        k = window_at.get((index, round(t / previous.windows.dt)))
        if k is not None and previous.s:
            q[:, w], qd[:, w] = fitted.q[:, k], fitted.qd[:, k]
    return guess._replace(q=q, qd=qd)


def _start_times(objective: Objective) -> list[tuple[int, float]]:
    """Index of the recording and time at which each window begins."""
    w = objective.windows
    return list(zip(w.recording.tolist(), w.start.tolist(), strict=True))


def _progress(
    stage: int, stages: Sequence[Stage], state: SolverState, objective: Objective, start_time: float
) -> Progress:
    best = int(np.argmin(state.cost))
    cost = float(state.cost[best])
    return Progress(
        stage=stage,
        stages=len(stages),
        step=int(state.steps),
        max_steps=as_solver(stages[stage].solver).max_steps,
        cost=cost,
        normalized_cost=float(np.sqrt(2.0 * cost / max(objective.windows.sample_count, 1))),
        theta=objective.layout.common_theta(state.point.theta[best]),
        elapsed=time.monotonic() - start_time,
        is_last=not np.any(state.termination == Termination.RUNNING),
    )


def _check_not_diverged(state: SolverState, objective: Objective, guess: InitialGuess) -> None:
    """Raise if the simulation diverges at the initial values of all instances."""
    if np.any(state.termination != Termination.DIVERGED):
        return
    _, ok = objective.sampled_readings(state.point)
    diverged = np.flatnonzero(~ok[0])
    w = objective.windows
    first = f"{w.start[diverged[0]]:g} s of {objective.layout.run_names[w.recording[diverged[0]]]}"
    where = f"{len(diverged)} of {w.count} windows, the first at {first}"
    names = ", ".join(guess.unmeasured)
    unmeasured = f"; not measured, and therefore initialized at the home configuration: {names}" if names else ""
    raise DivergedError(
        f"the simulation diverges at the initial values in {where}{unmeasured}. "
        "Try shorter windows, a smaller time step or other initial values."
    )

"""The fit itself: stage after stage, step after step, with everything kept that a later run needs to go on.

A fit is a sequence of small steps of a solver. After each of them its whole state is handed to whoever keeps it, so
that a run that is killed goes on from there, to the same bits as one that was not; whoever watches is told how it goes.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float

from hybridsim.core.blas import one_blas_thread
from hybridsim.core.errors import DivergedError, HybridsimError
from hybridsim.identify.initial_guess import InitialGuess
from hybridsim.identify.initial_state_fit import fit_initial_states
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.identify.solvers.solver import SolverState, Termination

Array = np.ndarray


class Checkpoint(NamedTuple):
    """Where a fit is: all that its further course depends on."""

    stage: int
    state: SolverState
    """As the solver keeps it."""


class CheckpointStore(Protocol):
    """Keeps checkpoints."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint; the one before may be forgotten."""
        ...

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint, if there is any."""
        ...


class Progress(NamedTuple):
    """How a fit goes, for whoever watches."""

    stage: int
    stages: int
    step: int
    max_steps: int
    cost: float
    """Of the best problem."""
    rms: float
    """Root mean square residual, in standard deviations of the noise; priors, ties and robust losses count as well."""
    theta: Float[Array, " n"]
    """What is common to all runs."""
    seconds: float
    """Since this process began to fit."""


@dataclass(frozen=True, eq=False)
class FitResult:
    """What came out."""

    theta: Float[Array, " n"]
    """What is common to all runs; numbers of single runs are as they started."""
    of_runs: dict[str, dict[str, float]]
    """Numbers of single runs, by the names of runs and numbers."""
    costs: tuple[float, ...]
    """Objective at the end of each stage, from the one on in which the fit was resumed; windows differ, so that they do
    not compare."""
    verdicts: tuple[Termination, ...]
    """Why each of these stages ended."""
    state: SolverState
    """At the end."""
    stopped: bool
    """Did somebody stop it?"""

    @property
    def converged(self) -> bool:
        """Did the last stage find a minimum?"""
        return not self.stopped and self.verdicts[-1].converged


@one_blas_thread()
def fit(
    problem: FitProblem,
    stages: Sequence[Stage] = (Stage(),),
    *,
    keeper: CheckpointStore | None = None,
    watch: Callable[[Progress], None] = lambda progress: None,
    stop: Callable[[], bool] = lambda: False,
) -> FitResult:
    """Fit the parameters of a problem.

    Args:
        problem: what is fitted to what.
        stages: one after the other, each from where the last one ended; short windows first find their way in from
            farther off.
        keeper: keeps checkpoints; if it has one, the fit goes on from there.
        watch: told after every step.
        stop: asked before every step; the state is kept when it says so.
    """
    if not stages:
        raise HybridsimError("a fit needs at least one stage")
    begun = time.monotonic()
    found = keeper.newest() if keeper else None
    first = found.stage if found else 0
    layout = problem.layout()
    theta, costs, verdicts = layout.start, [], []
    state, last = None, None
    for number in range(first, len(stages)):
        stage = stages[number]
        objective, guess = problem.objective(stage)
        solver = stage.solver
        if found is not None and number == first:
            state = solver.resumed(objective, found.state)
        else:
            start = objective.point_of_runs(theta)
            if last is not None:
                start = carry_over_initial_states(last[0], last[1], objective, start)
                # from here on θ is near the truth; before, starts would be bent to make up for it
                start = fit_initial_states(objective, start)
            state = solver.init(objective, start)
            _check_start(state, objective, guess)
            if keeper and solver.is_done(state):
                keeper.save(Checkpoint(number, solver.kept(state)))
        while not solver.is_done(state) and not stop():
            state = solver.step(objective, state)
            if keeper:
                keeper.save(Checkpoint(number, solver.kept(state)))
            watch(_progress(number, stages, state, objective, begun))
        best = int(np.argmin(state.cost))
        theta, last = state.point.theta[best], (objective, state.point.chosen([best]))
        costs.append(float(state.cost[best]))
        verdicts.append(Termination(int(state.verdict[best])))
        if not solver.is_done(state):
            break
    assert state is not None
    stopped = bool(np.any(state.verdict == Termination.RUNNING))
    return FitResult(
        layout.common(theta), layout.own_values(theta), tuple(costs), tuple(verdicts), state, stopped=stopped
    )


def carry_over_initial_states(before: Objective, found: Point, now: Objective, guess: Point) -> Point:
    """A first guess of starts with those that an earlier stage has found, for windows that begin at the same time."""
    known = {(run, round(t / before.windows.dt)): k for k, (run, t) in enumerate(_beginnings(before))}
    q, qd = guess.q.copy(), guess.qd.copy()
    for w, (run, t) in enumerate(_beginnings(now)):
        k = known.get((run, round(t / before.windows.dt)))
        if k is not None and before.s:
            q[:, w], qd[:, w] = found.q[:, k], found.qd[:, k]
    return guess._replace(q=q, qd=qd)


def _beginnings(objective: Objective) -> list[tuple[int, float]]:
    """Run and time at which each window begins."""
    w = objective.windows
    return list(zip(w.run.tolist(), w.start.tolist(), strict=True))


def _progress(stage: int, stages: Sequence[Stage], state: SolverState, objective: Objective, begun: float) -> Progress:
    best = int(np.argmin(state.cost))
    cost = float(state.cost[best])
    return Progress(
        stage=stage,
        stages=len(stages),
        step=int(state.steps),
        max_steps=stages[stage].solver.max_steps,
        cost=cost,
        rms=float(np.sqrt(2.0 * cost / max(objective.windows.samples, 1))),
        theta=objective.layout.common(state.point.theta[best]),
        seconds=time.monotonic() - begun,
    )


def _check_start(state: SolverState, objective: Objective, guess: InitialGuess) -> None:
    """Raise if no problem can be worked on."""
    if np.any(state.verdict != Termination.DIVERGED):
        return
    _, ok = objective.samples(state.point)
    bad = np.flatnonzero(~ok[0])
    w = objective.windows
    first = f"{w.start[bad[0]]:g} s of {objective.layout.runs[w.run[bad[0]]]}"
    where = f"{len(bad)} of {w.count} windows, the first one at {first}"
    unseen = f"; nothing measures {', '.join(guess.unseen)}, which start at home" if guess.unseen else ""
    raise DivergedError(
        f"the simulation diverges at the starting values in {where}{unseen}. "
        "Shorter windows, a smaller time step or other starting values may help."
    )

"""A fit as a whole: what is simulated, what is free, what was measured, and in which stages it is fitted."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.data.recording import Recording
from hybridsim.identify.initial_guess import InitialGuess, initial_guess
from hybridsim.identify.objective import Objective, Terms
from hybridsim.identify.penalty import NO_SPARSITY, Sparsity
from hybridsim.identify.robust_loss import LOSSES
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.solvers.solver import Solver
from hybridsim.identify.theta_layout import ThetaLayout
from hybridsim.identify.window_simulator import WindowSimulator
from hybridsim.identify.windows import Measurements, Windows, cut_windows, span
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.sim.state import Inputs

Starts = Literal["free", "near", "measured"]


@dataclass(frozen=True)
class Stage:
    """One part of a fit: how the runs are cut into windows, and which solver works on them."""

    window: float | None = None
    """Length of a window [s]; whole runs by default."""
    stride: float | None = None
    """Time between the starts of windows [s]; by default their length, less what is run in."""
    burn_in: float = 0.0
    """Time at the beginning of a window that is simulated but not compared [s], in which actuators with a memory come
    to remember what they should: the delay, or about five times a lag's time constant."""
    starts: Starts = "free"
    """Starts of windows are unknown (`free`), nearly known (`near`), or taken as measured."""
    initial_state_std: tuple[float, float] = (1e-3, 1e-2)
    """Standard deviations of measured starts [rad or m] and their velocities [rad/s or m/s], where they are `near`."""
    ties: tuple[float, float] | None = None
    """Tolerances in position [rad or m] and velocity [rad/s or m/s] between the end of a window and the next start."""
    loss: str = "linear"
    """Robust loss of the samples; see `robust`."""
    loss_scale: float = 1.0
    """Standard deviations of the noise from which on a sample counts less."""
    sparsity: Sparsity = NO_SPARSITY
    """What the networks cost; see `penalty`."""
    solver: Solver = field(default_factory=LevenbergMarquardt)

    def __post_init__(self):
        if self.loss not in LOSSES:
            raise HybridsimError(f"unknown loss {self.loss!r}; choose one of {', '.join(LOSSES)}")
        if self.ties is not None and (self.starts == "measured" or self.stride is not None or self.burn_in):
            raise HybridsimError(
                "ties between windows need starts that are not held, and windows without a stride that run in nothing"
            )
        if self.burn_in < 0.0 or (self.window is not None and 0.0 < self.window <= self.burn_in):
            raise HybridsimError(f"windows of {self.window} s cannot run in for {self.burn_in:g} s")


ONE_STEP = Stage(window=0.0, starts="measured")
"""The loss of the papers: every measured state is simulated for one step and compared with the next one."""


@dataclass(frozen=True, eq=False)
class FitProblem:
    """What is fitted to what."""

    setup: Setup
    space: ParameterSpace
    measured: Measurements
    train: tuple[Recording, ...]
    held_out: tuple[Recording, ...] = ()
    """Whole runs that the fit never sees, to judge it by."""

    def __post_init__(self):
        sensors, actuators = self.setup.sensors.names, self.setup.sim.model.actuator.names
        if tuple(self.measured.noise) != sensors:
            raise HybridsimError(f"noise is told for {', '.join(self.measured.noise)}, but sensors measure {sensors}")
        for name in self.measured.commands:
            if name not in actuators:
                raise HybridsimError(f"no actuator is named {name!r}; there are {', '.join(actuators) or 'none'}")
        if not self.train:
            raise HybridsimError("there is nothing to fit to: no run is left for training")
        names = [run.name for run in (*self.train, *self.held_out)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise HybridsimError(f"two runs are called {twice[0]!r}; give each a name of its own")

    def with_space(self, space: ParameterSpace) -> "FitProblem":
        """The same fit with another start, or other bounds, of the same numbers; what is compiled is shared."""
        return self._sharing(replace(self, space=space))

    def with_train(self, runs: Sequence[Recording]) -> "FitProblem":
        """The same fit to other runs; what is compiled is shared."""
        return self._sharing(replace(self, train=tuple(runs)))

    def _sharing(self, other: "FitProblem") -> "FitProblem":
        other.__dict__["_readings_alone"], other.__dict__["_with_states"] = self._readings_alone, self._with_states
        return other

    def simulated(self, *, with_states: bool = False) -> WindowSimulator:
        """The setup with its parameters, ready to be simulated; one for all who ask, since it holds compiled code."""
        return self._with_states if with_states else self._readings_alone

    @cached_property
    def _readings_alone(self) -> WindowSimulator:
        return self._simulated(with_states=False)

    @cached_property
    def _with_states(self) -> WindowSimulator:
        return self._simulated(with_states=True)

    def _simulated(self, *, with_states: bool) -> WindowSimulator:
        user = {name: np.zeros(()) for name in self.measured.user}
        inputs = Inputs(np.zeros(self.setup.sim.model.nu), None, user)
        return WindowSimulator(self.setup, self.space, inputs, with_states=with_states)

    def objective(self, stage: Stage, runs: Sequence[Recording] | None = None) -> tuple[Objective, InitialGuess]:
        """What a stage minimises, over the runs for training by default, and the first guess of the starts."""
        runs = self.train if runs is None else runs
        self._check_starts(stage)
        sim, sensors = self.setup.sim, self.setup.sensors
        dt = float(sim.dt)
        burn_in = max(stage.burn_in, self._look_back(stage))
        longest = max(end - begin for begin, end in (span(run, self.measured) for run in runs))
        cut = cut_windows(
            runs,
            self.measured,
            sim.model.actuator.names,
            dt=dt,
            length=longest + dt if stage.window is None else max(stage.window, dt),
            stride=stage.window - burn_in if stage.stride is None and stage.window and not stage.ties else stage.stride,
            lead=max(self._longest_delay(), burn_in),
            at_start=stage.starts != "measured",
        )
        simulated = self.simulated(with_states=stage.ties is not None)
        if not stage.burn_in:
            self._check_memory(simulated, cut, runs)
        guess = initial_guess(simulated.starts, sensors, runs, cut, smooth=stage.starts != "measured")
        terms = Terms(
            loss=stage.loss,
            loss_scale=stage.loss_scale,
            free_starts=stage.starts != "measured",
            initial_state_std=np.repeat(stage.initial_state_std, sim.model.nv) if stage.starts == "near" else None,
            tolerance=None if stage.ties is None else np.repeat(stage.ties, sim.model.nv),
            sparsity=stage.sparsity,
        )
        return Objective(simulated, self.layout(runs), cut, (guess.q, guess.qd), terms), guess

    def _check_starts(self, stage: Stage) -> None:
        """Raise if what is taken for a measured start depends on free numbers."""
        if stage.starts != "free" and (free := [n for n in self.space.labels if n.startswith("sensor.")]):
            raise HybridsimError(
                f"starts that are {stage.starts} follow from what sensors read, but {free[0]} is free: a wrong number "
                "would be taken for the truth; use starts = 'free'"
            )

    def _check_memory(self, simulated: WindowSimulator, cut: Windows, runs: Sequence[Recording]) -> None:
        """Raise if windows begin in the middle of what actuators remember."""
        begins = np.array([span(run, self.measured)[0] for run in runs])
        if simulated.starts.remembers and np.any(cut.start > begins[cut.run]):
            stages = [type(stage).__name__ for stage in self.setup.sim.actuation.stages]
            raise HybridsimError(
                f"the actuators ({', '.join(stages)}) remember what came before, which is not known where a window "
                "begins in the middle of a run: give the stage a burn_in, about five times the lag, or fit whole runs"
            )

    def layout(self, runs: Sequence[Recording] | None = None) -> ThetaLayout:
        """θ of the runs for training, or of others."""
        return ThetaLayout(self.space, [run.run for run in (self.train if runs is None else runs)])

    def _look_back(self, stage: Stage) -> float:
        """Time at the beginning of a window of which networks do not know what came before [s]."""
        reads = [read for graft in self.setup.sim.bound_blueprint().grafts for read in graft.inputs]
        steps = max((read.past for read in reads), default=0)
        back = steps * float(self.setup.sim.dt)
        if steps and stage.window is not None and stage.window <= back:
            raise HybridsimError(
                f"networks look back {back:g} s, so that windows of {stage.window:g} s tell nothing of what they do; "
                "make them longer"
            )
        return back

    def _longest_delay(self) -> float:
        """The longest delay that a sensor may have [s]."""
        delays = list(np.asarray(self.setup.sensors.delay))
        for change in self.space.table(self.space.initial):
            if not change.name.startswith("sensor.delay"):
                continue
            if not np.isfinite(change.upper):
                raise HybridsimError(
                    f"{change.name} is free without an upper bound; give it one: samples that come sooner than that "
                    "after a window's start show what was before it, and are left out"
                )
            delays.append(change.upper)
        return float(max(delays, default=0.0))

"""A fit problem: the simulated setup, its free parameters, and the runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import jax
import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.data.run import Run
from hybridsim.identify.initial_guess import InitialGuess, initial_guess
from hybridsim.identify.objective import Objective, ObjectiveSettings
from hybridsim.identify.stage import Stage
from hybridsim.identify.theta_layout import ThetaLayout
from hybridsim.identify.window_simulator import WindowSimulator
from hybridsim.identify.windows import ChannelRoles, Windows, cut_windows, time_span
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.sim.state import Inputs


@dataclass(frozen=True, eq=False)
class FitProblem:
    """Setup, free parameters and recordings of a fit."""

    setup: Setup
    space: ParameterSpace
    channel_roles: ChannelRoles
    train: tuple[Run, ...]
    """Training runs."""
    held_out: tuple[Run, ...] = ()
    """Held-out runs."""

    def __post_init__(self):
        sensors, actuators = self.setup.sensors.names, self.setup.sim.model.actuator.names
        if tuple(self.channel_roles.noise) != sensors:
            raise HybridsimError(
                f"noise must be given for exactly the sensors {', '.join(sensors)}, in their order, "
                f"not for {', '.join(self.channel_roles.noise) or 'none'}"
            )
        for name in self.channel_roles.commands:
            if name not in actuators:
                raise HybridsimError(f"no actuator is named {name!r}; there are {', '.join(actuators) or 'none'}")
        if not self.train:
            raise HybridsimError("a fit needs at least one training run")
        names = [recording.name for recording in (*self.train, *self.held_out)]
        if duplicates := sorted({name for name in names if names.count(name) > 1}):
            raise HybridsimError(f"two runs are named {duplicates[0]!r}; names must be unique")

    def with_space(self, space: ParameterSpace) -> "FitProblem":
        """Copy with new initial values or bounds of the same parameters; shares compiled code."""
        return self._share_simulators(replace(self, space=space))

    def with_runs(self, train: Sequence[Run], held_out: Sequence[Run]) -> "FitProblem":
        """Copy with other runs; shares compiled code."""
        return self._share_simulators(replace(self, train=tuple(train), held_out=tuple(held_out)))

    def with_train(self, runs: Sequence[Run]) -> "FitProblem":
        """Copy with new training runs; shares compiled code."""
        return self._share_simulators(replace(self, train=tuple(runs)))

    def _share_simulators(self, other: "FitProblem") -> "FitProblem":
        for name in ("_simulator_without_states", "_simulator_with_states"):
            other.__dict__[name] = getattr(self, name)
        return other

    def window_simulator(self, *, with_states: bool = False) -> WindowSimulator:
        """Simulator of windows; shared by all callers, since it holds compiled code."""
        return self._simulator_with_states if with_states else self._simulator_without_states

    @cached_property
    def _simulator_without_states(self) -> WindowSimulator:
        return self._window_simulator(with_states=False)

    @cached_property
    def _simulator_with_states(self) -> WindowSimulator:
        return self._window_simulator(with_states=True)

    def _window_simulator(self, *, with_states: bool) -> WindowSimulator:
        user = {name: np.zeros(()) for name in self.channel_roles.user}
        inputs = Inputs(np.zeros(self.setup.sim.model.nu), None, user)
        return WindowSimulator(self.setup, self.space, inputs, with_states=with_states)

    def objective(self, stage: Stage, runs: Sequence[Run] | None = None) -> tuple[Objective, InitialGuess]:
        """Objective of a stage, over the training runs by default, and the initial guess of the initial states."""
        runs = self.train if runs is None else runs
        self._check_initial_states(stage)
        sim, sensors = self.setup.sim, self.setup.sensors
        dt = float(sim.dt)
        burn_in = max(stage.burn_in, self._network_lag(stage))
        longest = max(end - start for start, end in (time_span(run, self.channel_roles) for run in runs))
        is_measured, stride = stage.initial_states == "measured", stage.stride
        windows = cut_windows(
            runs,
            self.channel_roles,
            sim.model.actuator.names,
            dt=dt,
            length=longest + dt if stage.window is None else max(stage.window, dt),
            stride=stage.window - burn_in if stride is None and stage.window and not stage.continuity else stride,
            skip=max(self._max_sensor_delay(), burn_in),
            include_start=not is_measured,
        )
        simulator = self.window_simulator(with_states=stage.continuity is not None)
        if not stage.burn_in:
            self._check_internal_states(simulator, windows, runs)
        guess = initial_guess(simulator.state_layout, sensors, runs, windows, smooth=not is_measured)
        nv = sim.model.nv
        settings = ObjectiveSettings(
            loss=stage.loss,
            loss_scale=stage.loss_scale,
            free_initial_states=not is_measured,
            initial_state_std=np.repeat(stage.initial_state_std, nv) if stage.initial_states == "prior" else None,
            continuity_std=None if stage.continuity is None else np.repeat(stage.continuity, nv),
            sparsity=stage.sparsity,
        )
        return Objective(simulator, self.layout(runs), windows, (guess.q, guess.qd), settings), guess

    def _check_initial_states(self, stage: Stage) -> None:
        """Raise if measured initial states depend on free sensor parameters."""
        if stage.initial_states != "free" and (free := [n for n in self.space.names if n.startswith("sensor.")]):
            raise HybridsimError(
                f'initial_states = "{stage.initial_states}" derives initial states from sensor readings, but '
                f'{free[0]} is free and its initial value may be wrong; use initial_states = "free"'
            )

    def _check_internal_states(self, simulator: WindowSimulator, windows: Windows, runs: Sequence[Run]) -> None:
        """Raise if windows begin where internal states of actuation stages are unknown."""
        start_times = np.array([time_span(run, self.channel_roles)[0] for run in runs])
        if simulator.state_layout.has_internal_state and np.any(windows.start > start_times[windows.recording]):
            names = ", ".join(self._stages_with_internal_state())
            raise HybridsimError(
                f"internal states of the actuation stages ({names}) are unknown where a window begins in the middle of "
                "a run: give the stage of the fit a burn_in of about five time constants, or fit whole runs"
            )

    def _stages_with_internal_state(self) -> list[str]:
        """Classes of the actuation stages that have internal states."""
        sim = self.setup.sim
        with jax.enable_x64(True):
            states = sim.initial_state().aux["actuation"]
        pairs = zip(sim.actuation.stages, states, strict=True)
        return [type(actuation_stage).__name__ for actuation_stage, state in pairs if jax.tree.leaves(state)]

    def layout(self, runs: Sequence[Run] | None = None) -> ThetaLayout:
        """Layout of θ over the training runs, or over other runs."""
        return ThetaLayout(self.space, [recording.run_name for recording in (self.train if runs is None else runs)])

    def _network_lag(self, stage: Stage) -> float:
        """Time at the beginning of a window in which delayed inputs of networks are unknown [s]."""
        selections = [selection for graft in self.setup.sim.bound_blueprint().grafts for selection in graft.inputs]
        steps = max((selection.lag for selection in selections), default=0)
        lag = steps * float(self.setup.sim.dt)
        if steps and stage.window is not None and stage.window <= lag:
            raise HybridsimError(
                f"network inputs are delayed by up to {lag:g} s, so that no sample of a window of {stage.window:g} s "
                "can be used; lengthen the windows"
            )
        return lag

    def _max_sensor_delay(self) -> float:
        """Upper bound on the sensor delays [s]."""
        delays = list(np.asarray(self.setup.sensors.delay))
        for parameter in self.space.table(self.space.initial):
            if not parameter.name.startswith("sensor.delay"):
                continue
            if not np.isfinite(parameter.upper):
                raise HybridsimError(
                    f"{parameter.name} is free without an upper bound; specify one: samples within that time after "
                    "the beginning of a window depend on the motion before it and are not used"
                )
            delays.append(parameter.upper)
        return float(max(delays, default=0.0))

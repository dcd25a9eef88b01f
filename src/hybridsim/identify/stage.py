"""Stages of a fit: windows, terms of the objective, and solver."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from hybridsim.core.advice import Advice, Setting
from hybridsim.core.specification import Nonnegative, OneOf, Pair, Positive, setting_error, specification
from hybridsim.identify.penalty import NO_SPARSITY, Sparsity
from hybridsim.identify.robust_loss import LOSSES
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.solvers.registry import SolverChoice, as_solver

InitialStateMode = Literal["free", "prior", "measured"]
DEFAULT_INITIAL_STATE_STD = (1e-3, 1e-2)


@specification
class Stage:
    """One stage of a fit: how the runs are cut into windows, the terms of the objective, and the solver."""

    window: Nonnegative | None = None
    """Window length [s], 0 for single steps; by default whole runs."""
    stride: Positive | None = None
    """Time between the beginnings of consecutive windows [s]; by default their length minus the burn-in or the longest
    lag of network inputs, whichever is longer."""
    burn_in: Nonnegative = 0.0
    """Time at the beginning of a window that is simulated but not compared [s], for the internal states of actuators to
    converge: the delay, or about five time constants of a lag."""
    initial_states: InitialStateMode = "free"
    """Initial states of windows: free, free with a prior at the measured state, or fixed at the measured state."""
    initial_state_std: Pair = DEFAULT_INITIAL_STATE_STD
    """Standard deviations of the prior at the measured state, in position [rad or m] and velocity [rad/s or m/s]."""
    continuity: Pair | None = None
    """Standard deviations of the continuity defects between windows in position [rad or m] and velocity [rad/s or m/s].
    """
    loss: Annotated[str, OneOf(lambda: LOSSES)] = "linear"
    """Loss function of the residuals."""
    loss_scale: Positive = 1.0
    """Residual beyond which a robust loss down-weights a sample, in standard deviations of the noise."""
    sparsity: Sparsity = NO_SPARSITY
    """Sparsity penalties of networks; all except `l2` yield exact zeros and require the solver lm."""
    solver: SolverChoice = Field(default_factory=LevenbergMarquardt)
    """A solver, its name, or a table with its settings."""

    @model_validator(mode="after")
    def _check_stage(self):
        if self.continuity is not None and self.initial_states == "measured":
            fix = Advice("write {} or {}", Setting("initial_states", "free"), Setting("initial_states", "prior"))
            raise setting_error("continuity", "needs initial states that are not fixed", fix)
        if self.continuity is not None and self.stride is not None:
            raise setting_error("continuity", "needs windows without a stride", "remove stride")
        if self.continuity is not None and self.burn_in:
            raise setting_error("continuity", "needs windows without burn-in", "remove burn_in")
        if self.initial_state_std != DEFAULT_INITIAL_STATE_STD and self.initial_states != "prior":
            fix = Advice("write {}", Setting("initial_states", "prior"))
            raise setting_error("initial_state_std", 'applies only to initial_states = "prior"', fix)
        if self.window and self.window <= self.burn_in:
            message = f"must be shorter than the window of {self.window:g} s, not {self.burn_in:g} s"
            raise setting_error("burn_in", message, "lengthen the windows", "project.value")
        nonsmooth = self.sparsity.inputs or self.sparsity.grafts or self.sparsity.first_layer
        if nonsmooth and not as_solver(self.solver).supports_kinks:
            message = f"is not supported by the solver {as_solver(self.solver).name}"
            raise setting_error("sparsity", message, Advice("write {}", Setting("solver", "lm")))
        return self


ONE_STEP = Stage(window=0.0, initial_states="measured")
"""One-step prediction loss, common in the literature: simulate one step from every measured state."""

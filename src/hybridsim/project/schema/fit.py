"""Sections `[[free]]`, `[[graft]]` and `[[stage]]` of a project: free parameters, networks and stages of the fit."""

import math
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from hybridsim.project.schema.data import Names
from hybridsim.project.schema.networks import MLPSection, Network
from hybridsim.project.schema.section import NonemptyText, Nonnegative, Positive, Section, conflict
from hybridsim.project.schema.solvers import LevenbergMarquardtSolver, SolverTable


def _not_nan(value: float) -> float:
    if math.isnan(value):
        raise conflict("", "must not be nan", "write inf or -inf where there is no bound")
    return value


Bound = Annotated[float, Field(allow_inf_nan=True), AfterValidator(_not_nan)]
"""Infinite where there is no bound."""


class FreeEntry(Section):
    """Free parameters."""

    name: Names
    """Address, such as `joint.damping[*]`, `body.mass[link1]` or `inertial[link2]`; or several."""
    bounds: tuple[Bound, Bound] | None = None
    """Lower and upper bound; `-inf` or `inf` where there is none."""
    initial: float | Literal["current"] | None = None
    """Initial value; by default, or with `"current"`, that of the model."""
    map: Literal["identity", "log", "interval"] | None = None
    """Map from the parameter to θ."""
    prior: tuple[float, Positive] | None = None
    """Mean and standard deviation of a Gaussian prior."""
    scale: Positive | None = None
    """Parameter value at θ = 1; for the map `log` at θ = 0."""
    l1: Nonnegative = 0.0
    """Weight of the sum of absolute values, which yields exact zeros; solver lm only."""
    l2: Nonnegative = 0.0
    """Weight of half the sum of squares."""
    group: str = ""
    """Group lasso: l1 is the weight of the norm of all parameters of the group, which become zero jointly."""
    tied: bool | tuple[float, ...] = False
    """One value for all matching parameters; a tuple holds the factor of each name."""
    per: Literal["all", "run"] = "all"
    """One estimate for all runs, or a separate estimate for each run."""


class GraftTable(Section):
    """A network between quantities of the simulation, as in a blueprint."""

    outputs: Names
    """Addresses of the quantities that the network modifies, such as `joint.tau[*]`."""
    inputs: Names
    """Addresses of the quantities that the network reads, such as `joint.q` and `joint.qd`."""
    mode: Literal["add", "replace", "scale"] = "add"
    """Add the output to the quantity, replace it, or scale it by one plus the output."""
    per: Literal["whole", "element"] = "whole"
    """One network for all elements, or the same network for each joint, body or contact separately."""
    network: Network = MLPSection()
    """The network. Before the fit, a multilayer perceptron has no effect, `cone_friction` half of its maximum friction,
    and other networks have almost none."""


class WeightFitSection(Section):
    """Fit of the weights of networks."""

    fit: bool = True
    """Whether all weights are free; if not, only those named by `[[free]]` are."""
    l2: Nonnegative = 0.0
    """Weight of half the sum of squared weights."""
    limit: Positive | None = None
    """Bound on the absolute values of weights."""

    @model_validator(mode="after")
    def _check_weight_keys(self):
        for key in ("l2", "limit"):
            if getattr(self, key) and not self.fit:
                raise conflict(key, "requires fit = true", "remove it, or specify it in [[free]]")
        return self


class GraftEntry(GraftTable, WeightFitSection):
    """A network between quantities of the simulation, and the fit of its weights."""


class BlueprintSection(WeightFitSection):
    """A blueprint in a separate file, whose networks follow those of the project."""

    file: NonemptyText
    """TOML file; its weights, if any, are the initial values of the fit."""


class SparsityTable(Section):
    """Sparsity penalties of networks."""

    inputs: Nonnegative = 0.0
    """Weight of the norm of all first-layer weights of an input."""
    grafts: Nonnegative = 0.0
    """Weight of the norm of each network."""
    first_layer: Nonnegative = 0.0
    """Weight of the sum of absolute first-layer weights."""
    upper_layers: Nonnegative = 0.0
    """Weight of half the sum of squares of all other weights, and of biases."""


class StageEntry(Section):
    """A stage of the fit: division of the runs into windows, and the solver."""

    window: Nonnegative | None = None
    """Length of a window [s], 0 for single steps; by default whole runs."""
    stride: Positive | None = None
    """Time between the beginnings of consecutive windows [s]; the window length by default."""
    initial_states: Literal["free", "near", "measured"] = "free"
    """Initial states of windows: free, free with a prior at the measured state, or fixed at the measured state."""
    initial_state_std: tuple[Positive, Positive] = (1e-3, 1e-2)
    """Standard deviations of that prior in position [rad or m] and velocity [rad/s or m/s], for `near`."""
    continuity: tuple[Positive, Positive] | None = None
    """Standard deviations of the continuity defects in position [rad or m] and velocity [rad/s or m/s]."""
    loss: Literal["linear", "huber", "soft_l1", "cauchy"] = "linear"
    """Loss function of the residuals."""
    loss_scale: Positive = 1.0
    """Residual beyond which a robust loss attenuates a sample, in standard deviations of the noise."""
    sparsity: SparsityTable = SparsityTable()
    """Sparsity penalties of networks; all except `upper_layers` yield exact zeros and require the solver lm."""
    solver: SolverTable = LevenbergMarquardtSolver()
    """`"lm"`, `"lbfgs"`, `"adam"`, or a table with its settings."""

    @model_validator(mode="after")
    def _check_stage(self):
        if self.continuity is not None and self.initial_states == "measured":
            raise conflict(
                "continuity", "needs initial states that are not fixed", 'write initial_states = "free" or "near"'
            )
        if self.continuity is not None and self.stride is not None:
            raise conflict("continuity", "needs windows without a stride", "remove stride")
        if "initial_state_std" in self.model_fields_set and self.initial_states != "near":
            raise conflict(
                "initial_state_std", 'applies only to initial_states = "near"', 'write initial_states = "near"'
            )
        nonsmooth = self.sparsity.inputs or self.sparsity.grafts or self.sparsity.first_layer
        if nonsmooth and self.solver.name != "lm":
            raise conflict("sparsity", f"is not supported by the solver {self.solver.name}", 'write solver = "lm"')
        return self

"""Sections `[[free]]`, `[[graft]]` and `[[stage]]` of a project: free parameters, networks and stages of the fit."""

import math
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from hybridsim.project.schema.data import Names
from hybridsim.project.schema.networks import MLPTable, NetworkTable
from hybridsim.project.schema.solvers import LevenbergMarquardtTable, SolverTable
from hybridsim.project.schema.strict_table import NonemptyText, Nonnegative, Positive, StrictTable, key_error


def _reject_nan(value: float) -> float:
    if math.isnan(value):
        raise key_error("", "must not be nan", "write inf or -inf where there is no bound", "project.value")
    return value


Bound = Annotated[float, Field(allow_inf_nan=True), AfterValidator(_reject_nan)]
"""Infinite where there is no bound."""


class FreeEntry(StrictTable):
    """Free parameters."""

    name: Names
    """Address, such as `joint.damping[*]`, `body.mass[link1]` or `inertial[link2]`; or several."""
    bounds: tuple[Bound, Bound] | None = None
    """Lower and upper bound; `-inf` or `inf` where there is none."""
    initial: float | Literal["current"] | None = None
    """Initial value; by default, or with `"current"`, that of the model."""
    map: Literal["linear", "log", "interval"] | None = None
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
    """`true`: one value for all matching parameters; or a list with one factor per name, by which the shared value is
    multiplied."""
    per: Literal["fit", "run"] = "fit"
    """One estimate for all runs, or a separate estimate for each run."""


class BlueprintGraftEntry(StrictTable):
    """A network that reads quantities of the simulation and modifies others, as in a blueprint."""

    outputs: Names
    """Addresses of the quantities that the network modifies, such as `joint.tau[*]`."""
    inputs: Names
    """Addresses of the quantities that the network reads, such as `joint.q` and `joint.qd`."""
    mode: Literal["add", "replace", "scale"] = "add"
    """Add the output to the quantity, replace it, or scale it by one plus the output."""
    per: Literal["graft", "element"] = "graft"
    """One network for all elements, or the same network for each joint, body or contact separately."""
    network: NetworkTable = MLPTable()
    """The network. Initially, an MLP that adds or scales has no effect, `cone_friction` exerts half of its maximum
    friction, `rod_drag` has the specified coefficients, and the effect of other networks is negligible."""


class WeightFitKeys(StrictTable):
    """Keys for the fit of the weights of networks."""

    fit: bool = True
    """Whether all weights are free; if not, only those named by `[[free]]` are."""
    l2: Nonnegative = 0.0
    """Factor of half the sum of squared weights."""
    limit: Positive | None = None
    """Bound on the absolute values of weights."""

    @model_validator(mode="after")
    def _check_weight_keys(self):
        for key in ("l2", "limit"):
            if getattr(self, key) and not self.fit:
                raise key_error(key, "requires fit = true", "remove it, or specify it in [[free]]")
        return self


class GraftEntry(BlueprintGraftEntry, WeightFitKeys):
    """A network that reads quantities of the simulation and modifies others, and the fit of its weights."""


class BlueprintSection(WeightFitKeys):
    """A blueprint in a separate file, whose networks follow those of the project."""

    file: NonemptyText
    """TOML file; its weights, if any, are the initial values of the fit."""


class SparsityTable(StrictTable):
    """Sparsity penalties of networks."""

    inputs: Nonnegative = 0.0
    """Factor of the norm of all first-layer weights of an input."""
    grafts: Nonnegative = 0.0
    """Factor of the norm of all weights of each network."""
    first_layer: Nonnegative = 0.0
    """Factor of the sum of absolute first-layer weights."""
    l2: Nonnegative = 0.0
    """Factor of half the sum of squares of all other weights, and of biases."""


class StageEntry(StrictTable):
    """A stage of the fit: division of the runs into windows, and the solver."""

    window: Nonnegative | None = None
    """Length of a window [s], 0 for single steps; by default whole runs."""
    stride: Positive | None = None
    """Time between the beginnings of consecutive windows [s]; by default the window length minus the
    longest lag of network inputs."""
    initial_states: Literal["free", "prior", "measured"] = "free"
    """Initial states of windows: free, free with a prior at the measured state, or fixed at the measured state."""
    initial_state_std: tuple[Positive, Positive] = (1e-3, 1e-2)
    """Standard deviations of the prior at the measured state, in position [rad or m] and velocity [rad/s or m/s]."""
    continuity: tuple[Positive, Positive] | None = None
    """Standard deviations of the continuity defects in position [rad or m] and velocity [rad/s or m/s]."""
    loss: Literal["linear", "huber", "soft_l1", "cauchy"] = "linear"
    """Loss function of the residuals."""
    loss_scale: Positive = 1.0
    """Residual beyond which a robust loss down-weights a sample, in standard deviations of the noise."""
    sparsity: SparsityTable = SparsityTable()
    """Sparsity penalties of networks; all except `l2` yield exact zeros and require the solver lm."""
    solver: SolverTable = LevenbergMarquardtTable()
    """`"lm"`, `"lbfgs"`, `"adam"`, or a table with its settings."""

    @model_validator(mode="after")
    def _check_stage(self):
        if self.continuity is not None and self.initial_states == "measured":
            raise key_error(
                "continuity", "needs initial states that are not fixed", 'write initial_states = "free" or "prior"'
            )
        if self.continuity is not None and self.stride is not None:
            raise key_error("continuity", "needs windows without a stride", "remove stride")
        if "initial_state_std" in self.model_fields_set and self.initial_states != "prior":
            raise key_error(
                "initial_state_std", 'applies only to initial_states = "prior"', 'write initial_states = "prior"'
            )
        nonsmooth = self.sparsity.inputs or self.sparsity.grafts or self.sparsity.first_layer
        if nonsmooth and self.solver.name != "lm":
            raise key_error("sparsity", f"is not supported by the solver {self.solver.name}", 'write solver = "lm"')
        return self

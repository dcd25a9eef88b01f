"""The sections `[[free]]`, `[[graft]]` and `[[stage]]` of a project: what is fitted, and how."""

import math
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from hybridsim.project.schema.data import Names
from hybridsim.project.schema.networks import MLPSection, Network
from hybridsim.project.schema.section import NotNegative, Positive, Section, Text, conflict
from hybridsim.project.schema.solvers import LevenbergMarquardtSolver, SolverTable


def _not_nan(value: float) -> float:
    if math.isnan(value):
        raise conflict("", "is not a number", "write inf or -inf where there is no bound")
    return value


Bound = Annotated[float, Field(allow_inf_nan=True), AfterValidator(_not_nan)]
"""Infinite where there is none."""


class FreeEntry(Section):
    """Numbers that the fit may change."""

    name: Names
    """Address, such as `joint.damping[*]`, `body.mass[link1]` or `inertial[link2]`; or several."""
    bounds: tuple[Bound, Bound] | None = None
    """Least and largest value; `inf` or `-inf` where there is none."""
    initial: float | Literal["current"] | None = None
    """Value to start from; the model's by default."""
    map: Literal["identity", "log", "interval"] | None = None
    """How the solver sees the numbers."""
    prior: tuple[float, Positive] | None = None
    """Expected value and its standard deviation."""
    scale: Positive | None = None
    """Value at which the solver sees a one."""
    l1: NotNegative = 0.0
    """Weight of the sum of absolute values, which makes exact zeros; solver lm only."""
    l2: NotNegative = 0.0
    """Weight of half the sum of squares."""
    group: str = ""
    """Numbers of one group cost l1 times their norm instead, and are zero together or not at all."""
    tied: bool | tuple[float, ...] = False
    """One number for all that match, or for each name a factor that it is multiplied by."""
    per: Literal["all", "run"] = "all"
    """The same numbers in all runs, or others in every run."""


class GraftTable(Section):
    """A network between quantities of the simulation, as a blueprint has it."""

    outputs: Names
    """Addresses of what the network changes, such as `joint.tau[*]`."""
    inputs: Names
    """Addresses of what it reads, such as `joint.q` and `joint.qd`."""
    mode: Literal["add", "replace", "scale"] = "add"
    """Add the output to the quantity, replace it, or scale it by one plus the output."""
    per: Literal["whole", "element"] = "whole"
    """One network for all, or the same one for each joint, body or contact by itself."""
    network: Network = MLPSection()
    """The network; a multilayer perceptron changes nothing before it is fitted, the others next to nothing."""


class FittedWeights(Section):
    """How weights are fitted."""

    fit: bool = True
    """Are all weights free? Otherwise only those that `[[free]]` names."""
    l2: NotNegative = 0.0
    """Weight of the sum of their squares."""
    limit: Positive | None = None
    """Largest absolute value that a weight may have."""

    @model_validator(mode="after")
    def _has_weights_to_weigh(self):
        for key in ("l2", "limit"):
            if getattr(self, key) and not self.fit:
                raise conflict(key, "is for weights that are fitted", "leave it out, or give it in [[free]]")
        return self


class GraftEntry(GraftTable, FittedWeights):
    """A network between quantities of the simulation, and how it is fitted."""


class BlueprintSection(FittedWeights):
    """A blueprint in a file of its own, whose networks come after those of the project."""

    file: Text
    """TOML file; its weights, if it has any, are where the fit starts."""


class SparsityTable(Section):
    """What networks cost, in addition to their errors."""

    inputs: NotNegative = 0.0
    """Weight of the norm of all that a network does with one of its inputs."""
    grafts: NotNegative = 0.0
    """Weight of the norm of each network."""
    first_layer: NotNegative = 0.0
    """Weight of the absolute values of first layers."""
    upper_layers: NotNegative = 0.0
    """Weight of half the squares of everything after first layers."""


class StageEntry(Section):
    """One part of a fit: how runs are cut into windows, and which solver works on them."""

    window: NotNegative | None = None
    """Length of a window [s], 0 for single steps; whole runs by default."""
    stride: Positive | None = None
    """Time between the starts of windows [s]; their length by default."""
    starts: Literal["free", "near", "measured"] = "free"
    """Starts of windows are unknown, nearly known, or taken as measured."""
    initial_state_std: tuple[Positive, Positive] = (1e-3, 1e-2)
    """Standard deviations of measured starts [rad or m] and their velocities [rad/s or m/s], where they are near."""
    ties: tuple[Positive, Positive] | None = None
    """Tolerances in position [rad or m] and velocity [rad/s or m/s] between the end of a window and the next start."""
    loss: Literal["linear", "huber", "soft_l1", "cauchy"] = "linear"
    """Robust loss of the samples."""
    loss_scale: Positive = 1.0
    """Standard deviations of the noise from which on a sample counts less."""
    sparsity: SparsityTable = SparsityTable()
    """What networks cost; all but squares make exact zeros and need the solver lm."""
    solver: SolverTable = LevenbergMarquardtSolver()
    """`"lm"`, `"lbfgs"`, `"adam"`, or a table with its settings."""

    @model_validator(mode="after")
    def _can_be_tied(self):
        if self.ties is not None and self.starts == "measured":
            raise conflict("ties", "need starts that are not held", 'write starts = "free" or "near"')
        if self.ties is not None and self.stride is not None:
            raise conflict("ties", "need windows without a stride", "leave stride out")
        if "initial_state_std" in self.model_fields_set and self.starts != "near":
            raise conflict("initial_state_std", "is for starts that are nearly known", 'write starts = "near"')
        costly = self.sparsity.inputs or self.sparsity.grafts or self.sparsity.first_layer
        if costly and self.solver.name != "lm":
            raise conflict(
                "sparsity", f"makes exact zeros, of which {self.solver.name} knows nothing", 'use solver = "lm"'
            )
        return self

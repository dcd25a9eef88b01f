"""Solvers of the stages of a project; unspecified settings have the solver's defaults."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hybridsim.project.schema.strict_table import Count, Nonnegative, Positive, Seed, StrictTable


class SolverSettings(StrictTable):
    """Settings of a solver."""

    max_steps: Count | None = None
    """Maximum number of steps."""

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that the project specifies."""
        return {key: getattr(self, key) for key in type(self).model_fields if key in self.model_fields_set - {"name"}}


class LevenbergMarquardtTable(SolverSettings):
    """Levenberg–Marquardt: damped Gauss–Newton steps, the first choice unless there are many weights."""

    name: Literal["lm"] = "lm"
    """Name of the solver."""
    cost_tolerance: Nonnegative | None = None
    """Relative decrease of the cost below which it terminates."""
    step_tolerance: Nonnegative | None = None
    """Relative change of the unknowns below which it terminates."""
    gradient_tolerance: Nonnegative | None = None
    """Cosine of the angle between the residuals and any column of the Jacobian below which it terminates."""
    initial_damping: Positive | None = None
    """Damping of the first step."""


class LbfgsTable(SolverSettings):
    """L-BFGS: quasi-Newton steps from gradients only, within bounds."""

    name: Literal["lbfgs"]
    """Name of the solver."""
    cost_tolerance: Nonnegative | None = None
    """Relative decrease of the cost in each of two consecutive line searches below which it terminates."""
    memory: Count | None = None
    """Number of stored gradient differences."""
    step_tolerance: Nonnegative | None = None
    """Relative change of the unknowns below which it terminates."""
    gradient_tolerance: Nonnegative | None = None
    """Derivative with respect to any unknown times its standard error, relative to the residuals, below which it
    terminates."""


class AdamTable(SolverSettings):
    """Adam: stochastic gradient descent with momentum on minibatches of windows."""

    name: Literal["adam"]
    """Name of the solver."""
    cost_tolerance: Nonnegative | None = None
    """Relative decrease of the cost over all windows below which an evaluation counts as no improvement."""
    learning_rate: Positive | None = None
    """Approximate change of a parameter per step, in units of its scale."""
    schedule: Literal["constant", "cosine"] | None = None
    """Learning rate: constant, or decaying to zero at the last step."""
    batch_size: Count | None = None
    """Number of windows per step; by default all."""
    max_gradient_norm: Positive | None = None
    """Norm to which the gradient per window is clipped."""
    check_every: Count | None = None
    """Steps between evaluations of the cost over all windows."""
    patience: Count | None = None
    """Evaluations of that cost without improvement after which it terminates."""
    seed: Seed | None = None
    """Random seed of the order of windows; by default that of `[run]`."""


def _expand_name(value: Any) -> Any:
    if isinstance(value, str):
        return {"name": value}
    return {"name": "lm", **value} if isinstance(value, dict) else value


SolverTable = Annotated[
    Annotated[LevenbergMarquardtTable | LbfgsTable | AdamTable, Field(discriminator="name")],
    BeforeValidator(_expand_name),
]
"""The name of a solver, or a table with its settings."""

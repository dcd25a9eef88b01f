"""The solvers that a stage of a project can choose; what is left out is the solver's own default."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hybridsim.project.schema.section import Count, NotNegative, Positive, Section, Seed


class SolverSection(Section):
    """Settings of a solver."""

    max_steps: Count | None = None
    """Steps after which it gives up."""
    cost_tolerance: NotNegative | None = None
    """Relative gain below which it is done."""

    @property
    def settings(self) -> dict[str, Any]:
        """Those that are told."""
        return {key: getattr(self, key) for key in type(self).model_fields if key in self.model_fields_set - {"name"}}


class LevenbergMarquardtSolver(SolverSection):
    """Damped Gauss–Newton steps: the first choice for all but many weights."""

    name: Literal["lm"] = "lm"
    """Which solver it is."""
    step_tolerance: NotNegative | None = None
    """Relative change of all unknowns below which it is done."""
    gradient_tolerance: NotNegative | None = None
    """Cosine between residuals and any column of the Jacobian below which it is done."""
    initial_damping: Positive | None = None
    """How careful the first step is."""


class LbfgsSolver(SolverSection):
    """Quasi-Newton steps from gradients alone, within bounds."""

    name: Literal["lbfgs"]
    """Which solver it is."""
    memory: Count | None = None
    """Changes of the gradient that are remembered."""
    step_tolerance: NotNegative | None = None
    """Relative change of all unknowns below which it is done."""
    gradient_tolerance: NotNegative | None = None
    """Slope by the standard error of any unknown below which it is done."""


class AdamSolver(SolverSection):
    """Gradient descent with momentum, on some of the windows at a time."""

    name: Literal["adam"]
    """Which solver it is."""
    learning_rate: Positive | None = None
    """About how much a parameter changes per step, by its scale."""
    schedule: Literal["constant", "cosine"] | None = None
    """Does the learning rate stay, or fall to zero by the last step?"""
    batch: Count | None = None
    """Windows per step; all of them by default."""
    max_gradient_norm: Positive | None = None
    """Longest gradient per window that is believed."""
    check_every: Count | None = None
    """Steps between evaluations of the whole objective."""
    patience: Count | None = None
    """Evaluations of the whole objective without gain after which it is done."""
    seed: Seed | None = None
    """Of the order of windows; that of the run by default."""


def _by_name(value: Any) -> Any:
    if isinstance(value, str):
        return {"name": value}
    return {"name": "lm", **value} if isinstance(value, dict) else value


SolverTable = Annotated[
    Annotated[LevenbergMarquardtSolver | LbfgsSolver | AdamSolver, Field(discriminator="name")],
    BeforeValidator(_by_name),
]
"""The name of a solver, or a table with its settings."""

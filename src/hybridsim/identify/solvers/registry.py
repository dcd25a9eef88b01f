"""The solvers by name: the only list of them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from hybridsim.core.specification import Choice
from hybridsim.identify.solvers.adam import Adam
from hybridsim.identify.solvers.lbfgs import LBFGS
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.solvers.solver import Solver

SOLVERS: dict[str, type[Solver]] = {solver.name: solver for solver in (LevenbergMarquardt, LBFGS, Adam)}

if TYPE_CHECKING:
    # what users may write; a solver is stored
    SolverChoice = Solver | str | Mapping[str, Any]
else:
    SolverChoice = Annotated[
        Solver, Choice("name", lambda: SOLVERS, base=lambda: Solver, default=LevenbergMarquardt.name)
    ]


def as_solver(choice: SolverChoice) -> Solver:
    """The solver that a stage stores."""
    assert isinstance(choice, Solver)
    return choice

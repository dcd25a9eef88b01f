"""The solvers by name: the only list of them."""

from typing import Annotated

from hybridsim.core.specification import Choice
from hybridsim.identify.solvers.adam import Adam
from hybridsim.identify.solvers.lbfgs import LBFGS
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.solvers.solver import Solver

SOLVERS: dict[str, type[Solver]] = {solver.name: solver for solver in (LevenbergMarquardt, LBFGS, Adam)}

SolverChoice = Annotated[Solver, Choice("name", lambda: SOLVERS, base=lambda: Solver, default=LevenbergMarquardt.name)]
"""A solver, its name, or a table with its name and settings."""

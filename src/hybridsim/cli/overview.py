"""`hybridsim --help`: overview of all commands."""

import inspect
from collections.abc import Callable, Sequence

ABOUT = "Robot simulator with system identification: fits physical parameters and neural networks to recorded motion."
EXAMPLES = """For example:
  hybridsim demo                          # complete fits on recordings that ship with the package
  hybridsim check robot.urdf              # contents and problems of a model file
  hybridsim init robot.urdf run*.csv      # writes project.toml
  hybridsim fit project.toml              # fits the model
  hybridsim predict runs/project --data other.csv

`hybridsim COMMAND --help` describes a command and shows examples; `hybridsim --version` prints the version.

Exit codes: 0 success, 1 error in model, data or project, 2 incorrect usage, 3 the simulation diverged, 4 a fit did not
converge, or an experiment missed a goal or did not reproduce a score, 130 stopped by Ctrl-C, 143 by SIGTERM."""


def overview(commands: Sequence[Callable[..., int]]) -> str:
    """Overview of commands, one line each, with examples."""
    rows = []
    for command in commands:
        summary = (inspect.getdoc(command) or "").partition("\n")[0]
        rows.append(f"  {command.__name__.replace('_', '-'):<10} {summary}")
    return "\n".join(["usage: hybridsim COMMAND ...", "", ABOUT, "", "Commands:", *rows, "", EXAMPLES])

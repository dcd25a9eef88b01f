"""`hybridsim --help`: all commands at a glance."""

import inspect
from collections.abc import Callable, Sequence

ABOUT = "Robot simulation that fits physics and neural networks to recorded motion."
EXAMPLES = """For example:
  hybridsim demo                          # everything once, on recordings that come with it
  hybridsim check robot.urdf              # what is in a model file and what is wrong with it
  hybridsim init robot.urdf run*.csv      # writes project.toml
  hybridsim fit project.toml              # fits it
  hybridsim predict runs/project --data other.csv

`hybridsim COMMAND --help` tells more of a command, with examples. `hybridsim --version` tells the version.

Exit codes: 0 all is well, 1 the model or the data is at fault, 2 the command was used wrongly, 3 the simulation
diverged, 4 a fit did not converge, 130 stopped by Ctrl-C, 143 by SIGTERM."""


def overview(commands: Sequence[Callable[..., int]]) -> str:
    """What there is, one line for each command, and how to begin."""
    rows = []
    for command in commands:
        summary = (inspect.getdoc(command) or "").partition("\n")[0]
        rows.append(f"  {command.__name__.replace('_', '-'):<9} {summary}")
    return "\n".join(["usage: hybridsim COMMAND ...", "", ABOUT, "", "Commands:", *rows, "", EXAMPLES])

"""`hybridsim`: the entry point of the command line.

Exit codes: 0 all is well, 1 the model or the data is at fault, 2 the command was used wrongly, 3 the simulation
diverged, 130 interrupted. A traceback is shown only with HYBRIDSIM_DEBUG=1.
"""

import os
import sys
from collections.abc import Sequence

from hybridsim.core.errors import HybridsimError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    from tyro.extras import SubcommandApp

    from hybridsim.cli.check import check
    from hybridsim.cli.convert import convert
    from hybridsim.cli.simulate import simulate
    from hybridsim.cli.taps import taps

    app = SubcommandApp()
    for command in (check, taps, simulate, convert):
        app.command(command)
    try:
        code = app.cli(
            prog="hybridsim",
            description="Robot simulation that fits physics and neural networks to recorded motion.",
            args=list(arguments),
        )
        return int(code or 0)
    except HybridsimError as error:
        return _failed(str(error), 1)
    except KeyboardInterrupt:
        return _failed("interrupted", 130)
    except BrokenPipeError:
        # the reader of our output has gone, as in `hybridsim taps a1.urdf | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("HYBRIDSIM_DEBUG"):
            raise
        return _failed(f"{type(error).__name__}: {error}\n(set HYBRIDSIM_DEBUG=1 to see where)", 1)


def _failed(message: str, code: int) -> int:
    print(f"hybridsim: {message}", file=sys.stderr)
    return code

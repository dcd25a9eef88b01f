"""Entry point of the `hybridsim` command line.

`overview.py` lists the exit codes. Tracebacks are shown with HYBRIDSIM_DEBUG=1 only. With `--json`, errors are JSON.
"""

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module

from hybridsim.core.errors import FolderError, HybridsimError, ProblemsError

COMMANDS = (
    *("demo", "check", "taps", "simulate", "init", "fit", "predict", "audit", "discover", "blueprint", "experiment"),
    *("convert", "export_c", "cache"),
)
"""Commands in the order of the overview; each is the function of this name in the file of this name."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, by shell convention."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    # JAX may swallow a KeyboardInterrupt during compilation and crash on one during execution
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    as_json = "--json" in arguments
    try:
        code = _dispatch(list(arguments))
        sys.stdout.flush()
        return code
    except HybridsimError as error:
        return _report_error(error, as_json)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # the consumer of a pipe has exited, as in `hybridsim taps a1.urdf | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("HYBRIDSIM_DEBUG"):
            raise
        return _report_error(
            HybridsimError(f"{type(error).__name__}: {error} (HYBRIDSIM_DEBUG=1 shows the traceback)"), as_json
        )


def _dispatch(arguments: list[str]) -> int:
    from tyro.extras import SubcommandApp

    import hybridsim
    from hybridsim.cli.overview import ABOUT, overview

    if arguments == ["--version"]:
        print(f"hybridsim {hybridsim.__version__}")
        return 0
    commands = [getattr(import_module(f"hybridsim.cli.{name}"), name) for name in COMMANDS]
    if arguments in (["--help"], ["-h"]):
        print(overview(commands))
        return 0
    app = SubcommandApp()
    for command in commands:
        app.command(command)
    return int(app.cli(prog="hybridsim", description=ABOUT, args=arguments) or 0)


def _report_error(error: HybridsimError, as_json: bool) -> int:
    from hybridsim.cli.output import print_json, print_problems, say

    problems = error.problems if isinstance(error, ProblemsError) else ()
    text = error.for_command_line() if isinstance(error, FolderError) else str(error)
    if as_json:
        print_json({"error": text, "problems": [asdict(problem) for problem in problems]})
    elif problems:
        print_problems(problems, stderr=True)
    else:
        say(f"hybridsim: {text}", stderr=True)
    return 1

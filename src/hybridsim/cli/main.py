"""Entry point of the `hybridsim` command line.

`overview.py` lists the exit codes. Tracebacks are shown with HYBRIDSIM_DEBUG=1 only. With `--json`, errors are JSON.
"""

import errno
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
OUTPUT_ERRORS = (errno.ENOSPC, errno.EIO, errno.EBADF)
"""Errors of standard output; those of files are reported with their names where they occur."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, by shell convention."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    # JAX may swallow a KeyboardInterrupt during compilation and crash on one during execution
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    _replace_closed_streams()
    try:
        code = _run(list(arguments))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # the consumer of a pipe has exited, as in `hybridsim taps a1.urdf | head`
        _discard_output()
        return 0
    except OSError as error:
        _discard_output()
        print(f"hybridsim: cannot write the output: {error.strerror}", file=sys.stderr)
        return 1


def _run(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    try:
        return _dispatch(arguments)
    except HybridsimError as error:
        return _report_error(error, as_json)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None and error.errno in OUTPUT_ERRORS:
            raise
        if os.environ.get("HYBRIDSIM_DEBUG"):
            raise
        text = f"{type(error).__name__}: {error} (HYBRIDSIM_DEBUG=1 shows the traceback)"
        return _report_error(HybridsimError(text), as_json)


def _replace_closed_streams() -> None:
    """Open standard streams that the caller has closed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - until the end


def _discard_output() -> None:
    """Send what is still to be written to standard output nowhere, so that it does not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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

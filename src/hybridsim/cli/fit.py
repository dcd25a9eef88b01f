"""`hybridsim fit`: identify a model from recordings."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from hybridsim.cli.fit_check import print_fit_check
from hybridsim.cli.interrupt import StopRequest
from hybridsim.cli.output import print_json, print_parts, print_problems, print_warnings, say
from hybridsim.core.errors import DivergedError, HybridsimError

if TYPE_CHECKING:
    from hybridsim.project.run_folder.folder import RunFolder

DIVERGED, NOT_CONVERGED = 3, 4


def fit(
    project: Annotated[Path, tyro.conf.Positional],
    resume: bool = False,
    fresh: bool = False,
    out: Path | None = None,
    check: bool = False,
    quiet: bool = False,
    json: bool = False,
) -> int:
    """Fit the free parameters and networks of a project to its recordings.

    All output goes into the run folder: checkpoints during the fit, then the result, the identified model file, plots
    and summary.html. The first Ctrl-C or SIGTERM stops after the current step, the second immediately; a fit that was
    stopped, was killed or ran out of disk space continues with --resume and gives the same result.

    Exit codes: 0 converged, 1 error in the project, model or data, 3 the simulation diverges at the initial values,
    4 not converged (a result is written nevertheless), 130 stopped by Ctrl-C, 143 by SIGTERM.

    For example:
      hybridsim fit arm.toml
      hybridsim fit arm.toml --check
      hybridsim fit arm.toml --resume
      hybridsim fit arm.toml --fresh --out runs/second_try

    Args:
        project: project file; `hybridsim init` writes one.
        resume: continue an unfinished fit; start one if there is none; show the result if the fit is complete.
        fresh: delete an existing fit and start over.
        out: run folder; by default the one in the project, or runs/NAME next to the project.
        check: check project, model and data, report the free and the unidentifiable parameters, and exit.
        quiet: print no progress.
        json: print the result as JSON instead of text.
    """
    if resume and fresh:
        raise HybridsimError("--resume continues a fit and --fresh deletes it; give only one of them")
    from hybridsim.project.build.build import build
    from hybridsim.project.fit_progress import FitProgress
    from hybridsim.project.fit_run import run_fit
    from hybridsim.project.report.result import CONVERGED, has_diverged
    from hybridsim.project.run_folder.folder import RunFolder
    from hybridsim.project.schema.load import load_project

    loaded = load_project(project)
    run_folder = RunFolder(out or loaded.out)
    mode = "resume" if resume else "fresh" if fresh else "new"
    if not check:
        run_folder.check_mode(mode)
    with print_warnings():
        built = build(loaded)
    print_problems(built.warnings, stderr=True)
    task = built.task
    if check:
        return print_fit_check(task, json)
    outcome, problem = None, ""
    with StopRequest() as stop, FitProgress(quiet=quiet) as progress:
        try:
            outcome = run_fit(
                task,
                run_folder,
                mode=mode,
                command=["hybridsim", *sys.argv[1:]],
                callback=progress.show,
                stop=lambda: stop.requested,
                log=progress.log,
            )
        except DivergedError as error:
            problem = str(error)
    common_fields = {"run_folder": str(run_folder.path), "interrupted": outcome is not None and outcome.result is None}
    if outcome is None:
        _print_without_result(common_fields | {"problem": problem}, f"hybridsim: {problem}", json)
        return DIVERGED
    if outcome.result is None:
        resume_command = f"hybridsim fit {project}" + (f" --out {out}" if out else "") + " --resume"
        stage, step = outcome.last_step
        text = f"Stopped in stage {stage + 1} after step {step}. Resume with: {resume_command}"
        _print_without_result(common_fields, text, json)
        return stop.exit_code
    if json:
        print_json(common_fields | outcome.result)
    else:
        _print(outcome.result, run_folder)
    if has_diverged(outcome.result["scores"]):
        return DIVERGED
    return 0 if outcome.result["status"] == CONVERGED else NOT_CONVERGED


def _print_without_result(fields: dict[str, Any], text: str, json: bool) -> None:
    if json:
        print_json(fields)
    else:
        say(text, stderr=True)


def _print(result: dict[str, Any], run_folder: "RunFolder") -> None:
    """Print a summary of the result."""
    from hybridsim.project.report.result_text import result_text

    print_parts(result_text(result))
    if result["model"] and result["model"]["file"]:
        say(f"identified model: {run_folder.path / result['model']['file']}")
    say(f"summary: {run_folder.summary_file}")

"""`hybridsim demo`: complete fits on the recordings that ship with the package."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybridsim.cli.interrupt import StopRequest
from hybridsim.cli.output import print_json, print_table, say
from hybridsim.core.errors import HybridsimError
from hybridsim.core.files import write_atomically
from hybridsim.core.messages import SIGMA

if TYPE_CHECKING:
    from hybridsim.project.fit_run import Outcome

PROJECTS = {"parameters": "masses and friction fitted", "networks": "with networks for unmodelled effects"}
"""Projects in the order in which they are fitted, with a description of each."""
SCORE_LABEL = "held-out runs, predictions over 1 s"
"""Label of the reported score."""


def demo(
    out: Path = Path("hybridsim-demo"),
    resume: bool = False,
    force: bool = False,
    browser: bool = True,
    json: bool = False,
) -> int:
    """Fit a model of a two-joint arm to recordings: its parameters first, then networks as well; compare the residuals.

    The recordings were simulated in MuJoCo with friction, air drag and encoder noise that the model file lacks
    (`python -m hybridsim.demo.record` generates them). The output folder contains the model, the recordings and both
    project files: edit them and run `hybridsim fit`. Takes less than a minute.

    For example:
      hybridsim demo
      hybridsim demo --out /tmp/arm --no-browser

    Args:
        out: output folder; the fits of an earlier demo in it are replaced.
        resume: continue an interrupted demo.
        force: replace files in the output folder that have been edited.
        browser: open the summary page in a browser if a display is available.
        json: print the result as JSON instead of text.
    """
    from hybridsim.project.report.result import score_label

    folder = _copy_files(out, force=force)
    rows: list[tuple[str, Any]] = []
    with StopRequest() as stop:
        for name, description in PROJECTS.items():
            if not json:
                say(f"{folder / name}.toml: {description}")
            outcome = _fit(folder / f"{name}.toml", stop, resume=resume, quiet=json)
            if outcome.result is None:
                say(f"Stopped. Continue with: hybridsim demo --out {out} --resume", stderr=True)
                return stop.exit_code
            if outcome.result["status"] != "converged" and not json:
                say(f"{name}: {outcome.result['message']}; the best parameters so far are used")
            score = next(row for row in outcome.result["scores"] if score_label(row) == SCORE_LABEL)
            residuals = score["normalized"]
            if not rows:
                rows.append(("initial model", residuals["before"]["rms"]))
            rows.append((description, residuals["after"]["rms"]))
    page = folder / "runs" / "networks" / "summary.html"
    if json:
        print_json({"residual_rms": dict(rows), "page": str(page)})
        return 0
    first = rows[0][1]
    cells = [(text, f"{rms:.3g}", f"{first / rms:.3g}×") for text, rms in rows]
    titles = (f"RMS residual of {SCORE_LABEL}", "σ", "improvement")
    print_table(titles, cells, right=titles[1:])
    say(SIGMA)
    say(f"summary: {page}")
    if browser and (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform in ("darwin", "win32")
    ):
        import webbrowser

        webbrowser.open(page.absolute().as_uri())
    return 0


def _copy_files(out: Path, *, force: bool) -> Path:
    """Copy the files of the demo into the output folder."""
    source = Path(__file__).parents[1] / "demo"
    files = {f.name: f.read_bytes() for f in sorted(source.iterdir()) if f.suffix in (".csv", ".toml", ".xml")}
    try:
        out.mkdir(parents=True, exist_ok=True)
        edited = [name for name, data in files.items() if (out / name).exists() and (out / name).read_bytes() != data]
        if edited and not force:
            raise HybridsimError(
                f"{out / edited[0]} has been edited; --out selects another folder, --force replaces the file, and "
                f"`hybridsim fit {out / next(iter(PROJECTS))}.toml` fits the edited project"
            )
        for name, data in files.items():
            if not (out / name).exists() or name in edited:
                write_atomically(out / name, data)
    except OSError as error:
        raise HybridsimError(f"cannot write to {out}: {error.strerror or error}; choose another --out") from None
    return out


def _fit(project: Path, stop: StopRequest, *, resume: bool, quiet: bool) -> "Outcome":
    from hybridsim.project.build.build import build
    from hybridsim.project.fit_progress import FitProgress
    from hybridsim.project.fit_run import run_fit
    from hybridsim.project.run_folder.folder import RunFolder
    from hybridsim.project.schema.load import load_project

    task = build(load_project(project)).task
    with FitProgress(quiet=quiet) as progress:
        command = ["hybridsim", "fit", str(project)]
        callbacks = {"callback": progress.show, "stop": lambda: stop.requested, "log": progress.log}
        run_folder, mode = RunFolder(project.parent / "runs" / project.stem), "resume" if resume else "fresh"
        return run_fit(task, run_folder, mode=mode, command=command, **callbacks)

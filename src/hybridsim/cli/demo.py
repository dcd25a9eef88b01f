"""`hybridsim demo`: the main job on recordings that come with the package."""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybridsim.cli.interrupt import StopRequest
from hybridsim.cli.output import print_json, print_table, say
from hybridsim.core.errors import HybridsimError

if TYPE_CHECKING:
    from hybridsim.project.fit_run import Outcome

PROJECTS = {"parameters": "masses and friction fitted", "networks": "with networks for what the model lacks"}
"""What is fitted one after the other, and what that means."""
SHOWN = "predicted over 1 s"
"""The score that counts: the next second, from what came before it."""


def demo(out: Path = Path("hybridsim-demo"), browser: bool = True, json: bool = False) -> int:
    """Fit a recorded two-joint arm, first its parameters, then with small networks, and show what it gained.

    Its recordings were made by MuJoCo, with friction, air drag and encoder noise that the model file does not know of
    (`python -m hybridsim.demo.record` is the program). The folder then holds model, recordings and both project files:
    change them and run `hybridsim fit` yourself. Takes under a minute.

    For example:
      hybridsim demo
      hybridsim demo --out /tmp/arm --no-browser

    Args:
        out: folder to work in; what an earlier demonstration left there is replaced.
        browser: open the summary page, where there is a screen.
        json: print the result as JSON for other programs.
    """
    folder = _unpacked(out)
    rows: list[tuple[str, Any]] = []
    with StopRequest() as stop:
        for name, meaning in PROJECTS.items():
            if not json:
                say(f"{folder / name}.toml: {meaning}")
            outcome = _fitted(folder / f"{name}.toml", stop, quiet=json)
            if outcome.result is None:
                say(f"Stopped. Go on with: hybridsim fit {folder / name}.toml --resume", stderr=True)
                return stop.exit_code
            if outcome.result["status"] != "converged" and not json:
                say(f"{name}: {outcome.result['words']}; these are the best numbers so far")
            score = next(s for s in outcome.result["scores"] if f"{s['kind']} over {s['seconds']:.3g} s" == SHOWN)
            errors = score["in_noise"]
            if not rows:
                rows.append(("model as it is", errors["before"]["rms"]))
            rows.append((meaning, errors["after"]["rms"]))
    page = folder / "runs" / "networks" / "summary.html"
    if json:
        print_json({"error_in_noise": dict(rows), "page": str(page)})
        return 0
    first = rows[0][1]
    cells = [(text, f"{error:.3g}", f"{first / error:.3g}×") for text, error in rows]
    titles = (f"held-out runs, {SHOWN}: error by noise", "", "better by")
    print_table(titles, cells, right=titles[1:])
    say(f"summary: {page}")
    if browser and (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform in ("darwin", "win32")
    ):
        import webbrowser

        webbrowser.open(page.absolute().as_uri())
    return 0


def _unpacked(out: Path) -> Path:
    """The demonstration's files in a folder of the user's."""
    source = Path(__file__).parents[1] / "demo"
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in sorted(f.name for f in source.iterdir() if f.suffix in (".csv", ".toml", ".xml")):
            shutil.copyfile(source / name, out / name)
    except OSError as error:
        raise HybridsimError(f"cannot write to {out}: {error.strerror or error}; choose another --out") from None
    return out


def _fitted(project: Path, stop: StopRequest, *, quiet: bool) -> "Outcome":
    from hybridsim.cli.fit_progress import FitProgress
    from hybridsim.project.build.build import build
    from hybridsim.project.build.task import task_of
    from hybridsim.project.fit_run import run_fit
    from hybridsim.project.record.record import Record
    from hybridsim.project.schema.load import load_project

    task = task_of(build(load_project(project)))
    with FitProgress(quiet=quiet) as progress:
        command = ["hybridsim", "fit", str(project)]
        given = {"watch": progress.show, "stop": lambda: stop.given, "tell": progress.tell}
        return run_fit(task, Record(project.parent / "runs" / project.stem), mode="fresh", command=command, **given)

"""`hybridsim experiment`: claims about real recordings, shown by fits."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from hybridsim.cli.fit_progress import FitProgress
from hybridsim.cli.interrupt import StopRequest
from hybridsim.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from hybridsim.experiments.experiment import Experiment

NAMES = Literal["lab_pendulum", "driven_pendulum", "ibm_pendulum"]
GOAL_MISSED = 4
"""Exit code, as of a fit that did not converge."""


def experiment(
    name: Annotated[NAMES, tyro.conf.Positional],
    smoke: bool = False,
    check: bool = False,
    out: Path | None = None,
    json: bool = False,
) -> int:
    """Show a claim on real recordings: fit several models, score them on runs that were not fitted, draw the errors.

    lab_pendulum     a lab's double pendulum: dry friction, air, and a network for the rest
    driven_pendulum  a driven one, whose encoders are zeroed anew before every run
    ibm_pendulum     IBM's chaotic one, seen by a camera that has to be calibrated first

    The recordings are not part of hybridsim; the environment variable HYBRIDSIM_DATA names the folder they are in, and
    docs/experiments.md says where they come from. A run that was stopped goes on where it was, case by case.

    For example:
      hybridsim experiment lab_pendulum
      hybridsim experiment lab_pendulum --smoke        # a few seconds, to see that everything works
      hybridsim experiment lab_pendulum --check        # numbers that were found before, evaluated again

    Args:
        name: of the experiment.
        smoke: fit little of the recordings in a few steps.
        check: evaluate the numbers that come with hybridsim again instead of fitting.
        out: folder for the results; runs/NAME/SETTINGS by default.
        json: print the results as JSON for other programs.
    """
    from importlib import import_module

    from hybridsim.experiments.experiment import checked, run, settings_hash, verdicts

    told: Experiment = import_module(f"hybridsim.experiments.{name}").EXPERIMENT
    if check:
        rows = checked(told)
        if json:
            print_json([row._asdict() for row in rows])
        else:
            cells = [(row.case, row.metric, f"{row.stored:.4g}", f"{row.now:.4g}") for row in rows]
            print_table(("case", "number", "stored", "now"), cells, right=("stored", "now"))
            off = [row for row in rows if not row.agrees]
            say("all agree" if not off else f"{len(off)} of {len(rows)} differ by more than a hundredth")
        return GOAL_MISSED if any(not row.agrees for row in rows) else 0
    folder = out or Path("runs") / name / settings_hash(told, smoke)
    with StopRequest() as stop, FitProgress(quiet=json) as progress:
        results = run(
            told,
            folder,
            smoke=smoke,
            watch=lambda _, step: progress.show(step, None),
            tell=lambda case, found: progress.tell(f"{case}: {found['words']}, {found['ended']}"),
            stop=lambda: stop.given,
        )
    if results is None:
        say("Stopped. The same command goes on with the case that was being fitted.", stderr=True)
        return stop.exit_code
    judged = [] if smoke else verdicts(told, results)
    if json:
        goals = [{"goal": v.goal.words, "most": v.goal.most, "value": v.value, "met": v.met} for v in judged]
        print_json({"results": str(folder / "results.json"), "metrics": results["metrics"], "goals": goals})
    else:
        _show(results, judged)
        say(f"results and pictures: {folder}")
    return 0 if all(verdict.met for verdict in judged) else GOAL_MISSED


def _show(results: dict[str, Any], judged: list[Any]) -> None:
    """Scores of all cases, then goals."""
    cases = results["cases"]
    kinds = list(next(iter(cases.values()))["scores"])
    rows = [(name, *(_cell(case["scores"][kind]) for kind in kinds)) for name, case in cases.items()]
    print_table(("case", *kinds), rows, right=kinds)
    if judged:
        cells = [(v.goal.words, f"≤ {v.goal.most:g}", f"{v.value:.3g}", "yes" if v.met else "no") for v in judged]
        print_table(("goal", "wanted", "found", "met?"), cells, right=("wanted", "found"))


def _cell(score: Any) -> str:
    """A number, or the median and the worst of many [mrad]."""
    return f"{score:.3g}" if isinstance(score, float) else f"{score['median']:.3g} / {score['worst']:.3g} mrad"

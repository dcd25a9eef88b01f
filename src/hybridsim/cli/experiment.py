"""`hybridsim experiment`: reproduce the results on real recordings."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from hybridsim.cli.interrupt import StopRequest
from hybridsim.cli.output import print_json, print_table, say
from hybridsim.project.fit_progress import FitProgress

if TYPE_CHECKING:
    from hybridsim.experiments.study import Study

NAMES = Literal["lab_pendulum", "driven_pendulum", "ibm_pendulum"]
GOAL_MISSED = 4
"""Exit code, the same as that of a fit that did not converge."""


def experiment(
    name: Annotated[NAMES, tyro.conf.Positional],
    smoke: bool = False,
    check: bool = False,
    out: Path | None = None,
    json: bool = False,
) -> int:
    """Reproduce a result on real recordings: fit several models, score them on held-out runs, plot the errors.

    Experiments:
      lab_pendulum     laboratory double pendulum: dry friction, air drag, and a network for the remaining effects
      driven_pendulum  driven double pendulum whose encoders are zeroed before every run
      ibm_pendulum     IBM's chaotic double pendulum, recorded by a camera that is calibrated first

    The recordings are not part of hybridsim; the environment variable HYBRIDSIM_DATA names their folder, and
    docs/experiments.md lists their sources. An interrupted experiment resumes with the first unfinished case.

    For example:
      hybridsim experiment lab_pendulum
      hybridsim experiment lab_pendulum --smoke        # smoke test of a few seconds
      hybridsim experiment lab_pendulum --check        # recomputes the stored scores

    Args:
        name: name of the experiment.
        smoke: fit a small part of the recordings with few steps.
        check: recompute the scores of the stored parameters and compare them with the stored ones, instead of fitting.
        out: output folder; by default runs/NAME/SETTINGS.
        json: print the results as JSON instead of text.
    """
    from importlib import import_module

    from hybridsim.experiments.study import (
        SCORE_TOLERANCE,
        check_stored_scores,
        goal_results,
        run,
        settings_hash,
    )

    definition: Study = import_module(f"hybridsim.experiments.{name}").STUDY
    if check:
        rows = check_stored_scores(definition)
        if json:
            print_json([row._asdict() for row in rows])
        else:
            cells = [(row.case, row.score, f"{row.stored:.4g}", f"{row.recomputed:.4g}") for row in rows]
            print_table(("case", "score", "stored", "recomputed"), cells, right=("stored", "recomputed"))
            different = [row for row in rows if not row.is_reproduced]
            tolerance = f"{100.0 * SCORE_TOLERANCE:g} %"
            say("all agree" if not different else f"{len(different)} of {len(rows)} differ by more than {tolerance}")
        return GOAL_MISSED if any(not row.is_reproduced for row in rows) else 0
    folder = out or Path("runs") / name / settings_hash(definition, smoke)
    with StopRequest() as stop, FitProgress(quiet=json) as progress:
        results = run(
            definition,
            folder,
            smoke=smoke,
            on_step=lambda _, step: progress.show(step, None),
            on_case=lambda case, result: progress.log(f"{case}: {result['description']}, {result['termination']}"),
            stop=lambda: stop.requested,
        )
    if results is None:
        say("Stopped. Run the same command again to resume with the interrupted case.", stderr=True)
        return stop.exit_code
    goal_rows = [] if smoke else goal_results(definition, results)
    if json:
        goals = [
            {"goal": r.goal.description, "limit": r.goal.limit, "value": r.value, "met": r.is_met} for r in goal_rows
        ]
        print_json({"results": str(folder / "results.json"), "metrics": results["metrics"], "goals": goals})
    else:
        _print_results(results, goal_rows)
        say(f"results and figures: {folder}")
    return 0 if all(result.is_met for result in goal_rows) else GOAL_MISSED


def _print_results(results: dict[str, Any], goal_rows: list[Any]) -> None:
    """Print the scores of all cases, then the goals."""
    cases = results["cases"]
    kinds = list(next(iter(cases.values()))["scores"])
    rows = [(name, *(_cell(case["scores"][kind]) for kind in kinds)) for name, case in cases.items()]
    print_table(("case", *kinds), rows, right=kinds)
    if goal_rows:
        cells = [
            (r.goal.description, f"≤ {r.goal.limit:g}", f"{r.value:.3g}", "yes" if r.is_met else "no")
            for r in goal_rows
        ]
        print_table(("goal", "limit", "value", "met"), cells, right=("limit", "value"))


def _cell(score: Any) -> str:
    """A score, or median and maximum of several [mrad]."""
    return f"{score:.3g}" if isinstance(score, float) else f"{score['median']:.3g} / {score['worst']:.3g} mrad"

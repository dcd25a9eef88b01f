"""The result of a fit as plain numbers and words, for `result.json` and the summary page."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from hybridsim.identify.fit import FitResult
from hybridsim.identify.problem import Stage
from hybridsim.identify.score import Score
from hybridsim.networks.weight_name import is_of_network, weight_name
from hybridsim.project.build.task import Task
from hybridsim.project.record.checkpoint import StageEnd
from hybridsim.project.record.manifest import FORMAT
from hybridsim.project.report.comparison import (
    EXPLAINED,
    HELD_OUT,
    TRAINING,
    Comparison,
    by_channel,
    in_noise,
    theta_before,
)

FAR_OFF = 20.0
"""Errors by the noise from which on a model is not one of what was recorded."""
WORSE = 1.01
"""Error after a fit by that before it, from which on it has become worse: less does not show in three digits."""
CONVERGED, NOT_CONVERGED = "converged", "not converged"


def result(
    task: Task,
    fitted: FitResult,
    ends: Mapping[int, StageEnd],
    comparisons: Sequence[Comparison],
    model: dict[str, Any] | None,
) -> dict[str, Any]:
    """What came out of a fit.

    Args:
        task: what was fitted.
        fitted: what was found.
        ends: how the stages ended.
        comparisons: scores before and after.
        model: what was written of the identified model, if it came from a file.
    """
    space, theta = task.problem.space, fitted.theta
    converged = ends[len(task.stages) - 1].verdict.converged
    stages = [_stage(k, stage, ends[k]) for k, stage in enumerate(task.stages)]
    own = space.run_values(theta)
    found = {
        "format": FORMAT,
        "name": task.name,
        "status": CONVERGED if converged else NOT_CONVERGED,
        "words": stages[-1]["words"],
        "stages": stages,
        "labels": list(space.labels),
        "theta": np.asarray(theta).tolist(),
        "parameters": [
            vars(change) for change in space.table(theta) if change.name not in own and not is_of_network(change.name)
        ],
        "of_runs": fitted.of_runs,
        "networks": _networks(task, theta),
        "channels": _channels(task),
        "scores": [score_row(comparison, task.problem.measured.noise) for comparison in comparisons],
        "model": model,
    }
    return found | {"remarks": remarks_on(found)}


def score_row(comparison: Comparison, noise: Mapping[str, float]) -> dict[str, Any]:
    """Scores before and after as plain numbers: by channel in their units, over all in noise."""
    before, after = comparison.before, comparison.after
    channels = {
        name: {"before": old, "after": new}
        for (name, old), new in zip(by_channel(before).items(), by_channel(after).values(), strict=True)
    }
    return {
        "runs": comparison.runs,
        "kind": comparison.kind,
        "seconds": comparison.seconds,
        "windows": len(after.rms) + after.diverged,
        "channels": channels,
        "in_noise": {"before": _spread(before, noise), "after": _spread(after, noise)},
    }


def _spread(score: Score, noise: Mapping[str, float]) -> dict[str, Any]:
    """Errors of windows over all channels, in standard deviations of the noise."""
    errors = in_noise(score, noise)
    found: dict[str, Any] = {"rms": None, "median": None, "worst": None, "diverged": score.diverged}
    if len(errors):
        rms = float(np.sqrt(np.mean(np.square(errors))))
        found |= {"rms": rms, "median": float(np.median(errors)), "worst": float(np.max(errors))}
    return found


def _stage(number: int, stage: Stage, end: StageEnd) -> dict[str, Any]:
    return {
        "stage": number + 1,
        "window": stage.window,
        "starts": stage.starts,
        "loss": stage.loss,
        "solver": stage.solver.name,
        "steps": end.steps,
        "verdict": end.verdict.name.lower(),
        "words": end.verdict.words,
        "cost": end.cost,
    }


def _channels(task: Task) -> dict[str, Any]:
    sensors, noise = task.problem.setup.sensors, task.problem.measured.noise
    return {
        name: {"measures": address, "unit": task.units.get(name, ""), "noise": float(noise[name])}
        for name, address in zip(sensors.names, sensors.addresses, strict=True)
    }


def ways_out(labels: Sequence[str]) -> str:
    """What may be missing in a model in which some numbers are free."""
    free = {label.partition("[")[0] for label in labels}
    others = [name for name in ("joint.armature", "joint.friction", "sensor.delay") if name not in free]
    ways = [f"free {' or '.join(others)}"] if others else []
    ways += [] if "sensor.bias" in free else ['give every run a sensor.bias of its own (per = "run")']
    words = ", ".join([*ways, "or graft a network" if ways else "graft a network"])
    return f"{words[0].upper()}{words[1:]}."


def _networks(task: Task, theta: Float[np.ndarray, " n"]) -> list[dict[str, Any]]:
    """Grafts, and how far their free weights have moved."""
    space, grafts = task.problem.space, task.problem.setup.sim.blueprint.grafts
    moved = np.abs(np.asarray(theta) - theta_before(task.problem))
    weights = list(map(weight_name, space.labels))
    found = []
    for k, graft in enumerate(grafts):
        own = [entry for entry, name in enumerate(weights) if name and name.graft == k]
        found.append(
            {
                "graft": k,
                "inputs": list(graft.inputs),
                "outputs": list(graft.outputs),
                "mode": graft.mode,
                "free_weights": len(own),
                "largest_change": float(moved[own].max()) if own else 0.0,
            }
        )
    return found


def remarks_on(found: dict[str, Any]) -> list[str]:
    """What a user should not overlook."""
    remarks = []
    if found["status"] != CONVERGED:
        remarks.append(f"The fit did not converge: {found['words']}. Its numbers are the best that were found.")
    for row in found["parameters"]:
        if row["at_bound"]:
            bound = f"{row[row['at_bound']]:.6g} {row['unit']}".strip()
            remarks.append(f"{row['name']} ended at its {row['at_bound']} bound, {bound}.")
    for row in found["scores"]:
        left = row["in_noise"]["after"]["rms"]
        if row["runs"] == TRAINING and row["kind"] == EXPLAINED and left is not None and left > FAR_OFF:
            remarks.append(
                f"Even the runs that were fitted are {left:.3g} times the noise off: something is missing in the "
                f"model, and its numbers make up for that. {ways_out(found['labels'])}"
            )
        before, after = row["in_noise"]["before"], row["in_noise"]["after"]
        what = f"the {row['runs']} runs, {row['kind']} over {row['seconds']:.3g} s"
        if after["diverged"]:
            remarks.append(f"{after['diverged']} of {row['windows']} windows diverge after the fit ({what}).")
        if (
            row["runs"] == HELD_OUT
            and None not in (before["rms"], after["rms"])
            and after["rms"] > WORSE * before["rms"]
        ):
            worse = f"{before['rms']:.3g} to {after['rms']:.3g} times the noise"
            remarks.append(f"The fit made the model worse on {what}: from {worse}.")
    if not any(row["runs"] == HELD_OUT for row in found["scores"]):
        remarks.append(
            "No run was held out, so that nothing tells how the model does on runs that it was not fitted to."
        )
    return remarks + list((found["model"] or {}).get("doubts", []))

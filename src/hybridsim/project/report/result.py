"""Result of a fit as JSON data, for `result.json` and the summary page."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from hybridsim.identify.fit import FitResult
from hybridsim.identify.problem import Stage
from hybridsim.identify.score import Score
from hybridsim.networks.weight_name import is_network_weight, parse_weight_name
from hybridsim.project.build.task import Task
from hybridsim.project.record.checkpoint import StageResult
from hybridsim.project.record.manifest import FORMAT
from hybridsim.project.report.comparison import (
    EXPLAINED,
    HELD_OUT,
    TRAINING,
    Comparison,
    normalized_rms,
    rms_by_channel,
    theta_before,
)

LARGE_ERROR = 20.0
"""Error above which a model is considered structurally wrong [standard deviations of the noise]."""
WORSENING_RATIO = 1.01
"""Ratio of the errors after and before a fit above which an increase is reported; smaller ones are rounding errors."""
CONVERGED, NOT_CONVERGED = "converged", "not converged"


def result(
    task: Task,
    fitted: FitResult,
    stage_results: Mapping[int, StageResult],
    comparisons: Sequence[Comparison],
    model: dict[str, Any] | None,
) -> dict[str, Any]:
    """Result of a fit as JSON data.

    Args:
        task: the fit.
        fitted: result of the solver.
        stage_results: results of the stages by index.
        comparisons: scores before and after the fit.
        model: description of the exported model, if it came from a file.
    """
    space, theta = task.problem.space, fitted.theta
    converged = stage_results[len(task.stages) - 1].termination.has_converged
    stages = [_stage(k, stage, stage_results[k]) for k, stage in enumerate(task.stages)]
    per_run = space.run_values(theta)
    report = {
        "format": FORMAT,
        "name": task.name,
        "status": CONVERGED if converged else NOT_CONVERGED,
        "message": stages[-1]["message"],
        "stages": stages,
        "labels": list(space.labels),
        "theta": np.asarray(theta).tolist(),
        "parameters": [
            vars(change)
            for change in space.table(theta)
            if change.name not in per_run and not is_network_weight(change.name)
        ],
        "run_values": fitted.run_values,
        "networks": _networks(task, theta),
        "channels": _channels(task),
        "scores": [score_row(comparison, task.problem.measurements.noise) for comparison in comparisons],
        "model": model,
    }
    return report | {"remarks": remarks_on(report)}


def score_row(comparison: Comparison, noise: Mapping[str, float]) -> dict[str, Any]:
    """Scores before and after as JSON data: by channel in its unit, and over all channels in units of the noise."""
    before, after = comparison.before, comparison.after
    channels = {
        name: {"before": old, "after": new}
        for (name, old), new in zip(rms_by_channel(before).items(), rms_by_channel(after).values(), strict=True)
    }
    return {
        "runs": comparison.runs,
        "kind": comparison.kind,
        "seconds": comparison.seconds,
        "windows": len(after.rms) + after.diverged,
        "channels": channels,
        "normalized": {"before": _error_statistics(before, noise), "after": _error_statistics(after, noise)},
    }


def _error_statistics(score: Score, noise: Mapping[str, float]) -> dict[str, Any]:
    """Errors of windows over all channels, in standard deviations of the noise."""
    errors = normalized_rms(score, noise)
    statistics: dict[str, Any] = {"rms": None, "median": None, "worst": None, "diverged": score.diverged}
    if len(errors):
        rms = float(np.sqrt(np.mean(np.square(errors))))
        statistics |= {"rms": rms, "median": float(np.median(errors)), "worst": float(np.max(errors))}
    return statistics


def _stage(index: int, stage: Stage, stage_result: StageResult) -> dict[str, Any]:
    return {
        "stage": index + 1,
        "window": stage.window,
        "initial_states": stage.initial_states,
        "loss": stage.loss,
        "solver": stage.solver.name,
        "steps": stage_result.steps,
        "termination": stage_result.termination.name.lower(),
        "message": stage_result.termination.message,
        "cost": stage_result.cost,
    }


def _channels(task: Task) -> dict[str, Any]:
    sensors, noise = task.problem.setup.sensors, task.problem.measurements.noise
    return {
        name: {"measures": address, "unit": task.units.get(name, ""), "noise": float(noise[name])}
        for name, address in zip(sensors.names, sensors.addresses, strict=True)
    }


def suggestions(labels: Sequence[str]) -> str:
    """Suggestions for extending a model with given free parameters."""
    free = {label.partition("[")[0] for label in labels}
    fixed = [name for name in ("joint.armature", "joint.friction", "sensor.delay") if name not in free]
    options = [f"free {' or '.join(fixed)}"] if fixed else []
    options += [] if "sensor.bias" in free else ['estimate sensor.bias separately for each run (per = "run")']
    text = ", ".join([*options, "or graft a network" if options else "graft a network"])
    return f"{text[0].upper()}{text[1:]}."


def _networks(task: Task, theta: Float[np.ndarray, " n"]) -> list[dict[str, Any]]:
    """Grafts, with the number and the largest change of their free weights."""
    space, grafts = task.problem.space, task.problem.setup.sim.blueprint.grafts
    change = np.abs(np.asarray(theta) - theta_before(task.problem))
    weights = list(map(parse_weight_name, space.labels))
    rows = []
    for k, graft in enumerate(grafts):
        indices = [index for index, name in enumerate(weights) if name and name.graft == k]
        rows.append(
            {
                "graft": k,
                "inputs": list(graft.inputs),
                "outputs": list(graft.outputs),
                "mode": graft.mode,
                "free_weights": len(indices),
                "largest_change": float(change[indices].max()) if indices else 0.0,
            }
        )
    return rows


def remarks_on(report: dict[str, Any]) -> list[str]:
    """Remarks on a result: lack of convergence, parameters at bounds, large or increased errors, warnings."""
    remarks = []
    if report["status"] != CONVERGED:
        remarks.append(f"The fit did not converge: {report['message']}. The result is the best iterate.")
    for row in report["parameters"]:
        if row["at_bound"]:
            bound = f"{row[row['at_bound']]:.6g} {row['unit']}".strip()
            remarks.append(f"{row['name']} ended at its {row['at_bound']} bound, {bound}.")
    for row in report["scores"]:
        error = row["normalized"]["after"]["rms"]
        if row["runs"] == TRAINING and row["kind"] == EXPLAINED and error is not None and error > LARGE_ERROR:
            remarks.append(
                f"The error of the training runs is {error:.3g} times the noise: the model lacks an effect, for which "
                f"the estimated parameters compensate. {suggestions(report['labels'])}"
            )
        before, after = row["normalized"]["before"], row["normalized"]["after"]
        score = f"{row['runs']} runs, {row['kind']} over {row['seconds']:.3g} s"
        if after["diverged"]:
            remarks.append(f"{after['diverged']} of {row['windows']} windows diverge after the fit ({score}).")
        if (
            row["runs"] == HELD_OUT
            and None not in (before["rms"], after["rms"])
            and after["rms"] > WORSENING_RATIO * before["rms"]
        ):
            increase = f"from {before['rms']:.3g} to {after['rms']:.3g} times the noise"
            remarks.append(f"The fit increased the error of {score}: {increase}.")
    if not any(row["runs"] == HELD_OUT for row in report["scores"]):
        remarks.append("No run was held out, so generalisation of the model cannot be assessed.")
    return remarks + list((report["model"] or {}).get("warnings", []))

"""Result of a fit as JSON data, for `result.json` and the summary page."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from hybridsim.identify.score import Score
from hybridsim.identify.solve import Solution
from hybridsim.identify.solvers.registry import as_solver
from hybridsim.identify.stage import Stage
from hybridsim.identify.task import Task
from hybridsim.networks.weight_name import is_graft_parameter, parse_weight_name
from hybridsim.params.space import ParameterChange
from hybridsim.project.report.comparison import (
    HELD_OUT,
    RECONSTRUCTED,
    TRAINING,
    Comparison,
    normalized_rms,
    rms_by_channel,
    theta_before_fit,
)
from hybridsim.project.run_folder.checkpoint import StageResult
from hybridsim.project.run_folder.manifest import FORMAT
from hybridsim.project.run_folder.write import replace_nonfinite

LARGE_RESIDUAL = 20.0
"""RMS residual above which a model is considered structurally wrong [standard deviations of the noise]."""
WORSENING_RATIO = 1.01
"""Ratio of the residuals after and before a fit above which an increase is reported; smaller increases are negligible.
"""
ESTIMATED, UNDETERMINED, NOT_COMPUTED = "estimated", "undetermined", "not computed"
"""Kinds of standard errors: finite, infinite because the data do not determine the value, or not computed."""
STANDARD_ERROR_LEGEND = (
    "±: standard error; a question mark where the recordings do not determine the value, a dash where none was computed"
)
CONVERGED, NOT_CONVERGED = "converged", "not converged"


def result_json(
    task: Task,
    fitted: Solution,
    stage_results: Mapping[int, StageResult],
    comparisons: Sequence[Comparison],
    standard_errors: Mapping[str, float],
    remarks: Sequence[str] = (),
) -> dict[str, Any]:
    """Result of a fit as JSON data, without the exported model.

    Args:
        task: fit problem, stages and their origin.
        fitted: result of the solver.
        stage_results: results of the stages by index.
        comparisons: scores before and after the fit.
        standard_errors: standard errors of parameters by name: infinite where the data do not determine them, absent
            where they were not computed.
        remarks: further remarks.
    """
    space, theta = task.problem.space, fitted.theta
    converged = stage_results[len(task.stages) - 1].termination.has_converged
    stages = [_stage(k, stage, stage_results[k]) for k, stage in enumerate(task.stages)]
    per_run = space.run_values(theta)
    result = {
        "format": FORMAT,
        "name": task.name,
        "status": CONVERGED if converged else NOT_CONVERGED,
        "message": stages[-1]["message"],
        "stages": stages,
        "labels": list(space.names),
        "theta": np.asarray(theta).tolist(),
        "parameters": [
            vars(change) | _std_fields(change, standard_errors)
            for change in space.table(theta)
            if change.name not in per_run and not is_graft_parameter(change.name)
        ],
        "run_values": fitted.run_values,
        "networks": _networks(task, theta),
        "channels": _channels(task),
        "scores": [score_row(comparison, task.problem.channel_roles.noise) for comparison in comparisons],
        "further_remarks": list(remarks),
    }
    return with_model(result, None)


def with_model(result: Mapping[str, Any], model: dict[str, Any] | None) -> dict[str, Any]:
    """Result with a description of the exported model, if it came from a file, and with all remarks."""
    completed = {**result, "model": model}
    return replace_nonfinite(completed | {"remarks": remarks_on(completed)})


def _std_fields(change: ParameterChange, standard_errors: Mapping[str, float]) -> dict[str, Any]:
    """Standard error of a parameter, if it is finite, and what it means."""
    std = standard_errors.get(change.name)
    if std is None or change.at_bound:
        return {"std": None, "std_kind": NOT_COMPUTED}
    return {"std": std, "std_kind": ESTIMATED} if np.isfinite(std) else {"std": None, "std_kind": UNDETERMINED}


def standard_error_text(row: Mapping[str, Any]) -> str:
    """Standard error of a parameter; a question mark if the data do not determine it, a dash if it was not computed."""
    if row["std_kind"] == ESTIMATED:
        return f"{row['std']:.2g}"
    return "?" if row["std_kind"] == UNDETERMINED else "–"


def score_row(comparison: Comparison, noise: Mapping[str, float]) -> dict[str, Any]:
    """Scores before and after as JSON data: errors by channel in its unit, and residuals over all channels."""
    before, after = comparison.before, comparison.after
    channels = {
        name: {"before": old, "after": new}
        for (name, old), new in zip(rms_by_channel(before).items(), rms_by_channel(after).values(), strict=True)
    }
    return {
        "run_kind": comparison.run_kind,
        "score_kind": comparison.score_kind,
        "duration": comparison.duration,
        "windows": len(after.rms) + after.diverged_count,
        "channels": channels,
        "normalized": {"before": _residual_statistics(before, noise), "after": _residual_statistics(after, noise)},
    }


def score_label(row: Mapping[str, Any]) -> str:
    """Label of a row of scores, for messages."""
    duration = f"{row['duration']:.3g} s"
    if row["score_kind"] == RECONSTRUCTED:
        return f"{row['run_kind']} runs, windows of {duration} with fitted initial states"
    return f"{row['run_kind']} runs, predictions over {duration}"


def _residual_statistics(score: Score, noise: Mapping[str, float]) -> dict[str, Any]:
    """Statistics of the RMS residuals of windows over all channels, in standard deviations of the noise."""
    residuals = normalized_rms(score, noise)
    statistics: dict[str, Any] = {"rms": None, "median": None, "worst": None}
    statistics |= {"diverged": score.diverged_count, "unconverged": score.unconverged_count}
    if len(residuals):
        rms = float(np.sqrt(np.mean(np.square(residuals))))
        statistics |= {"rms": rms, "median": float(np.median(residuals)), "worst": float(np.max(residuals))}
    return statistics


def _stage(index: int, stage: Stage, stage_result: StageResult) -> dict[str, Any]:
    return {
        "stage": index + 1,
        "window": stage.window,
        "initial_states": stage.initial_states,
        "loss": stage.loss,
        "solver": as_solver(stage.solver).name,
        "steps": stage_result.steps,
        "termination": stage_result.termination.name.lower(),
        "message": stage_result.termination.message,
        "cost": stage_result.cost,
    }


def _channels(task: Task) -> dict[str, Any]:
    sensors, noise = task.problem.setup.sensors, task.problem.channel_roles.noise
    return {
        name: {"measures": address, "unit": task.units.get(name, ""), "noise": float(noise[name])}
        for name, address in zip(sensors.names, sensors.addresses, strict=True)
    }


def has_diverged(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the model diverges in every window that was scored."""
    return bool(rows) and all(row["normalized"]["after"]["diverged"] == row["windows"] for row in rows)


def unconverged_windows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A remark on windows whose initial states were not fitted to convergence; none if there are no such windows."""
    found = []
    for row in rows:
        before, after = (row["normalized"][when]["unconverged"] for when in ("before", "after"))
        if before or after:
            found.append(f"{before} before the fit and {after} after it, of {row['windows']} ({score_label(row)})")
    if not found:
        return []
    return [
        "In some windows the fit of the initial states, or of per-run parameters, did not converge, so that their "
        f"residuals may be too large: {'; '.join(found)}."
    ]


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
    change = np.abs(np.asarray(theta) - theta_before_fit(task.problem))
    weights = list(map(parse_weight_name, space.names))
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


def remarks_on(result: dict[str, Any]) -> list[str]:
    """Remarks on a result: lack of convergence, parameters at bounds, large or increased residuals, warnings.

    The unit of residuals is σ, the standard deviation of the noise.
    """
    remarks = list(result["further_remarks"])
    if result["status"] != CONVERGED:
        remarks.append(f"The fit did not converge: {result['message']}. The result is the best iterate.")
    for row in result["parameters"]:
        if row["at_bound"]:
            bound = f"{row[row['at_bound']]:.6g} {row['unit']}".strip()
            remarks.append(f"{row['name']} ended at its {row['at_bound']} bound, {bound}.")
    for row in result["scores"]:
        residual = row["normalized"]["after"]["rms"]
        is_training = row["run_kind"] == TRAINING and row["score_kind"] == RECONSTRUCTED
        if is_training and residual is not None and residual > LARGE_RESIDUAL:
            remarks.append(
                f"The RMS residual of the training runs is {residual:.3g} σ: the model lacks an effect, for which the "
                f"estimated parameters compensate. {suggestions(result['labels'])}"
            )
        before, after = row["normalized"]["before"], row["normalized"]["after"]
        if after["diverged"]:
            remarks.append(
                f"{after['diverged']} of {row['windows']} windows diverge after the fit ({score_label(row)})."
            )
        if (
            row["run_kind"] == HELD_OUT
            and None not in (before["rms"], after["rms"])
            and after["rms"] > WORSENING_RATIO * before["rms"]
        ):
            increase = f"from {before['rms']:.3g} to {after['rms']:.3g} σ"
            remarks.append(f"The fit increased the RMS residual {increase} ({score_label(row)}).")
    remarks += unconverged_windows(result["scores"])
    if result["scores"] and not any(row["run_kind"] == HELD_OUT for row in result["scores"]):
        remarks.append("No run was held out, so generalization of the model cannot be assessed.")
    return remarks + list((result["model"] or {}).get("remarks", []))

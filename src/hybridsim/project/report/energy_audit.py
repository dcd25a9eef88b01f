"""Energy audit of a fitted model: energy that its networks inject and remove in simulations of the recorded runs."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.score import score_windows
from hybridsim.identify.task import Task
from hybridsim.networks.wiring_summary import wiring_summaries
from hybridsim.project.report.comparison import scoring_window
from hybridsim.sim.audit import audit


def energy_audit(task: Task, theta: Float[np.ndarray, " n"]) -> dict[str, Any]:
    """Energy injected and removed by every network, summed over all windows with fitted initial states.

    Windows that diverge are excluded; those whose initial states were not fitted to convergence are counted.

    Args:
        task: fit problem, stages and their origin.
        theta: fitted parameters.

    Raises:
        HybridsimError: there are no networks, or every window diverges.
    """
    problem = task.problem
    runs = (*problem.train, *problem.held_out)
    if not problem.setup.sim.blueprint.grafts:
        raise HybridsimError("the project has no networks to audit")
    scores = score_windows(problem, theta, runs, scoring_window(task.stages[-1]), burn_in=task.stages[-1].burn_in)
    w, ok = scores.objective.windows, np.flatnonzero(scores.ok[0])
    if not len(ok):
        raise HybridsimError("every window diverges; there is no motion to audit")
    layout = scores.objective.layout
    audits = []
    with jax.enable_x64(True):
        for k in ok.tolist():
            sim = problem.space.put(
                problem.setup, layout.recording_theta(scores.point.theta[0], int(w.recording[k]))
            ).sim
            state = sim.initial_state(scores.point.q[0, k], scores.point.qd[0, k], float(w.start[k]))
            audits.append(audit(sim, state, jax.tree.map(lambda x, k=k: x[k], w.inputs)))
    injected, removed = (
        np.sum([np.asarray(getattr(a, key)) for a in audits], axis=0) for key in ("injected", "removed")
    )
    peak_power = np.max([np.asarray(a.power).max(axis=0) for a in audits], axis=0)
    grafts = wiring_summaries(problem.setup.sim.bound_blueprint())
    return {
        "windows": len(ok),
        "diverged": int(w.count - len(ok)),
        "unconverged": scores.scores[0].unconverged_count,
        "duration": float(len(ok) * w.steps * w.dt),
        "energy_change": float(np.sum([np.asarray(a.energy_change) for a in audits])),
        "grafts": [
            {
                "network": graft.kind,
                "outputs": list(graft.outputs),
                "injected": float(injected[k]),
                "removed": float(removed[k]),
                "peak_power": float(peak_power[k]),
            }
            for k, graft in enumerate(grafts)
        ],
    }

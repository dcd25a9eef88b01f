"""The energy audit of a fitted model: what its networks bring into the recorded motions, and take out of them."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.score import score_windows
from hybridsim.networks.wiring_summary import wirings
from hybridsim.project.build.task import Task
from hybridsim.project.report.comparison import judging_window
from hybridsim.sim.audit import audit


def energy_audit(task: Task, theta: Float[np.ndarray, " n"]) -> dict[str, Any]:
    """Follow the windows of all runs, their starts fitted, and add up what every network does.

    Args:
        task: the fit.
        theta: what it found.

    Raises:
        HybridsimError: there are no networks, or every window diverges.
    """
    problem = task.problem
    runs = (*problem.train, *problem.held_out)
    if not problem.setup.sim.blueprint.grafts:
        raise HybridsimError("the project has no networks whose energy could be audited")
    judged = score_windows(problem, theta, runs, judging_window(task.stages[-1]))
    w, ok = judged.objective.windows, np.flatnonzero(judged.ok[0])
    if not len(ok):
        raise HybridsimError("every window diverges; there is no motion to follow")
    layout = judged.objective.layout
    found = []
    with jax.enable_x64(True):
        for k in ok.tolist():
            sim = problem.space.put(problem.setup, layout.of_run(judged.point.theta[0], int(w.run[k]))).sim
            state = sim.initial_state(judged.point.q[0, k], judged.point.qd[0, k], float(w.start[k]))
            found.append(audit(sim, state, jax.tree.map(lambda x, k=k: x[k], w.inputs)))
    injected, removed = (
        np.sum([np.asarray(getattr(one, key)) for one in found], axis=0) for key in ("injected", "removed")
    )
    strongest = np.max([np.asarray(one.power).max(axis=0) for one in found], axis=0)
    grafts = wirings(problem.setup.sim.bound_blueprint())
    return {
        "windows": len(ok),
        "diverged": int(w.count - len(ok)),
        "seconds": float(len(ok) * w.steps * w.dt),
        "gained": float(np.sum([np.asarray(one.energy_change) for one in found])),
        "grafts": [
            {
                "network": graft.kind,
                "outputs": list(graft.outputs),
                "injected": float(injected[k]),
                "removed": float(removed[k]),
                "most_power": float(strongest[k]),
            }
            for k, graft in enumerate(grafts)
        ],
    }

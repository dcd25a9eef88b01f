"""MuJoCo on mechanisms that touch the ground: rollouts in C with its own solver, and central differences of them."""

from benchmarks.contact_workloads import BATCHES, ONE_ITERATION, WORKLOADS, check_end, steps_of
from benchmarks.measure import Row, best, command_line, needs, one_thread, row
from benchmarks.peers.mujoco_differences import ParameterDifferences, Rollouts
from benchmarks.peers.mujoco_reference import model_of
from benchmarks.workloads import Workload, starts

PEER = "MuJoCo"


def measure(w: Workload, batches: tuple[int, ...] = BATCHES) -> list[Row]:
    """Motions with MuJoCo's default solver and with one iteration of it; differences where there are parameters."""
    version = needs("mujoco")
    rows = []
    for method, solver in (("", ""), ("1 iteration", ONE_ITERATION)):
        model = model_of(w, w.parameters, solver)
        for batch in batches:
            steps = steps_of(w, batch)
            run = Rollouts([model], starts(w, batch), steps)
            run()
            about = {"batch": batch, "steps": steps, "method": method}
            note = check_end(w, run.states[0, -1, run.positions])
            rows.append(row(PEER, version, w.name, "forward", best(run), **about, note=note))
    if len(w.parameters):
        differences = ParameterDifferences(w, w.steps)
        about = {"method": "differences", "steps": w.steps, "note": w.parameter_names}
        rows.append(row(PEER, version, w.name, "gradient", best(differences), **about))
    return rows


PARTS = {w.name: lambda w=w: measure(w) for w in WORKLOADS.values()}

if __name__ == "__main__":
    one_thread()
    command_line(__doc__, "benchmarks.peers.mujoco_contact", PARTS)

"""MuJoCo on mechanisms in contact with the ground: rollouts in C with its own solver, and their central differences."""

from benchmarks.contact_workloads import BATCHES, ONE_ITERATION, WORKLOADS, check_final_state, steps_of
from benchmarks.measure import Row, best, command_line, require, row, use_one_thread
from benchmarks.peers.mujoco_differences import ParameterDifferences, Rollouts
from benchmarks.peers.mujoco_reference import model_of
from benchmarks.workloads import Workload, initial_coordinates

PEER = "MuJoCo"


def measure(w: Workload, batches: tuple[int, ...] = BATCHES) -> list[Row]:
    """Rollouts with MuJoCo's default solver and with one iteration; differences if there are parameters."""
    version = require("mujoco")
    rows = []
    for method, solver in (("", ""), ("1 iteration", ONE_ITERATION)):
        model = model_of(w, w.parameters, solver)
        for batch in batches:
            steps = steps_of(w, batch)
            run = Rollouts([model], initial_coordinates(w, batch), steps)
            run()
            about = {"batch": batch, "steps": steps, "method": method}
            note = check_final_state(w, run.states[0, -1, run.positions])
            rows.append(row(PEER, version, w.name, "forward", best(run), **about, note=note))
    if len(w.parameters):
        differences = ParameterDifferences(w, w.steps)
        about = {"method": "differences", "steps": w.steps, "note": w.parameter_names}
        rows.append(row(PEER, version, w.name, "gradient", best(differences), **about))
    return rows


PARTS = {w.name: lambda w=w: measure(w) for w in WORKLOADS.values()}

if __name__ == "__main__":
    use_one_thread()
    command_line(__doc__, "benchmarks.peers.mujoco_contact", PARTS)

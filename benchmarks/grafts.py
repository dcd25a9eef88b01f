"""What a grafted network costs: native steps of a double pendulum and of a quadruped, with and without one.

    python -m benchmarks.grafts                 about a minute
    python -m benchmarks.grafts --json runs/grafts.json

A network of 4→8→8→1 reads two angles and two velocities and changes one torque. Times are of the same process, one
thread, by turns; what counts are the ratios. Gradients are by the parameters of the mechanism and by all weights.
Weights are exchanged between motions, and nothing may be compiled for that.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from benchmarks.measure import best
from benchmarks.ours_models import simulator, step_of
from benchmarks.report import console, show_targets
from benchmarks.targets import Judge
from benchmarks.workloads import BATCH, BATCH_STEPS, W1, W3, Workload
from hybridsim.native.runtime.rollout import Rollout
from hybridsim.networks.mlp import MLP
from hybridsim.sim.rollout import simulate
from hybridsim.taps.blueprint import Blueprint, Graft

MOST = {W1.name: 3.0, W3.name: 0.1}
"""What a network may cost, by a step of the mechanism itself."""
ROUNDS = 3


def blueprint(joints: tuple[str, str]) -> Blueprint:
    """A network on the first of two joints."""
    both = ",".join(joints)
    net = MLP(4, 1, hidden=(8, 8))
    net.weights[-1][:] = 0.01
    return Blueprint(Graft(f"joint.tau[{joints[0]}]", [f"joint.q[{both}]", f"joint.qd[{both}]"], net))


def calls(w: Workload, grafts: Blueprint | None, batch: int) -> dict:
    """A motion and its gradient, by the workload's parameters and by all weights, ready to be timed."""
    step, (fixed, free, carry, inputs) = step_of(w, **({"blueprint": grafts} if grafts else {}))
    if grafts:
        plain_step = step

        def step(fixed, free, carry, torques):
            parameters, weights = free
            return plain_step(eqx.tree_at(_weights, fixed, weights), parameters, carry, torques)

        free = (free, _weights(fixed))
    rollout = Rollout(step, fixed, free, carry, inputs)
    forms, steps = rollout.forms, BATCH_STEPS
    start = np.repeat(forms.carry.pack(carry)[None], batch, axis=0)
    rows = (forms.fixed.pack(fixed), forms.free.pack(free), start, np.zeros((1, steps, forms.inputs.size)))
    ct = (np.zeros((1, forms.carry.size)), np.ones((1, 1, forms.outputs.size)))
    return {
        "motion": rollout.bind_forward(*rows),
        "gradient": rollout.bind_gradient(*rows, *ct),
        "per": batch * steps,
    }


def _weights(sim: Any) -> tuple:
    net = sim.blueprint.grafts[0].net
    return net.weights, net.biases


def compiled_again(w: Workload) -> int:
    """How many kernels are compiled for a motion with other weights, after one with any."""
    sim = simulator(w, blueprint=blueprint(joints_of(w)))[0]
    other = eqx.tree_at(_weights, sim, jax.tree.map(lambda x: x + 0.1, _weights(sim)))
    simulate(sim, sim.initial_state(w.q0), steps=10)
    before = Rollout.compilations
    simulate(other, other.initial_state(w.q0), steps=10)
    return Rollout.compilations - before


def joints_of(w: Workload) -> tuple[str, str]:
    """Two joints of a workload."""
    names = simulator(w)[0].model.topology.dof_names
    return names[-2], names[-1]


def measured(w: Workload, batch: int) -> list[dict]:
    """Times with and without a network."""
    kinds = {"plain": calls(w, None, batch), "grafted": calls(w, blueprint(joints_of(w)), batch)}
    found = []
    for what in ("motion", "gradient"):
        times = {kind: [] for kind in kinds}
        for _ in range(ROUNDS):
            for kind, ready in kinds.items():
                times[kind].append(best(ready[what]).cpu / ready["per"] * 1e9)
        plain, grafted = (min(times[kind]) for kind in kinds)
        found.append({"workload": w.name, "batch": batch, "what": what, "plain": plain, "grafted": grafted})
    return found


def main() -> None:
    """Measure, print, and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=Path("runs/grafts.json"), metavar="FILE", help="%(default)s")
    arguments = parser.parse_args()
    rows = []
    for w in (W1, W3):
        for batch in (1, BATCH):
            with console.status(f"{w.name} ×{batch}"):
                rows += measured(w, batch)
    judge = Judge([])
    for row in rows:
        cost = row["grafted"] / row["plain"] - 1.0
        what = f"{row['workload']} ×{row['batch']}, {row['what']}"
        console.print(f"{what}: {row['plain']:.1f} ns, with a network {row['grafted']:.1f} ns")
        judge.below(f"{what}: a network's cost by that of a step", cost, MOST[row["workload"]], "×")
    for w in (W1, W3):
        judge.below(f"{w.name}: compilations for other weights", compiled_again(w), 1, "")
    targets = judge.found
    show_targets(targets)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({"rows": rows, "targets": targets}, indent=1))
    console.print(f"all numbers: {arguments.json}")


if __name__ == "__main__":
    main()

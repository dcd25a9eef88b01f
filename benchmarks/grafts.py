"""Cost of a grafted network: native steps of a double pendulum and a quadruped, with and without one.

    python -m benchmarks.grafts                 about a minute
    python -m benchmarks.grafts --json runs/grafts.json

A network of 4→8→8→1 maps two angles and two velocities to one torque. Times are measured alternately in the same
process on one thread; only ratios matter. Gradients are with respect to the parameters of the mechanism and all
weights. Changing weights must not trigger a compilation.
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
from benchmarks.targets import TargetChecks
from benchmarks.workloads import BATCH, BATCH_STEPS, W1, W3, Workload
from hybridsim.native.runtime.rollout import Rollout
from hybridsim.networks.mlp import MLP
from hybridsim.sim.rollout import simulate
from hybridsim.taps.blueprint import Blueprint, Graft

MAX_COST = {W1.name: 3.0, W3.name: 0.1}
"""Maximum cost of a network, relative to a step of the mechanism alone."""
ROUNDS = 3


def blueprint(joints: tuple[str, str]) -> Blueprint:
    """A network that acts on the first of two joints."""
    both = ",".join(joints)
    net = MLP(4, 1, hidden=(8, 8))
    net.weights[-1][:] = 0.01
    return Blueprint(Graft(f"joint.tau[{joints[0]}]", [f"joint.q[{both}]", f"joint.qd[{both}]"], net))


def calls(w: Workload, grafts: Blueprint | None, batch: int) -> dict:
    """Calls of a rollout and of its gradient with respect to the workload's parameters and all weights."""
    step, (fixed, free, carry, inputs) = step_of(w, **({"blueprint": grafts} if grafts else {}))
    if grafts:
        plain_step = step

        def step(fixed, free, carry, torques):
            parameters, weights = free
            return plain_step(eqx.tree_at(_weights, fixed, weights), parameters, carry, torques)

        free = (free, _weights(fixed))
    rollout = Rollout(step, fixed, free, carry, inputs)
    layouts, steps = rollout.layouts, BATCH_STEPS
    start = np.repeat(layouts.carry.pack(carry)[None], batch, axis=0)
    rows = (layouts.fixed.pack(fixed), layouts.free.pack(free), start, np.zeros((1, steps, layouts.inputs.size)))
    ct = (np.zeros((1, layouts.carry.size)), np.ones((1, 1, layouts.outputs.size)))
    return {
        "motion": rollout.bind_forward(*rows),
        "gradient": rollout.bind_gradient(*rows, *ct),
        "per": batch * steps,
    }


def _weights(sim: Any) -> tuple:
    net = sim.blueprint.grafts[0].net
    return net.weights, net.biases


def recompilations(w: Workload) -> int:
    """Number of kernels compiled for a rollout with different weights."""
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


def measure(w: Workload, batch: int) -> list[dict]:
    """Times with and without a network."""
    kinds = {"plain": calls(w, None, batch), "grafted": calls(w, blueprint(joints_of(w)), batch)}
    rows = []
    for what in ("motion", "gradient"):
        times = {kind: [] for kind in kinds}
        for _ in range(ROUNDS):
            for kind, variant in kinds.items():
                times[kind].append(best(variant[what]).cpu / variant["per"] * 1e9)
        plain, grafted = (min(times[kind]) for kind in kinds)
        rows.append({"workload": w.name, "batch": batch, "what": what, "plain": plain, "grafted": grafted})
    return rows


def main() -> None:
    """Measure, print and save the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=Path("runs/grafts.json"), metavar="FILE", help="%(default)s")
    arguments = parser.parse_args()
    rows = []
    for w in (W1, W3):
        for batch in (1, BATCH):
            with console.status(f"{w.name} ×{batch}"):
                rows += measure(w, batch)
    checks = TargetChecks([])
    for row in rows:
        cost = row["grafted"] / row["plain"] - 1.0
        what = f"{row['workload']} ×{row['batch']}, {row['what']}"
        console.print(f"{what}: {row['plain']:.1f} ns, with a network {row['grafted']:.1f} ns")
        checks.below(f"{what}: cost of a network relative to a step", cost, MAX_COST[row["workload"]], "×")
    for w in (W1, W3):
        checks.below(f"{w.name}: compilations for different weights", recompilations(w), 1, "")
    targets = checks.results
    show_targets(targets)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({"rows": rows, "targets": targets}, indent=1))
    console.print(f"all results: {arguments.json}")


if __name__ == "__main__":
    main()

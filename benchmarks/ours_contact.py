"""hybridsim's native code on mechanisms in contact with the ground, one thread, arrays prepared.

A reverse sweep gives the gradient with respect to the workload's parameters, the initial state and the torque at every
step. Impulse contact with its default number of sweeps, with the number with which the tests of stacks and of standing
pass, and with one; and compliant contact.
"""

import numpy as np

from benchmarks.contact_workloads import (
    BATCHES,
    TESTED_SWEEPS,
    WORKLOADS,
    check_final_state,
    gradient_variables,
    steps_of,
)
from benchmarks.measure import Row, best, command_line, require, row, use_one_thread
from benchmarks.ours import PEER, Motion, prepare
from benchmarks.workloads import Workload

CHECKED_STEPS = {"five links": 500, "cube": 200}
"""Steps after which gradients are compared with differences, such that contacts have occurred; by default all."""
EPSILON = 1e-7
"""Step of finite differences of velocities [m/s, rad/s]."""


def models() -> dict[str, dict]:
    """Contact models for rollouts and for gradients, by name in the table."""
    from hybridsim import CompliantContact, ImpulseContact

    names = {TESTED_SWEEPS: f"{TESTED_SWEEPS} sweeps", ImpulseContact().sweeps: "default sweeps", 1: "1 sweep"}
    implicit = {name: ImpulseContact(gradient="implicit", sweeps=sweeps) for sweeps, name in names.items()}
    forward = {f"impulse, {name}": contact for name, contact in implicit.items()}
    gradient = {f"implicit, {name}": contact for name, contact in implicit.items()}
    forward["compliant"] = gradient["compliant"] = CompliantContact()
    gradient[f"unrolled, {names[TESTED_SWEEPS]}"] = ImpulseContact(sweeps=TESTED_SWEEPS)
    return {"forward": forward, "gradient": gradient}


def gradient_error(w: Workload, contact) -> float:
    """Error of the gradient with respect to initial velocities, relative to its largest entry, by central differences.

    Initial velocities are nonzero, so that contacts slip.
    """
    motion = Motion(w, 1, CHECKED_STEPS.get(w.name, w.steps), contact=contact)
    velocities = slice(w.nq, w.nq + w.nv)
    motion.start[:, velocities] = np.random.default_rng(0).normal(0.0, 0.3, w.nv)
    rollout = motion.rollout()
    gradient = motion.reverse(rollout)().initial[0, velocities]
    motion.start = np.repeat(motion.start, 2 * w.nv, axis=0)
    motion.start[:, velocities] += EPSILON * np.concatenate([np.eye(w.nv), -np.eye(w.nv)])
    plus, minus = np.split(motion.forward(rollout)().outputs.sum(axis=(1, 2)), 2)
    expected = (plus - minus) / (2.0 * EPSILON)
    return float(np.max(np.abs(gradient - expected)) / np.max(np.abs(expected)))


def measure(w: Workload, batches: tuple[int, ...] = BATCHES) -> list[Row]:
    """Rollouts and gradients of one trajectory and of batches."""
    version = require("hybridsim", "jax", "llvmlite")
    rows = []
    for what, contacts in models().items():
        for method, contact in contacts.items():
            summary = f"; error {gradient_error(w, contact):.0e} in {CHECKED_STEPS.get(w.name, w.steps)} steps"
            for batch in batches:
                steps = steps_of(w, batch)
                motion = Motion(w, batch, steps, contact=contact)
                bind = motion.reverse if what == "gradient" else motion.forward
                call, compile_s, cached_s = prepare(motion.rollout, bind)
                result = call()
                note = (
                    check_final_state(w, result.end[0, : w.nq])
                    if what == "forward"
                    else gradient_variables(w) + summary
                )
                if what == "gradient" and not all(np.isfinite(x).all() for x in (result.initial, result.inputs)):
                    raise ValueError(f"{w.title}, {method}: the gradient is not finite")
                about = {"batch": batch, "steps": steps, "compile_s": compile_s, "cached_s": cached_s, "note": note}
                rows.append(row(PEER, version, w.name, what, best(call), method=method, **about))
    return rows


PARTS = {w.name: lambda w=w: measure(w) for w in WORKLOADS.values()}

if __name__ == "__main__":
    use_one_thread()
    command_line(__doc__, "benchmarks.ours_contact", PARTS)

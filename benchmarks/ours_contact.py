"""hybridsim's native code on mechanisms that touch the ground, one thread, arrays ready.

A reverse sweep gives the gradient with respect to the workload's parameters, the starting state and the torque at every
step. Impulse contact with its default number of sweeps, with those that the tests of stacks and of standing pass with,
and with one; compliant contact beside it.
"""

import numpy as np

from benchmarks.contact_workloads import BATCHES, TESTED_SWEEPS, WORKLOADS, check_end, steps_of, wanted
from benchmarks.measure import Row, best, command_line, needs, one_thread, row
from benchmarks.ours import PEER, Motion, prepared
from benchmarks.workloads import Workload

CHECKED_STEPS = {"five links": 500, "cube": 200}
"""Steps after which gradients are compared with differences, so that all have been in contact; else all of them."""
SMALL = 1e-7
"""Of differences, by velocities [m/s, rad/s]."""


def models() -> dict[str, dict]:
    """Contact models for motions and for gradients, by their names in the table."""
    from hybridsim import CompliantContact, ImpulseContact

    names = {TESTED_SWEEPS: f"{TESTED_SWEEPS} sweeps", ImpulseContact().sweeps: "default sweeps", 1: "1 sweep"}
    implicit = {name: ImpulseContact(gradient="implicit", sweeps=sweeps) for sweeps, name in names.items()}
    forward = {f"impulse, {name}": contact for name, contact in implicit.items()}
    gradient = {f"implicit, {name}": contact for name, contact in implicit.items()}
    forward["compliant"] = gradient["compliant"] = CompliantContact()
    gradient[f"unrolled, {names[TESTED_SWEEPS]}"] = ImpulseContact(sweeps=TESTED_SWEEPS)
    return {"forward": forward, "gradient": gradient}


def error(w: Workload, contact) -> float:
    """Of the gradient with respect to the starting velocities, by central differences, relative to the largest entry.

    The mechanism starts in motion, so that contacts slip.
    """
    motion = Motion(w, 1, CHECKED_STEPS.get(w.name, w.steps), contact=contact)
    velocities = slice(w.nq, w.nq + w.nv)
    motion.start[:, velocities] = np.random.default_rng(0).normal(0.0, 0.3, w.nv)
    rollout = motion.rollout()
    found = motion.reverse(rollout)().initial[0, velocities]
    motion.start = np.repeat(motion.start, 2 * w.nv, axis=0)
    motion.start[:, velocities] += SMALL * np.concatenate([np.eye(w.nv), -np.eye(w.nv)])
    plus, minus = np.split(motion.forward(rollout)().outputs.sum(axis=(1, 2)), 2)
    expected = (plus - minus) / (2.0 * SMALL)
    return float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))


def measure(w: Workload, batches: tuple[int, ...] = BATCHES) -> list[Row]:
    """Motions and gradients of one trajectory and of batches."""
    version = needs("hybridsim", "jax", "llvmlite")
    rows = []
    for what, contacts in models().items():
        for method, contact in contacts.items():
            off = f"; off by {error(w, contact):.0e} in {CHECKED_STEPS.get(w.name, w.steps)} steps"
            for batch in batches:
                steps = steps_of(w, batch)
                motion = Motion(w, batch, steps, contact=contact)
                bind = motion.reverse if what == "gradient" else motion.forward
                call, compile_s, cached_s = prepared(motion.rollout, bind)
                result = call()
                note = check_end(w, result.end[0, : w.nq]) if what == "forward" else wanted(w) + off
                if what == "gradient" and not all(np.isfinite(x).all() for x in (result.initial, result.inputs)):
                    raise ValueError(f"{w.title}, {method}: the gradient is not finite")
                about = {"batch": batch, "steps": steps, "compile_s": compile_s, "cached_s": cached_s, "note": note}
                rows.append(row(PEER, version, w.name, what, best(call), method=method, **about))
    return rows


PARTS = {w.name: lambda w=w: measure(w) for w in WORKLOADS.values()}

if __name__ == "__main__":
    one_thread()
    command_line(__doc__, "benchmarks.ours_contact", PARTS)

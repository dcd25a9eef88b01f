"""Targets of the contact benchmark, and whether the measured rows meet them."""

from collections.abc import Sequence

from benchmarks.contact_workloads import FIVE_LINKS, QUADRUPED, TESTED_SWEEPS
from benchmarks.measure import Row
from benchmarks.targets import NATIVE, TargetChecks, fastest

TDS_FORWARD = 320.0
"""Five links on the ground in generated C code of the Tiny Differentiable Simulator, per step [ns]: 1.6 ms for 5000
steps with one iteration; not measured in this run, but on other machines."""
TDS_GRADIENT = 6600.0
"""Its gradient, per step [ns]: the faster of 33 and 53 ms."""


def ours(
    rows: Sequence[Row],
    workload: str,
    what: str,
    batch: int = 1,
    gradient: str = "unrolled",
    sweeps: str = f"{TESTED_SWEEPS} sweeps",
) -> Row | None:
    """Row of impulse contact; the unrolled gradient is exact, the implicit one is inexact with few sweeps."""
    model = "impulse" if what == "forward" else gradient
    return fastest(rows, NATIVE, workload, what, batch, f"{model}, {sweeps}")


def evaluate(rows: Sequence[Row]) -> list[dict]:
    """All targets, as dictionaries: target, required, measured, unit, met (None if not measured)."""
    checks = TargetChecks(rows)
    name = "five links on the ground"
    forward, gradient = ours(rows, FIVE_LINKS.name, "forward"), ours(rows, FIVE_LINKS.name, "gradient")
    checks.at_least(f"{name}, forward: faster than TDS's code", forward and TDS_FORWARD / forward.per_step_ns, 1)
    slower = ours(rows, FIVE_LINKS.name, "forward", sweeps="default sweeps")
    checks.report(
        f"{name}, default sweeps, forward: faster than TDS's code", slower and TDS_FORWARD / slower.per_step_ns
    )
    checks.at_least(f"{name}, gradient: faster than TDS's code", gradient and TDS_GRADIENT / gradient.per_step_ns, 5)
    implicit = ours(rows, FIVE_LINKS.name, "gradient", gradient="implicit")
    checks.report(
        f"{name}, implicit gradient: faster than TDS's code", implicit and TDS_GRADIENT / implicit.per_step_ns
    )
    name = "quadruped on four feet"
    for what, peer, batch, bound in (
        ("forward", "MuJoCo", 1, 3),
        ("forward", "MJX", 1, 10),
        ("forward", "MuJoCo", 1024, 8),
        ("forward", "MJX", 1024, 20),
        ("gradient", "MJX", 1, 30),
        ("gradient", "MJX", 64, 40),
    ):
        mine, theirs = ours(rows, QUADRUPED.name, what, batch), fastest(rows, peer, QUADRUPED.name, what, batch)
        ratio = mine and theirs and theirs.per_step_ns / mine.per_step_ns
        checks.at_least(f"{name}, {what} ×{batch}: faster than {peer}", ratio, bound)
        if what == "gradient":
            mine = ours(rows, QUADRUPED.name, what, batch, "implicit")
            ratio = mine and theirs and theirs.per_step_ns / mine.per_step_ns
            checks.report(f"{name}, implicit gradient ×{batch}: faster than {peer}", ratio)
    gradient = ours(rows, QUADRUPED.name, "gradient")
    checks.below(f"{name}, gradient: compile time", gradient and gradient.compile_s, 15, "s")
    return checks.results

"""Targets of the gradient benchmark, and whether the measured rows meet them."""

import math
from collections.abc import Sequence

from benchmarks.measure import Row

NATIVE = "hybridsim native"
CASADI = "CasADi C"
BY_HAND = "CasADi C by hand"


def fastest(rows: Sequence[Row], peer: str, workload: str, what: str, batch: int = 1, method: str = "") -> Row | None:
    """The fastest row of a peer whose method begins with `method`."""
    candidates = [
        r
        for r in rows
        if (r.peer, r.workload, r.what, r.batch) == (peer, workload, what, batch) and r.method.startswith(method)
    ]
    return min(candidates, key=lambda r: r.per_step_ns, default=None)


class TargetChecks:
    """Collects targets with their measured values; None if not measured."""

    def __init__(self, rows: Sequence[Row]):
        self.rows, self.results = rows, []

    def ours(self, workload: str, what: str, batch: int = 1) -> Row | None:
        return fastest(self.rows, NATIVE, workload, what, batch, "reverse" if what == "gradient" else "")

    def at_least(self, name: str, value: float | None, bound: float, goal: float | None = None) -> None:
        """Add a lower bound on a ratio."""
        met = None if value is None else value >= bound
        required = f"≥ {bound:g}×" + (f", goal {goal:g}×" if goal else "")
        self._add(name, required, value, "×", met)

    def below(self, name: str, value: float | None, bound: float, unit: str) -> None:
        """Add an upper bound on a quantity."""
        self._add(name, f"< {bound:g} {unit}".rstrip(), value, unit, None if value is None else value < bound)

    def report(self, name: str, value: float | None) -> None:
        """Add a ratio without a target, for information."""
        self._add(name, "none", value, "×", None)

    def _add(self, name: str, required: str, value: float | None, unit: str, met: bool | None) -> None:
        self.results.append({"target": name, "required": required, "measured": value, "unit": unit, "met": met})

    def faster_than(self, peer: str, workload: str, what: str, batch: int = 1, of_peer: str | None = None):
        """Time of the fastest method of a peer divided by ours."""
        ours, theirs = self.ours(workload, what, batch), fastest(self.rows, peer, workload, of_peer or what, batch)
        return None if ours is None or theirs is None else theirs.per_step_ns / ours.per_step_ns


def evaluate(rows: Sequence[Row]) -> list[dict]:
    """All targets, as dictionaries: target, required, measured, unit, met (None if not measured)."""
    checks = TargetChecks(rows)
    _double_pendulum(checks)
    _five_links(checks)
    _quadruped(checks)
    _chain(checks)
    _network(checks)
    return checks.results


def _double_pendulum(checks: TargetChecks) -> None:
    name = "double pendulum, gradient"
    for batch, bound, goal in ((1, 1.3, 2), (1024, 6, 8)):
        ratio = checks.faster_than(CASADI, "W1", "gradient", batch)
        checks.at_least(f"{name} ×{batch}: faster than {CASADI}", ratio, bound, goal)
        checks.report(f"{name} ×{batch}: faster than {BY_HAND}", checks.faster_than(BY_HAND, "W1", "gradient", batch))
    for peer in ("MJX", "Brax"):
        for batch in (1, 1024):
            ratio = checks.faster_than(peer, "W1", "gradient", batch)
            checks.at_least(f"{name} ×{batch}: faster than {peer}'s fastest mode", ratio, 100, 200)
    row = checks.ours("W1", "gradient")
    checks.below(f"{name}: compile time", row and row.compile_s, 1.5, "s")
    checks.below(f"{name}: loading the kernel from disk", row and row.cached_s, 0.2, "s")
    for method, bound in (("nothing on disk", 1.5), ("code on disk", 0.2)):
        row = fastest(checks.rows, NATIVE, "W1", "first gradient", method=method)
        checks.below(f"{name}: first call of jit(grad) in a process, {method}", row and row.seconds, bound, "s")


def _five_links(checks: TargetChecks) -> None:
    name = "five links, gradient"
    row = checks.ours("W2", "gradient", 1024)
    checks.below(f"{name} ×1024, per step", row and row.per_step_ns, 150, "ns")
    checks.at_least(f"{name} ×1024: faster than {CASADI}", checks.faster_than(CASADI, "W2", "gradient", 1024), 5)
    checks.report(f"{name} ×1024: faster than {BY_HAND}", checks.faster_than(BY_HAND, "W2", "gradient", 1024))
    checks.below(f"{name}: compile time", row and row.compile_s, 3, "s")


def _quadruped(checks: TargetChecks) -> None:
    forward, reverse = checks.ours("W3", "forward"), checks.ours("W3", "gradient")
    checks.below("quadruped, forward, per step", forward and 1e-3 * forward.per_step_ns, 1.5, "µs")
    checks.below("quadruped, gradient, per step", reverse and 1e-3 * reverse.per_step_ns, 6, "µs")
    ratio = checks.faster_than("Pinocchio", "W3", "value")
    checks.at_least("quadruped, forward dynamics: faster than Pinocchio's ABA", ratio, 2)
    checks.below("quadruped, gradient: compile time", reverse and reverse.compile_s, 10, "s")
    checks.report(f"quadruped, gradient: faster than {CASADI}", checks.faster_than(CASADI, "W3", "gradient"))
    checks.report(f"quadruped, gradient: faster than {BY_HAND}", checks.faster_than(BY_HAND, "W3", "gradient"))


def _chain(checks: TargetChecks) -> None:
    short, long = checks.ours("W4-32", "vjp"), checks.ours("W4-128", "vjp")
    both = short is not None and long is not None
    run_exponent = math.log(long.per_step_ns / short.per_step_ns, 4) if both else None
    compile_exponent = math.log(long.compile_s / short.compile_s, 4) if both else None
    # 1 is linear, 2 quadratic; long code also exceeds the caches, which is not a property of the algorithm
    checks.below("chain, vjp: exponent of run time from 32 to 128 links", run_exponent, 1.3, "")
    checks.below("chain, vjp: exponent of compile time", compile_exponent, 1.3, "")
    for n in (32, 128):
        checks.at_least(f"chain of {n}, vjp: faster than {CASADI}", checks.faster_than(CASADI, f"W4-{n}", "vjp"), 1)
        checks.report(f"chain of {n}, vjp: faster than {BY_HAND}", checks.faster_than(BY_HAND, f"W4-{n}", "vjp"))


def _network(checks: TargetChecks) -> None:
    products = {what: fastest(checks.rows, "NumPy products", "network", what, 64) for what in ("value", "gradient")}
    for what, theirs in products.items():
        ours = fastest(checks.rows, NATIVE, "network", what, 64)
        ratio = None if ours is None or theirs is None else ours.per_step_ns / theirs.per_step_ns
        name = f"network 41–192–192–12 ×64, {what}: time relative to NumPy's matrix products"
        if what == "value":
            checks.below(name, ratio, 1.5, "×")
        else:
            checks.report(name, ratio)

"""What the benchmark is to show: targets, and whether the measured rows meet them."""

import math
from collections.abc import Sequence

from benchmarks.measure import Row

NATIVE = "hybridsim native"
CASADI = "CasADi C"
BY_HAND = "CasADi C by hand"


def fastest(rows: Sequence[Row], peer: str, workload: str, what: str, batch: int = 1, method: str = "") -> Row | None:
    """The fastest row of a peer; `method` is how its method must begin."""
    found = [
        r
        for r in rows
        if (r.peer, r.workload, r.what, r.batch) == (peer, workload, what, batch) and r.method.startswith(method)
    ]
    return min(found, key=lambda r: r.per_step_ns, default=None)


class Judge:
    """Collects targets with what was measured; None stands for what was not measured."""

    def __init__(self, rows: Sequence[Row]):
        self.rows, self.found = rows, []

    def ours(self, workload: str, what: str, batch: int = 1) -> Row | None:
        return fastest(self.rows, NATIVE, workload, what, batch, "reverse" if what == "gradient" else "")

    def at_least(self, name: str, value: float | None, bound: float, goal: float | None = None) -> None:
        """A ratio that should be large."""
        met = None if value is None else value >= bound
        wanted = f"≥ {bound:g}×" + (f", goal {goal:g}×" if goal else "")
        self._add(name, wanted, value, "×", met)

    def below(self, name: str, value: float | None, bound: float, unit: str) -> None:
        """A quantity that should be small."""
        self._add(name, f"< {bound:g} {unit}".rstrip(), value, unit, None if value is None else value < bound)

    def told(self, name: str, value: float | None) -> None:
        """A ratio that has no target but belongs beside those that do."""
        self._add(name, "none", value, "×", None)

    def _add(self, name: str, wanted: str, value: float | None, unit: str, met: bool | None) -> None:
        self.found.append({"target": name, "wanted": wanted, "measured": value, "unit": unit, "met": met})

    def faster_than(self, peer: str, workload: str, what: str, batch: int = 1, of_peer: str | None = None):
        """How many times longer the fastest method of a peer takes than ours."""
        ours, theirs = self.ours(workload, what, batch), fastest(self.rows, peer, workload, of_peer or what, batch)
        return None if ours is None or theirs is None else theirs.per_step_ns / ours.per_step_ns


def evaluated(rows: Sequence[Row]) -> list[dict]:
    """All targets, as dictionaries: target, wanted, measured, unit, met (None where it was not measured)."""
    judge = Judge(rows)
    _double_pendulum(judge)
    _five_links(judge)
    _quadruped(judge)
    _chain(judge)
    _network(judge)
    return judge.found


def _double_pendulum(judge: Judge) -> None:
    name = "double pendulum, gradient"
    for batch, bound, goal in ((1, 1.3, 2), (1024, 6, 8)):
        ratio = judge.faster_than(CASADI, "W1", "gradient", batch)
        judge.at_least(f"{name} ×{batch}: faster than {CASADI}", ratio, bound, goal)
        judge.told(f"{name} ×{batch}: faster than {BY_HAND}", judge.faster_than(BY_HAND, "W1", "gradient", batch))
    for peer in ("MJX", "Brax"):
        for batch in (1, 1024):
            ratio = judge.faster_than(peer, "W1", "gradient", batch)
            judge.at_least(f"{name} ×{batch}: faster than {peer}'s fastest mode", ratio, 100, 200)
    row = judge.ours("W1", "gradient")
    judge.below(f"{name}: compile", row and row.compile_s, 1.5, "s")
    judge.below(f"{name}: code from disk", row and row.cached_s, 0.2, "s")
    for method, bound in (("nothing on disk", 1.5), ("code on disk", 0.2)):
        row = fastest(judge.rows, NATIVE, "W1", "first gradient", method=method)
        judge.below(f"{name}: first call of jit(grad) in a process, {method}", row and row.seconds, bound, "s")


def _five_links(judge: Judge) -> None:
    name = "five links, gradient"
    row = judge.ours("W2", "gradient", 1024)
    judge.below(f"{name} ×1024, per step", row and row.per_step_ns, 150, "ns")
    judge.at_least(f"{name} ×1024: faster than {CASADI}", judge.faster_than(CASADI, "W2", "gradient", 1024), 5)
    judge.told(f"{name} ×1024: faster than {BY_HAND}", judge.faster_than(BY_HAND, "W2", "gradient", 1024))
    judge.below(f"{name}: compile", row and row.compile_s, 3, "s")


def _quadruped(judge: Judge) -> None:
    forward, reverse = judge.ours("W3", "forward"), judge.ours("W3", "gradient")
    judge.below("quadruped, forward, per step", forward and 1e-3 * forward.per_step_ns, 1.5, "µs")
    judge.below("quadruped, gradient, per step", reverse and 1e-3 * reverse.per_step_ns, 6, "µs")
    ratio = judge.faster_than("Pinocchio", "W3", "value")
    judge.at_least("quadruped, forward dynamics: faster than Pinocchio's ABA", ratio, 2)
    judge.below("quadruped, gradient: compile", reverse and reverse.compile_s, 10, "s")
    judge.told(f"quadruped, gradient: faster than {CASADI}", judge.faster_than(CASADI, "W3", "gradient"))
    judge.told(f"quadruped, gradient: faster than {BY_HAND}", judge.faster_than(BY_HAND, "W3", "gradient"))


def _chain(judge: Judge) -> None:
    short, long = judge.ours("W4-32", "vjp"), judge.ours("W4-128", "vjp")
    both = short is not None and long is not None
    run = math.log(long.per_step_ns / short.per_step_ns, 4) if both else None
    compiling = math.log(long.compile_s / short.compile_s, 4) if both else None
    # 1 is linear, 2 quadratic; long code also leaves the caches, which is no property of the algorithm
    judge.below("chain, vjp: time grows from 32 to 128 links with the power", run, 1.3, "")
    judge.below("chain, vjp: compile time grows with the power", compiling, 1.3, "")
    for n in (32, 128):
        judge.at_least(f"chain of {n}, vjp: faster than {CASADI}", judge.faster_than(CASADI, f"W4-{n}", "vjp"), 1)
        judge.told(f"chain of {n}, vjp: faster than {BY_HAND}", judge.faster_than(BY_HAND, f"W4-{n}", "vjp"))


def _network(judge: Judge) -> None:
    products = {what: fastest(judge.rows, "NumPy products", "network", what, 64) for what in ("value", "gradient")}
    for what, theirs in products.items():
        ours = fastest(judge.rows, NATIVE, "network", what, 64)
        ratio = None if ours is None or theirs is None else ours.per_step_ns / theirs.per_step_ns
        name = f"network 41–192–192–12 ×64, {what}: time over that of NumPy's products"
        if what == "value":
            judge.below(name, ratio, 1.5, "×")
        else:
            judge.told(name, ratio)

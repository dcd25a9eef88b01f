"""Terminal output of the benchmarks: progress, a table of ratios, and the targets."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table

from benchmarks.contact_workloads import TESTED_SWEEPS
from benchmarks.measure import Row
from benchmarks.targets import NATIVE

console = Console(width=None if sys.stdout.isatty() else 120)
REFERENCE_METHODS = ("", "reverse", f"impulse, {TESTED_SWEEPS} sweeps", f"unrolled, {TESTED_SWEEPS} sweeps")
"""Methods of hybridsim that others are compared with."""
TITLES = {
    "5a": "175-parameter network",
    "W1": "double pendulum",
    "W2": "five-link pendulum",
    "W3": "quadruped",
    "five links": "five-link pendulum on the ground",
    "network": "network 41–192–192–12",
    "W1 threads": "double pendulum, wall time by threads",
    "W2 threads": "five-link pendulum, wall time by threads",
}


@contextlib.contextmanager
def progress(peer: str, parts: Sequence[str]) -> Iterator[Callable[[str], None]]:
    """Show what is being measured; yields a function to call after each part."""
    start = time.perf_counter()
    remaining = list(parts)
    with console.status(f"{peer}: {remaining[0]}") as status:

        def done(part: str) -> None:
            remaining.remove(part)
            console.print(f"{peer}: {part} after {time.perf_counter() - start:.0f} s", style="dim")
            if remaining:
                status.update(f"{peer}: {remaining[0]}")

        yield done


def duration(ns: float) -> str:
    """A time with three digits and a suitable unit."""
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= factor:
            return f"{ns / factor:.3g} {unit}"
    return f"{ns:.3g} ns"


def label(r: Row) -> str:
    """Peer and method."""
    return f"{r.peer}, {r.method}" if r.method else r.peer


def groups(rows: Sequence[Row]) -> Iterator[tuple[tuple, list[Row], Row | None]]:
    """Comparable rows, fastest first, with the row of hybridsim that the others are compared with."""

    def key(r: Row):
        return r.workload, r.what, r.batch

    for group, members in groupby(sorted(rows, key=key), key):
        ordered = sorted(members, key=lambda r: r.per_step_ns)
        ours = [r for r in ordered if r.peer == NATIVE and r.threads == 1]
        default = (r for r in ours if r.method in REFERENCE_METHODS)
        yield group, ordered, next(default, ours[0] if ours else None)


def show(rows: Sequence[Row], failed: dict[str, str], targets: Sequence[dict]) -> None:
    """Print all results."""
    table = Table(title="time per step and trajectory, or per call; ratio to hybridsim's native code")
    for column in ("what", "who"):
        table.add_column(column)
    for column in ("time", "ratio", "compile time"):
        table.add_column(column, justify="right")
    for (workload, what, batch), members, ours in groups(rows):
        title = f"{TITLES.get(workload, workload.replace('W4-', 'chain of '))}, {what} ×{batch}"
        for r in members:
            spread = f" … {duration(r.slowest_ns)}" if r.slowest_ns and r.slowest_ns > 1.05 * r.per_step_ns else ""
            ratio = f"{r.per_step_ns / ours.per_step_ns:.3g}" if ours else ""
            compiled = "" if r.compile_s is None else f"{r.compile_s:.2f} s"
            who = label(r) + (f", {r.threads} threads" if r.threads > 1 else "")
            style = "bold" if r.peer.startswith("hybridsim") else None
            table.add_row(title, who, duration(r.per_step_ns) + spread, ratio, compiled, style=style)
            title = ""
        table.add_section()
    console.print(table)
    show_targets(targets)
    for peer, message in failed.items():
        console.print(f"{peer}: {message}", style="yellow", markup=False)


def show_targets(targets: Sequence[dict]) -> None:
    """Print targets and measured values."""
    table = Table(title="targets")
    for column in ("target", "required", "measured", "met"):
        table.add_column(column)
    for t in (t for t in targets if t["measured"] is not None):
        table.add_row(t["target"], t["required"], value(t), {True: "yes", False: "NO", None: ""}[t["met"]])
    console.print(table)
    if missing := sum(t["measured"] is None for t in targets):
        console.print(f"{missing} targets were not measured")


def value(target: dict) -> str:
    """Measured value of a target, as text."""
    measured = target["measured"]
    return "" if measured is None else f"{measured:.3g} {target['unit']}".replace(" ×", "×").strip()

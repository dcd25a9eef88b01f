"""Figure of the contact benchmark: time per step over the batch size."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks.contact_workloads import BATCHES, CUBE, FIVE_LINKS, QUADRUPED, QUADRUPED_17, TESTED_SWEEPS
from benchmarks.figure import GREY, OURS, OURS_XLA
from benchmarks.measure import Row
from benchmarks.report import duration
from benchmarks.targets import NATIVE

TITLES = {
    FIVE_LINKS.name: "five links",
    CUBE.name: "cube",
    QUADRUPED.name: "quadruped, 4 contacts",
    QUADRUPED_17.name: "quadruped, 17 contacts",
}
STYLES = {
    (NATIVE, f"impulse, {TESTED_SWEEPS} sweeps"): ("hybridsim, impulse", OURS, "o", "-"),
    (NATIVE, f"unrolled, {TESTED_SWEEPS} sweeps"): ("hybridsim, impulse", OURS, "o", "-"),
    (NATIVE, f"implicit, {TESTED_SWEEPS} sweeps"): ("hybridsim, impulse, implicit gradient", OURS, "o", ":"),
    (NATIVE, "compliant"): ("hybridsim, compliant", OURS_XLA, "o", "-"),
    ("MuJoCo", ""): ("MuJoCo", "#3c4650", "s", "-"),
    ("MuJoCo", "differences"): ("MuJoCo, differences", "#3c4650", "s", ":"),
    ("MJX", "1 iteration"): ("MJX, 1 iteration", "#6f7b87", "^", "-"),
    ("Brax", ""): ("Brax", GREY, "v", "-"),
}
"""Name, colour, marker and line style by peer and method."""


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw all rows; panels without rows are empty."""
    figure = Figure(figsize=(13.5, 6.6), layout="constrained")
    axes = figure.subplots(2, 4, sharex=True, sharey="row", squeeze=False)
    names: dict[str, object] = {}
    for row, what in enumerate(("forward", "gradient")):
        for column, (workload, title) in enumerate(TITLES.items()):
            selected = [r for r in rows if r.workload == workload and r.what == what]
            names |= _panel(axes[row, column], selected)
            if row == 0:
                axes[row, column].set_title(title, loc="left", fontsize=11)
            else:
                axes[row, column].set_xlabel("trajectories in the batch")
        axes[row, 0].set_ylabel(f"{what}, per step")
    if names:
        figure.legend(names.values(), names.keys(), loc="outside lower center", ncols=len(names), frameon=False)
    title = "Steps with contact and their gradients, one core. Red: hybridsim's native code; grey: others"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11.5)
    path.parent.mkdir(parents=True, exist_ok=True)
    # fixed identifiers and no date, so that the file is reproducible
    with rc_context({"svg.hashsalt": "contact"}):
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)


def _panel(axes: Axes, rows: list[Row]) -> dict[str, object]:
    """Draw one line per peer and method; returns the lines by name."""
    lines = {}
    for (peer, method), (name, colour, marker, line) in STYLES.items():
        members = [r for r in rows if r.peer == peer and r.method == method]
        points = {r.batch: r.per_step_ns for r in members}
        if points:
            x = sorted(points)
            (lines[name],) = axes.plot(x, [points[k] for k in x], line, color=colour, marker=marker, markersize=5)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(BATCHES, [str(n) for n in BATCHES])
    axes.yaxis.set_major_formatter(lambda ns, _: duration(ns))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e7ea", linewidth=0.8)
    axes.set_axisbelow(True)
    return lines

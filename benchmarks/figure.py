"""Figure of the gradient benchmark: three workloads as bars, three scalings as lines."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks.contact_workloads import FIVE_LINKS, TESTED_SWEEPS
from benchmarks.measure import Row
from benchmarks.report import duration, label
from benchmarks.workloads import BATCH, CHAIN_LENGTHS, OTHER_BATCHES, W1

OURS, OURS_XLA = "#c8443c", "#e5a09b"
GREYS = {"CasADi C": "#3c4650", "CasADi C by hand": "#6f7b87", "Pinocchio": "#98a3ad", "MJX": "#98a3ad"}
GREY = "#b4bcc4"
MARKERS = {"CasADi C": "s", "CasADi C by hand": "D", "Pinocchio": "^", "MJX": "^", "Brax": "v"}
NAMES = {
    "hybridsim native, reverse": "native reverse",
    "hybridsim native, sensitivities": "native sensitivities",
    "hybridsim native, differences": "native differences",
    "hybridsim native, jit(grad)": "native in jax.jit(grad)",
    "hybridsim XLA, reverse mode": "XLA reverse",
    "hybridsim XLA, forward mode": "XLA forward",
    "MJX, reverse mode": "MJX reverse",
    "MJX, forward mode": "MJX forward",
    "Brax, reverse mode": "Brax reverse",
    "Brax, forward mode": "Brax forward",
    "CasADi C, reverse": "CasADi C",
    "CasADi C by hand, reverse": "CasADi C by hand",
    f"hybridsim native, unrolled, {TESTED_SWEEPS} sweeps": "native, impulse",
    "hybridsim native, compliant": "native, compliant",
}


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw all rows; panels without rows are empty."""
    figure = Figure(figsize=(13.5, 8.2), layout="constrained")
    axes = figure.subplots(2, 3, gridspec_kw={"height_ratios": (1.35, 1.0)})
    _bars(axes[0, 0], "a  Network of 175 parameters", _gradients(rows, "5a", "value and gradient"), 1)
    _bars(axes[0, 1], "b  Double pendulum, 500 steps", _gradients(rows, "W1", "gradient"), W1.steps)
    # the implicit gradient is inexact with few sweeps
    on_ground = [r for r in _gradients(rows, FIVE_LINKS.name, "gradient") if not r.method.startswith("implicit")]
    _bars(axes[0, 2], "c  Five links, contact, 5000 steps", on_ground, FIVE_LINKS.steps)
    _links(axes[1, 0], rows)
    _batches(axes[1, 1], rows)
    _threads(axes[1, 2], rows)
    title = "Time of a gradient on one core. Red: hybridsim's native code; pale: hybridsim through XLA; grey: others"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11.5)
    figure.get_layout_engine().set(h_pad=0.1, w_pad=0.08)
    path.parent.mkdir(parents=True, exist_ok=True)
    # fixed identifiers and no date, so that the file is reproducible
    with rc_context({"svg.hashsalt": "gradients"}):
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)


def _colour(peer: str) -> str:
    if peer.startswith("hybridsim"):
        return OURS if peer.endswith("native") else OURS_XLA
    return GREYS.get(peer, GREY)


def _gradients(rows: Sequence[Row], workload: str, what: str) -> list[Row]:
    """Rows of one trajectory, fastest first."""
    selected = [r for r in rows if (r.workload, r.what, r.batch, r.threads) == (workload, what, 1, 1)]
    return sorted(selected, key=lambda r: r.per_step_ns)


def _bars(axes: Axes, title: str, rows: list[Row], steps: int) -> None:
    times = [r.per_step_ns * steps for r in rows]
    names = [NAMES.get(label(r), label(r)) for r in rows]
    colours = [_colour(r.peer) if r.peer.startswith("hybridsim") else GREY for r in rows]
    positions = range(len(rows))
    axes.barh(positions, times, color=colours, height=0.72)
    axes.set_yticks(positions, names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(min(times, default=1) / 4, max(times, default=1) * 12)
    for y, time in zip(positions, times, strict=True):
        axes.text(time * 1.15, y, duration(time), va="center", fontsize=9)
    axes.set_title(title, loc="left", fontsize=11)
    axes.xaxis.set_major_formatter(lambda ns, _: duration(ns))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _line(axes: Axes, peer: str, name: str, points: dict[float, float]) -> None:
    if points:
        x = sorted(points)
        style = {"marker": MARKERS.get(peer, "o"), "color": _colour(peer), "markersize": 5, "linewidth": 1.8}
        axes.plot(x, [points[k] for k in x], label=name, **style)


def _finish(axes: Axes, title: str, x: str, **legend) -> None:
    if not axes.lines:
        axes.set_visible(False)
        return
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x)
    axes.yaxis.set_major_formatter(lambda ns, _: duration(ns))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e7ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=8, handlelength=1.3, columnspacing=1.0, **legend)


def _links(axes: Axes, rows: Sequence[Row]) -> None:
    curves = {
        "hybridsim native": ("native", "vjp"),
        "hybridsim XLA": ("XLA", "vjp"),
        "CasADi C": ("CasADi C", "vjp"),
        "CasADi C by hand": ("CasADi C by hand", "vjp"),
        "Pinocchio": ("Pinocchio, Jacobians", "Jacobians"),
    }
    for peer, (name, what) in curves.items():
        by_length = {
            int(r.workload[3:]): r for r in rows if r.peer == peer and r.what == what and r.workload[:3] == "W4-"
        }
        _line(axes, peer, name, {n: r.per_step_ns for n, r in by_length.items()})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(bottom=5)  # room for the legend
    axes.set_xticks(CHAIN_LENGTHS, [str(n) for n in CHAIN_LENGTHS])
    _finish(axes, "d  Derivative of forward dynamics", "links of the chain", loc="lower right")


def _batches(axes: Axes, rows: Sequence[Row]) -> None:
    curves = {
        "hybridsim native": ("native reverse", "reverse"),
        "hybridsim XLA": ("XLA reverse", "reverse mode"),
        "CasADi C": ("CasADi C", "reverse"),
        "CasADi C by hand": ("CasADi C by hand, vectors", "vectors"),
        "MJX": ("MJX, faster mode", ""),
        "Brax": ("Brax, faster mode", ""),
    }
    for peer, (name, method) in curves.items():
        points: dict[float, float] = {}
        for r in rows:
            if (r.peer, r.workload, r.what) == (peer, "W1", "gradient") and method in ("", r.method):
                points[r.batch] = min(r.per_step_ns, points.get(r.batch, r.per_step_ns))
        _line(axes, peer, name, points)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted((1, BATCH, *OTHER_BATCHES))
    axes.set_xticks(sizes, [str(n) for n in sizes])
    middle = {"loc": "center", "bbox_to_anchor": (0.5, 0.47), "ncols": 2}
    _finish(axes, "e  Double pendulum, per step", "trajectories in the batch", **middle)


def _threads(axes: Axes, rows: Sequence[Row]) -> None:
    for workload, name, style in (("W2", "five links ×1024", "--"), ("W1", "double pendulum ×4096", "-")):
        by_threads = {r.threads: r for r in rows if r.workload == f"{workload} threads" and r.what == "gradient"}
        if by_threads:
            x = sorted(by_threads)
            times = [by_threads[k].per_step_ns for k in x]
            axes.plot(x, times, style, marker="o", color=OURS, label=name, linewidth=1.8, markersize=5)
            axes.set_xticks(x)
            for k, time in zip(x, times, strict=True):
                axes.annotate(duration(time), (k, time), (0, 7), textcoords="offset points", ha="center", fontsize=9)
    axes.margins(x=0.25, y=0.25)
    axes.set_ylim(bottom=0)
    _finish(axes, "f  Native gradient, wall time per step", "threads")

"""The figure of the cube tosses: how errors are distributed over the test tosses, and one typical toss over time."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.toss_data import ROUNDS, Tosses, angles
from benchmarks.toss_fit import Fit
from benchmarks.toss_report import tested
from benchmarks.toss_simulators import COMPLIANT, IMPULSE, MUJOCO, Form

COLOURS = {IMPULSE: "#c8443c", COMPLIANT: "#e59a3c", MUJOCO: "#6f7b87"}
STYLES = {IMPULSE: "-", COMPLIANT: "-", MUJOCO: "--"}
RECORDED = "#1d2329"
LARGEST = {"position": 40.0, "rotation": 100.0}
"""Where the axes of errors end [mm, degrees]; few tosses are beyond."""


def draw(fits: dict[str, list[Fit]], forms: Sequence[Form], tosses: Tosses, path: Path) -> None:
    """Draw the fits; the typical toss is simulated again."""
    figure = Figure(figsize=(12.5, 4.6), layout="constrained")
    places = figure.subplot_mosaic([["position", "rotation", "height"], ["position", "rotation", "turn"]])
    _shares(places["position"], fits, "position", "a  Position error, averaged over a toss", "mm")
    _shares(places["rotation"], fits, "rotation", "b  Rotation error, averaged over a toss", "degrees")
    places["rotation"].set_xscale("symlog", linthresh=20.0, linscale=1.5)
    ticks = (0, 5, 10, 15, 20, 50, 100)
    places["rotation"].set_xticks(ticks, [str(t) for t in ticks])
    places["rotation"].set_xticks([], minor=True)
    places["position"].set_ylabel("share of the tosses tested")
    places["position"].legend(frameon=False, loc="lower right", handlelength=1.6)
    _typical(places["height"], places["turn"], fits, forms, tosses)
    figure.get_layout_engine().set(h_pad=0.06, w_pad=0.1)
    path.parent.mkdir(parents=True, exist_ok=True)
    # fixed identifiers and no date: the same numbers give the same file
    with rc_context({"svg.hashsalt": "cube tosses"}):
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)


def _shares(axes: Axes, fits: dict[str, list[Fit]], what: str, title: str, unit: str) -> None:
    """Share of tosses below every error, with the medians."""
    for name, rounds in fits.items():
        values = getattr(tested(rounds), what)
        style = {"color": COLOURS[name], "linestyle": STYLES[name], "linewidth": 1.8}
        axes.ecdf(values, label=name, **style)
        axes.plot([np.median(values)] * 2, [0.0, 0.5], color=COLOURS[name], linewidth=0.9, linestyle=":")
        axes.plot(np.median(values), 0.5, "o", color=COLOURS[name], markersize=5)
    axes.set_xlim(0.0, LARGEST[what])
    axes.set_ylim(0.0, 1.0)
    axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "25 %", "50 %", "75 %", "100 %"])
    _finish(axes, title, unit)


def typical(fits: dict[str, list[Fit]]) -> tuple[int, int]:
    """The toss whose errors are nearest to everybody's medians: its round and its place in it."""
    away = np.zeros(sum(len(r.test) for r in ROUNDS[: len(fits[MUJOCO])]))
    for rounds in fits.values():
        found = tested(rounds)
        for values in (found.position, found.rotation):
            away += np.abs(np.log(values / np.median(values)))
    place = int(np.argmin(away))
    return divmod(place, len(ROUNDS[0].test))


def _typical(height: Axes, turn: Axes, fits: dict[str, list[Fit]], forms: Sequence[Form], tosses: Tosses) -> None:
    k, place = typical(fits)
    number = ROUNDS[k].test[place]
    recorded = tosses.toss(number)
    start = np.broadcast_to(recorded[0], recorded.shape)
    time = tosses.frame_time * np.arange(len(recorded))
    dots = {"color": RECORDED, "marker": "o", "linestyle": "", "markersize": 2.6, "label": "recorded"}
    height.plot(time[::2], 1e3 * recorded[::2, 2], **dots)
    turn.plot(time[::2], angles(recorded[:, :7], start)[::2], **dots)
    for name, rounds in fits.items():
        found = rounds[k]
        form = next(f for f in forms if (f.simulator, f.form) == (name, found.form))
        (motion,) = form.ready(tosses)(np.array(list(found.parameters.values())), [number])
        style = {"color": COLOURS[name], "linestyle": STYLES[name], "linewidth": 1.5}
        height.plot(time, 1e3 * motion[:, 2], **style)
        turn.plot(time, angles(motion, start), **style)
    height.legend(frameon=False, loc="upper right", handletextpad=0.2)
    height.tick_params(labelbottom=False)
    height.set_ylabel("height (mm)")
    turn.set_ylabel("turned by (degrees)")
    _finish(height, f"c  A typical toss (number {number})", "")
    _finish(turn, "", "time (s)")


def _finish(axes: Axes, title: str, x: str) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e7ea", linewidth=0.8)
    axes.set_axisbelow(True)

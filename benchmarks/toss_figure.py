"""Figure of the cube tosses: distribution of the errors over the test tosses, and one typical toss over time."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.toss_data import ROUNDS, Tosses, angles
from benchmarks.toss_fit import Fit
from benchmarks.toss_report import test_errors
from benchmarks.toss_simulators import COMPLIANT, IMPULSE, MUJOCO, Variant

COLOURS = {IMPULSE: "#c8443c", COMPLIANT: "#e59a3c", MUJOCO: "#6f7b87"}
STYLES = {IMPULSE: "-", COMPLIANT: "-", MUJOCO: "--"}
RECORDED = "#1d2329"
AXIS_LIMITS = {"position": 40.0, "rotation": 100.0}
"""Upper limits of the error axes [mm, degrees]; few tosses exceed them."""


def draw(fits: dict[str, list[Fit]], variants: Sequence[Variant], tosses: Tosses, path: Path) -> None:
    """Draw the fits, and simulate the typical toss."""
    figure = Figure(figsize=(12.5, 4.6), layout="constrained")
    panels = figure.subplot_mosaic([["position", "rotation", "height"], ["position", "rotation", "turn"]])
    _distribution(panels["position"], fits, "position", "a  Position error, averaged over a toss", "mm")
    _distribution(panels["rotation"], fits, "rotation", "b  Rotation error, averaged over a toss", "degrees")
    panels["rotation"].set_xscale("symlog", linthresh=20.0, linscale=1.5)
    ticks = (0, 5, 10, 15, 20, 50, 100)
    panels["rotation"].set_xticks(ticks, [str(t) for t in ticks])
    panels["rotation"].set_xticks([], minor=True)
    panels["position"].set_ylabel("fraction of test tosses")
    panels["position"].legend(frameon=False, loc="lower right", handlelength=1.6)
    _typical(panels["height"], panels["turn"], fits, variants, tosses)
    figure.get_layout_engine().set(h_pad=0.06, w_pad=0.1)
    path.parent.mkdir(parents=True, exist_ok=True)
    # fixed identifiers and no date, so that the file is reproducible
    with rc_context({"svg.hashsalt": "cube tosses"}):
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)


def _distribution(axes: Axes, fits: dict[str, list[Fit]], what: str, title: str, unit: str) -> None:
    """Draw the cumulative distribution of an error, with the medians."""
    for name, rounds in fits.items():
        values = getattr(test_errors(rounds), what)
        style = {"color": COLOURS[name], "linestyle": STYLES[name], "linewidth": 1.8}
        axes.ecdf(values, label=name, **style)
        axes.plot([np.median(values)] * 2, [0.0, 0.5], color=COLOURS[name], linewidth=0.9, linestyle=":")
        axes.plot(np.median(values), 0.5, "o", color=COLOURS[name], markersize=5)
    axes.set_xlim(0.0, AXIS_LIMITS[what])
    axes.set_ylim(0.0, 1.0)
    axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "25 %", "50 %", "75 %", "100 %"])
    _finish(axes, title, unit)


def typical_toss(fits: dict[str, list[Fit]]) -> tuple[int, int]:
    """Round and index of the toss whose errors are closest to the medians of all simulators."""
    distance = np.zeros(sum(len(r.test) for r in ROUNDS[: len(fits[MUJOCO])]))
    for rounds in fits.values():
        errors = test_errors(rounds)
        for values in (errors.position, errors.rotation):
            distance += np.abs(np.log(values / np.median(values)))
    index = int(np.argmin(distance))
    return divmod(index, len(ROUNDS[0].test))


def _typical(height: Axes, turn: Axes, fits: dict[str, list[Fit]], variants: Sequence[Variant], tosses: Tosses) -> None:
    k, index = typical_toss(fits)
    number = ROUNDS[k].test[index]
    recorded = tosses.toss(number)
    start = np.broadcast_to(recorded[0], recorded.shape)
    time = tosses.frame_time * np.arange(len(recorded))
    dots = {"color": RECORDED, "marker": "o", "linestyle": "", "markersize": 2.6, "label": "recorded"}
    height.plot(time[::2], 1e3 * recorded[::2, 2], **dots)
    turn.plot(time[::2], angles(recorded[:, :7], start)[::2], **dots)
    for name, rounds in fits.items():
        fit = rounds[k]
        variant = next(f for f in variants if (f.simulator, f.variant) == (name, fit.variant))
        (motion,) = variant.bind(tosses)(np.array(list(fit.parameters.values())), [number])
        style = {"color": COLOURS[name], "linestyle": STYLES[name], "linewidth": 1.5}
        height.plot(time, 1e3 * motion[:, 2], **style)
        turn.plot(time, angles(motion, start), **style)
    height.legend(frameon=False, loc="upper right", handletextpad=0.2)
    height.tick_params(labelbottom=False)
    height.set_ylabel("height (mm)")
    turn.set_ylabel("rotation (degrees)")
    _finish(height, f"c  A typical toss (number {number})", "")
    _finish(turn, "", "time (s)")


def _finish(axes: Axes, title: str, x: str) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e7ea", linewidth=0.8)
    axes.set_axisbelow(True)

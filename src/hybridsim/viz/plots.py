"""Plots of trajectories."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hybridsim.model.model import Model
from hybridsim.model.topology import Topology
from hybridsim.sim.rollout import Trajectory

MOST_CURVES = 12
"""Curves in one panel; more are spread over further panels."""


def plot_trajectory(model: Model, trajectory: Trajectory, path: str | Path) -> Path:
    """Draw positions and velocities of all joints over time into a file; its ending decides the format."""
    topology = model.topology
    t = np.asarray(trajectory.t)
    rows = [
        *_panels("position [rad, m]", topology.coordinate_names, np.asarray(trajectory.q)),
        *_panels("velocity [rad/s, m/s]", topology.dof_names, np.asarray(trajectory.qd)),
    ]
    figure = Figure(figsize=(8.0, 2.4 * len(rows) + 0.6), layout="constrained")
    axes = np.atleast_1d(figure.subplots(len(rows), 1, sharex=True))
    for ax, (label, names, values) in zip(axes, rows, strict=True):
        _draw(ax, t, label, names, values)
    axes[-1].set_xlabel("time [s]")
    figure.suptitle(_title(topology))
    path = Path(path)
    figure.savefig(path, dpi=150)
    return path


def _panels(label: str, names: Sequence[str], values: np.ndarray) -> list[tuple[str, Sequence[str], np.ndarray]]:
    """Curves that belong together: those of a joint with several coordinates, and all single ones."""
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        joint, _, part = name.rpartition(".")
        is_quaternion = part.startswith("q") and joint
        groups.setdefault(f"{joint} quaternion" if is_quaternion else joint, []).append(i)
    panels = []
    for group, members in groups.items():
        title = f"{group}\n{'quaternion' if 'quaternion' in group else label}" if group else label
        title = title.replace(" quaternion\n", "\n")
        for start in range(0, len(members), MOST_CURVES):
            chunk = members[start : start + MOST_CURVES]
            panels.append((title, [names[i].rpartition(".")[2] for i in chunk], values[:, chunk]))
    return panels


def _draw(ax: Axes, t: np.ndarray, label: str, names: Sequence[str], values: np.ndarray) -> None:
    palette = matplotlib.colormaps["tab20" if len(names) > 10 else "tab10"]
    for i, (name, curve) in enumerate(zip(names, values.T, strict=True)):
        ax.plot(t, curve, label=name, color=palette(i), linewidth=1.3)
    ax.set_ylabel(label)
    ax.grid(alpha=0.3)
    ax.margins(x=0.0)
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize="small", frameon=False)


def _title(topology: Topology) -> str:
    return f"{topology.name}: {topology.nb} bodies, {topology.nv} degrees of freedom"

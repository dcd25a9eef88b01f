"""Plots of trajectories."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure

from hybridsim.core.errors import HybridsimError
from hybridsim.model.model import Model
from hybridsim.model.topology import Topology
from hybridsim.viz.save_figure import save_figure

MAX_CURVES = 12
"""Maximum number of curves in one panel; further curves are drawn in additional panels."""
JOINT_QUANTITIES = {
    "m": "position",
    "rad": "angle",
    "": "quaternion",
    "m/s": "velocity in the body frame",
    "rad/s": "angular velocity in the body frame",
}
"""Quantity of the coordinates and velocities of a joint with several, by their unit, in the order of the panels."""
MIN_HALF_HEIGHT = 1e-6
"""Minimum half height of a panel, in its unit, so that rounding errors do not look like motion."""


class _Panel(NamedTuple):
    label: str
    names: list[str]
    values: np.ndarray


def plot_motion(model: Model, t: np.ndarray, q: np.ndarray, qd: np.ndarray, path: str | Path) -> Path:
    """Plot positions and velocities of all joints except mimic joints over time to a file.

    Args:
        model: the mechanism.
        t: times [s].
        q: coordinates, one row per time [rad, m].
        qd: velocities, one row per time [rad/s, m/s].
        path: file to write; its extension determines the format.
    """
    check_image_path(path)
    panels = _panels(model.topology, np.asarray(q), np.asarray(qd))
    figure = Figure(figsize=(8.0, 2.4 * len(panels) + 0.6), layout="constrained")
    axes = np.atleast_1d(figure.subplots(len(panels), 1, sharex=True))
    for ax, panel in zip(axes, panels, strict=True):
        _draw(ax, np.asarray(t), panel)
    axes[-1].set_xlabel("time [s]")
    figure.suptitle(model.name)
    return save_figure(figure, path, dpi=150)


def check_image_path(path: str | Path) -> None:
    """Raise if the extension of a file is not a supported image format, or its folder does not exist."""
    formats = FigureCanvasBase.get_supported_filetypes()
    if Path(path).suffix.lstrip(".").lower() not in formats:
        raise HybridsimError(f"cannot write {path}: the supported formats are .{', .'.join(sorted(formats))}")
    if not Path(path).absolute().parent.is_dir():
        raise HybridsimError(f"cannot write {path}: there is no folder {Path(path).absolute().parent}")


def _panels(topology: Topology, q: np.ndarray, qd: np.ndarray) -> list[_Panel]:
    """Panels of positions, then velocities; joints with one coordinate share panels, all others have their own."""
    positions, velocities = [], []
    single_q, single_v, single_units = [], [], set()
    joints = zip(
        topology.joint_names, topology.joint_types, topology.q_slices, topology.v_slices, topology.masters, strict=True
    )
    for joint, kind, (q0, q1), (v0, v1), master in joints:
        if master >= 0 or q1 == q0:
            continue
        if q1 - q0 == 1:
            single_q.append(q0)
            single_v.append(v0)
            single_units |= {*kind.joint.coordinates.values()}
            continue
        positions += _panels_by_unit(joint, kind.joint.coordinates, q[:, q0:q1])
        velocities += _panels_by_unit(joint, kind.joint.dofs, qd[:, v0:v1])
    names = topology.dof_names
    units = [unit for unit in ("rad", "m") if unit in single_units]
    for label, panels, values, columns in (
        (f"position [{', '.join(units)}]", positions, q, single_q),
        (f"velocity [{', '.join(f'{unit}/s' for unit in units)}]", velocities, qd, single_v),
    ):
        for start in range(0, len(columns), MAX_CURVES):
            chunk = slice(start, start + MAX_CURVES)
            panels.append(_Panel(label, [names[v] for v in single_v[chunk]], values[:, columns[chunk]]))
    return positions + velocities


def _panels_by_unit(joint: str, units: Mapping[str, str], values: np.ndarray) -> list[_Panel]:
    """Panels of a joint with several coordinates or velocities: one per unit, translations first."""
    panels = []
    for unit, quantity in JOINT_QUANTITIES.items():
        columns = [k for k, other in enumerate(units.values()) if other == unit]
        if columns:
            label = f"{joint}\n{quantity} [{unit}]" if unit else f"{joint}\n{quantity}"
            names = [list(units)[k].removeprefix("q") for k in columns]
            panels.append(_Panel(label, names, values[:, columns]))
    return panels


def _draw(ax: Axes, t: np.ndarray, panel: _Panel) -> None:
    palette = matplotlib.colormaps["tab20" if len(panel.names) > 10 else "tab10"]
    for i, (name, curve) in enumerate(zip(panel.names, panel.values.T, strict=True)):
        ax.plot(t, curve, label=name, color=palette(i), linewidth=1.3)
    ax.set_ylabel(panel.label)
    ax.grid(alpha=0.3)
    ax.margins(x=0.0)
    low, high = float(panel.values.min()), float(panel.values.max())
    if high - low < MIN_HALF_HEIGHT:
        ax.set_ylim(low - MIN_HALF_HEIGHT, high + MIN_HALF_HEIGHT)
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize="small", frameon=False)

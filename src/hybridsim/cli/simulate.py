"""`hybridsim simulate`: simulate a mechanism and write its trajectory."""

import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from hybridsim.cli.interrupt import StopRequest
from hybridsim.cli.options import ContactName, IntegratorName, Loader, ModelLoader, ModelName, require_new_files
from hybridsim.cli.output import print_json, print_warnings, say
from hybridsim.cli.trajectory_log import TrajectoryLog
from hybridsim.contact.choices import CONTACTS
from hybridsim.core.errors import HybridsimError
from hybridsim.core.messages import name_hint, pluralize

if TYPE_CHECKING:
    from hybridsim.sim.rollout import Trajectory
    from hybridsim.sim.simulator import Simulator

BLOCK = 500
"""Steps between updates of progress bar and file; all blocks share one compiled function."""
MAX_STEPS = 10**9
"""Maximum number of steps; more are assumed to be a typing error."""
MAX_PLOTTED_ROWS = 10_000
"""Maximum number of plotted rows."""
DIVERGED = 3
CONTACT_OPTIONS = " or ".join(f"--contact {name}" for name in CONTACTS if name != "none")


def simulate(
    model: ModelName,
    time: float = 2.0,
    out: Path = Path("run.csv"),
    plot: Path | None = None,
    dt: float | None = None,
    integrator: IntegratorName = "euler",
    contact: ContactName = "none",
    floor: float | None = None,
    only: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    self_collision: bool = True,
    position: Mapping[str, float] = MappingProxyType({}),
    velocity: Mapping[str, float] = MappingProxyType({}),
    command: Mapping[str, float] = MappingProxyType({}),
    every: int = 1,
    force: bool = False,
    loader: Loader = ModelLoader(),
    json: bool = False,
) -> int:
    """Simulate a mechanism from its home configuration and write the trajectory to a CSV file.

    After Ctrl-C (exit code 130), SIGTERM (143) or divergence (3) the file contains the trajectory up to that point.

    For example:
      hybridsim simulate acrobot --time 2 --out run.csv --plot run.png
      hybridsim simulate cartpole --position hinge 0.1 --command slider 1.5
      hybridsim simulate robot.urdf --base free --integrator implicit --dt 0.002
      hybridsim simulate cube --contact impulse --velocity root.wx 5
      hybridsim simulate robot.urdf --base free --contact impulse --floor 0 --position root.z 0.5
      hybridsim simulate quadruped --contact impulse --only '*_foot*|ground'

    Args:
        model: file or built-in mechanism.
        time: simulated time [s].
        out: CSV file to write: time, then q:NAME and qd:NAME of every joint.
        plot: plot to write (.png, .pdf or .svg).
        dt: time step [s]; by default that of the model.
        integrator: integration scheme; euler is semi-implicit, implicit is for stiff damping.
        contact: contact model; impulse requires the integrator euler.
        floor: height of a floor to add [m].
        only: pairs of shapes or links that can collide, such as foot_*|floor; all by default.
        exclude: pairs that do not collide.
        self_collision: enable contact between parts of the mechanism.
        position: initial coordinates by name, where they differ from home [rad, m].
        velocity: initial velocities by name [rad/s, m/s]; zero by default.
        command: constant actuator commands by name; zero by default.
        every: write only every n-th step.
        force: overwrite existing files.
        loader: options of the model loader.
        json: print a summary as JSON instead of text.
    """
    import numpy as np

    from hybridsim.sim.simulator import Simulator

    mechanism = loader.load(model)
    step = float(mechanism.timestep if dt is None else dt)
    steps = step_count(time, step)
    if every < 1:
        raise HybridsimError(f"--every {every}: must be at least 1; 2 writes every second step, and so on")
    require_new_files([out, plot], [model], force=force)
    if floor is not None:
        from hybridsim.model.floor import with_floor

        if contact == "none":
            raise HybridsimError(f"--floor has no effect without {CONTACT_OPTIONS}")
        try:
            mechanism = with_floor(mechanism, floor)
        except ValueError as error:
            raise HybridsimError(str(error)) from None
    if contact != "none":
        from hybridsim.io.hulls import with_hulls

        mechanism = with_hulls(mechanism)
    elif only or exclude or not self_collision:
        raise HybridsimError(f"--only, --exclude and --no-self-collision have no effect without {CONTACT_OPTIONS}")
    elif mechanism.geometry.infos and not json:
        say(f"Contact is disabled: {CONTACT_OPTIONS} enables it.")
    pairs = {"only": only, "exclude": exclude, "self_collision": self_collision}
    try:
        with print_warnings():
            settings = CONTACTS[contact](**pairs) if contact != "none" else None
            sim, topology = Simulator(mechanism, dt=step, integrator=integrator, contact=settings), mechanism.topology
    except ValueError as error:
        raise HybridsimError(str(error)) from None
    state = sim.initial_state(
        _with_entries(mechanism.home, topology.coordinate_names, position, "coordinate"),
        _with_entries(np.zeros(mechanism.nv), topology.dof_names, velocity, "velocity"),
    )
    commands = _with_entries(np.zeros(mechanism.nu), mechanism.actuator.names, command, "actuator")
    if plot is not None:
        from hybridsim.viz.plots import check_image_path

        check_image_path(plot)
    with TrajectoryLog(out, topology, every=every) as log, StopRequest() as stop:
        completed, plotted, problem = _run(sim, state, commands, steps, log, stop)
    if plot is not None:
        from hybridsim.viz.plots import plot_motion

        plot_motion(mechanism, *plotted, plot)

    summary = {
        "model": mechanism.name,
        "steps": completed,
        "dt_s": step,
        "time_s": completed * step,
        "out": str(out),
        "plot": str(plot) if plot else None,
        "interrupted": stop.requested,
        "problem": problem,
    }
    if json:
        print_json(summary)
    else:
        written = f"{out}" + (f" and {plot}" if plot else "")
        end = f"t = {completed * step:g} s"
        say(f"{mechanism.name}: {pluralize(completed, 'step')} of {step:g} s to {end}, written to {written}")
        if problem:
            say(problem, style="red")
    return DIVERGED if problem else stop.exit_code


def step_count(time: float, dt: float) -> int:
    """Number of steps of `dt` [s] that cover `time` [s]."""
    for name, value in (("--time", time), ("--dt", dt)):
        if not (math.isfinite(value) and value > 0.0):
            raise HybridsimError(f"{name} must be positive and finite, not {value:g} s")
    if dt > time * (1.0 + 1e-9):
        raise HybridsimError(f"a time step of {dt:g} s is longer than the {time:g} s to simulate; use a smaller --dt")
    if time / dt > MAX_STEPS:
        raise HybridsimError(f"{time:g} s in steps of {dt:g} s are more than {MAX_STEPS:g} steps; use a larger --dt")
    return math.ceil(time / dt * (1.0 - 1e-9))


def _with_entries(values, names: tuple[str, ...], entries: Mapping[str, float], quantity: str):
    """`values` with some entries replaced by name."""
    import numpy as np

    values = np.array(values, dtype=float)
    for name, value in entries.items():
        if name not in names:
            raise HybridsimError(f"no {quantity} is named {name!r}; {name_hint(name, names)}")
        if not math.isfinite(value):
            raise HybridsimError(f"{quantity} {name!r} must be a finite number, not {value}")
        values[names.index(name)] = value
    return values


class PlottedRows(NamedTuple):
    """Times [s], coordinates and velocities of a trajectory thinned for plotting, one row per sample."""

    t: Any
    q: Any
    qd: Any


def _run(
    sim: "Simulator", state, commands, steps: int, log: TrajectoryLog, stop: StopRequest
) -> tuple[int, PlottedRows, str]:
    """Simulate block by block and write to the log.

    Returns:
        Number of completed steps, rows for the plot, and description of a failure, if any.
    """
    import numpy as np
    from rich.progress import Progress

    from hybridsim.core.console import PlainConsole
    from hybridsim.sim.rollout import failure_message
    from hybridsim.sim.rollout import simulate as simulate_block

    stride = math.ceil(steps / MAX_PLOTTED_ROWS)
    plotted: list[PlottedRows] = []
    console = PlainConsole(stderr=True)
    completed, problem = 0, ""

    def write_block(block: "Trajectory", first: int, last: int) -> None:
        index = np.arange(completed + first, completed + last)
        rows = (index * float(sim.dt), block.q[first:last], block.qd[first:last])
        log.write(*rows)
        plotted.append(PlottedRows(*(column[-(completed + first) % stride :: stride] for column in rows)))

    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("simulating", total=steps)
        while completed < steps and not problem and not stop.requested:
            size = min(BLOCK, steps - completed)
            block = simulate_block(sim, state, np.tile(commands, (size, 1)))
            problem = failure_message(sim, block, first_step=completed)
            valid = int(block.failed_step) if problem else size
            write_block(block, 0 if completed == 0 else 1, valid + 1)
            state, completed = block.final, completed + valid
            progress.update(task, completed=completed)
    return completed, PlottedRows(*(np.concatenate(column) for column in zip(*plotted, strict=True))), problem

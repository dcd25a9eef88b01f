"""`hybridsim simulate`: let a mechanism move, and write down how."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hybridsim.cli.interrupt import StopRequest
from hybridsim.cli.motion_log import MotionLog
from hybridsim.cli.options import ModelName, Reading, ReadingOptions, refuse_to_overwrite
from hybridsim.cli.output import print_json, say, warnings_said
from hybridsim.core.errors import HybridsimError
from hybridsim.core.messages import name_hint, pluralize

if TYPE_CHECKING:
    from hybridsim.sim.rollout import Trajectory
    from hybridsim.sim.simulator import Simulator

BLOCK = 500
"""Steps between two updates of the progress bar and the file; one compiled block serves them all."""
MOST_STEPS = 10**9
"""More are taken for a slip of the pen."""
PLOTTED_ROWS = 10_000
"""Rows of a motion that are kept for its picture."""
DIVERGED = 3


def simulate(
    model: ModelName,
    time: float = 2.0,
    out: Path = Path("run.csv"),
    plot: Path | None = None,
    dt: float | None = None,
    integrator: Literal["euler", "rk4", "implicit"] = "euler",
    contact: Literal["none", "impulse", "compliant"] = "none",
    floor: float | None = None,
    only: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    self_collision: bool = True,
    start: dict[str, float] = {},  # noqa: B006 - never changed
    velocity: dict[str, float] = {},  # noqa: B006
    command: dict[str, float] = {},  # noqa: B006
    every: int = 1,
    reading: Reading = ReadingOptions(),  # noqa: B008 - frozen
    json: bool = False,
) -> int:
    """Simulate a mechanism from its home configuration and write the motion to a CSV file.

    The file grows with the simulation: after Ctrl-C (exit code 130), SIGTERM (143), or if the simulation diverged (3),
    it holds the motion up to that point.

    For example:
      hybridsim simulate acrobot --time 2 --out run.csv --plot run.png
      hybridsim simulate cartpole --start hinge 0.1 --command slider 1.5
      hybridsim simulate robot.urdf --base free --integrator implicit --dt 0.002
      hybridsim simulate cube --contact impulse --velocity root.wx 5
      hybridsim simulate robot.urdf --base free --contact impulse --floor 0 --start root.z 0.5
      hybridsim simulate quadruped --contact impulse --only '*_foot*|ground'

    Args:
        model: file or built-in mechanism.
        time: how long to simulate [s].
        out: CSV file to write: time, then q:NAME and qd:NAME of every joint.
        plot: picture to draw (.png, .pdf or .svg).
        dt: time step [s]; the model's own by default.
        integrator: semi-implicit euler, rk4, or implicit in velocity for stiff damping.
        contact: whether bodies touch, by impulses (needs the integrator euler) or by compliant forces.
        floor: height of a floor to put under the mechanism [m].
        only: pairs of shapes or links that can touch, as foot_*|floor; all that may by default.
        exclude: pairs that pass through each other.
        self_collision: can parts of the mechanism touch each other?
        start: coordinates to start from, by name, where they differ from home.
        velocity: velocities to start with, by name [rad/s, m/s].
        command: constant commands of actuators, by name; zero for the others.
        every: write every n-th step only.
        reading: how to read the file.
        json: print a summary as JSON for other programs.
    """
    import numpy as np

    from hybridsim.sim.simulator import CONTACTS, Simulator

    mechanism = reading.load(model)
    step = float(mechanism.timestep if dt is None else dt)
    steps = step_count(time, step)
    if every < 1:
        raise HybridsimError(f"--every {every}: every step is 1, every second one is 2, and so on")
    for path in (out, plot):
        refuse_to_overwrite(model, path)
    if floor is not None:
        from hybridsim.model.floor import with_floor

        if contact == "none":
            raise HybridsimError("--floor: nothing touches it without --contact impulse or --contact compliant")
        try:
            mechanism = with_floor(mechanism, floor)
        except ValueError as error:
            raise HybridsimError(str(error)) from None
    if contact != "none":
        from hybridsim.io.hulls import with_hulls

        mechanism = with_hulls(mechanism)
    elif only or exclude or not self_collision:
        raise HybridsimError("--only, --exclude and --no-self-collision say what can touch: add --contact impulse")
    elif mechanism.geometry.infos and not json:
        say("Shapes pass through each other: --contact impulse or --contact compliant lets them touch.")
    choice = {"only": only, "exclude": exclude, "self_collision": self_collision}
    try:
        with warnings_said():
            touching = CONTACTS[contact](**choice) if contact != "none" else None
            sim, topology = Simulator(mechanism, dt=step, integrator=integrator, contact=touching), mechanism.topology
    except ValueError as error:
        raise HybridsimError(str(error)) from None
    state = sim.initial_state(
        _filled(mechanism.home, topology.coordinate_names, start, "coordinate"),
        _filled(np.zeros(mechanism.nv), topology.dof_names, velocity, "velocity"),
    )
    commands = _filled(np.zeros(mechanism.nu), mechanism.actuator.names, command, "actuator")
    if plot is not None:
        from hybridsim.viz.plots import require_picture_format

        require_picture_format(plot)
    with MotionLog(out, topology, every=every) as log, StopRequest() as stop:
        done, motion, problem = _run(sim, state, commands, steps, log, stop)
    if plot is not None:
        from hybridsim.viz.plots import plot_motion

        plot_motion(mechanism, motion.t, motion.q, motion.qd, plot)

    facts = {
        "model": mechanism.name,
        "steps": done,
        "dt_s": step,
        "time_s": done * step,
        "out": str(out),
        "plot": str(plot) if plot else None,
        "interrupted": stop.given,
        "problem": problem,
    }
    if json:
        print_json(facts)
    else:
        written = f"{out}" + (f" and {plot}" if plot else "")
        say(f"{mechanism.name}: {pluralize(done, 'step')} of {step:g} s to t = {done * step:g} s, written to {written}")
        if problem:
            say(problem, style="red")
    return DIVERGED if problem else stop.exit_code


def step_count(time: float, dt: float) -> int:
    """Steps of `dt` [s] that reach `time` [s]."""
    for name, value in (("--time", time), ("--dt", dt)):
        if not (math.isfinite(value) and value > 0.0):
            raise HybridsimError(f"{name} must be positive and finite, not {value:g} s")
    if dt > time * (1.0 + 1e-9):
        raise HybridsimError(f"a time step of {dt:g} s is longer than the {time:g} s to simulate; use a smaller --dt")
    if time / dt > MOST_STEPS:
        raise HybridsimError(f"{time:g} s in steps of {dt:g} s are more than {MOST_STEPS:g} steps; use a larger --dt")
    return math.ceil(time / dt * (1.0 - 1e-9))


def _filled(values, names: tuple[str, ...], given: dict[str, float], what: str):
    """`values` with the entries given by name put in."""
    import numpy as np

    values = np.array(values, dtype=float)
    for name, value in given.items():
        if name not in names:
            raise HybridsimError(f"no {what} is named {name!r}; {name_hint(name, names)}")
        if not math.isfinite(value):
            raise HybridsimError(f"{what} {name!r} must be a finite number, not {value}")
        values[names.index(name)] = value
    return values


class Motion(NamedTuple):
    """Times [s], coordinates and velocities, row by row."""

    t: Any
    q: Any
    qd: Any


def _run(sim: "Simulator", state, commands, steps: int, log: MotionLog, stop: StopRequest) -> tuple[int, Motion, str]:
    """Simulate block by block into the log.

    Returns:
        How many steps are done, enough of the motion for a picture, and what went wrong, if anything.
    """
    import numpy as np
    from rich.progress import Progress

    from hybridsim.cli.output import PlainConsole
    from hybridsim.sim.rollout import failure_message
    from hybridsim.sim.rollout import simulate as simulated

    stride = math.ceil(steps / PLOTTED_ROWS)
    kept: list[Motion] = []
    console = PlainConsole(stderr=True)
    done, problem = 0, ""

    def keep(part: "Trajectory", first: int, last: int) -> None:
        index = np.arange(done + first, done + last)
        rows = Motion(index * float(sim.dt), part.q[first:last], part.qd[first:last])
        log.write(*rows)
        kept.append(Motion(*(column[-(done + first) % stride :: stride] for column in rows)))

    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("simulating", total=steps)
        while done < steps and not problem and not stop.given:
            size = min(BLOCK, steps - done)
            part = simulated(sim, state, np.tile(commands, (size, 1)))
            problem = failure_message(sim, part, first_step=done)
            good = int(part.failed_step) if problem else size
            keep(part, 0 if done == 0 else 1, good + 1)
            state, done = part.final, done + good
            progress.update(task, completed=done)
    return done, Motion(*(np.concatenate(column) for column in zip(*kept, strict=True))), problem

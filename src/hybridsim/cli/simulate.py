"""`hybridsim simulate`: let a mechanism move, and write down how."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console

from hybridsim.cli.options import ModelName, Reading, ReadingOptions
from hybridsim.core.errors import HybridsimError

if TYPE_CHECKING:
    from hybridsim.model.model import Model

BLOCK = 500
"""Steps between two updates of the progress bar; one compiled block serves them all."""


def simulate(
    model: ModelName,
    time: float = 2.0,
    out: Path = Path("run.csv"),
    plot: Path | None = None,
    dt: float | None = None,
    integrator: Literal["euler", "rk4", "implicit"] = "euler",
    start: dict[str, float] | None = None,
    velocity: dict[str, float] | None = None,
    command: dict[str, float] | None = None,
    every: int = 1,
    reading: Reading = ReadingOptions(),  # noqa: B008 - frozen
    json: bool = False,
) -> int:
    """Simulate a mechanism from its home configuration and write the motion to a CSV file.

    Exits with 3 if the simulation diverged; the file then holds the motion up to that point.

    For example:
      hybridsim simulate acrobot --time 2 --out run.csv --plot run.png
      hybridsim simulate cartpole --start hinge 0.1 --command slider 1.5
      hybridsim simulate robot.urdf --base free --integrator implicit --dt 0.002

    Args:
        model: file or built-in mechanism.
        time: how long to simulate [s].
        out: CSV file to write: time, then q:NAME and qd:NAME of every joint.
        plot: picture to draw (.png, .pdf or .svg).
        dt: time step [s]; the model's own by default.
        integrator: semi-implicit euler, rk4, or implicit in velocity for stiff damping.
        start: coordinates to start from, by name, where they differ from home.
        velocity: velocities to start with, by name [rad/s, m/s].
        command: constant commands of actuators, by name; zero for the others.
        every: write every n-th step only.
        reading: how to read the file.
        json: print a summary as JSON for other programs.
    """
    import numpy as np

    from hybridsim.sim.rollout import failure
    from hybridsim.sim.simulator import Simulator

    mechanism = reading.load(model)
    sim = Simulator(mechanism, dt=dt, integrator=integrator)
    steps = _steps(time, float(sim.dt))
    topology = mechanism.topology
    state = sim.initial_state(
        _filled(mechanism.home, topology.coordinate_names, start, "coordinate"),
        _filled(np.zeros(mechanism.nv), topology.dof_names, velocity, "velocity"),
    )
    commands = _filled(np.zeros(mechanism.nu), mechanism.actuator.names, command, "actuator")
    trajectory = _run(sim, state, commands, steps)
    _write_csv(out, mechanism, trajectory, every)
    if plot is not None:
        from hybridsim.viz.plots import plot_trajectory

        plot_trajectory(mechanism, trajectory, plot)
    problem = failure(sim, trajectory)
    facts = {
        "model": mechanism.name,
        "steps": steps,
        "dt_s": float(sim.dt),
        "out": str(out),
        "problem": problem,
    }
    if json:
        _print_json(facts)
    else:
        console = Console(highlight=False)
        written = f"{out}" + (f" and {plot}" if plot else "")
        console.print(f"{mechanism.name}: {steps} steps of {float(sim.dt):g} s, written to {written}", markup=False)
        if problem:
            console.print(problem, style="red", markup=False)
    return 3 if problem else 0


def _steps(time: float, dt: float) -> int:
    if not (time > 0.0 and dt > 0.0 and time / dt < 1e9):
        raise HybridsimError(f"cannot simulate {time:g} s in steps of {dt:g} s: both must be positive and finite")
    return max(1, round(time / dt))


def _filled(values, names: tuple[str, ...], given: dict[str, float] | None, what: str):
    """`values` with the entries given by name put in."""
    import numpy as np

    values = np.array(values, dtype=float)
    for name, value in (given or {}).items():
        if name not in names:
            raise HybridsimError(f"no {what} is named {name!r}; the names are {', '.join(names) or 'none'}")
        values[names.index(name)] = value
    return values


def _run(sim, state, commands, steps: int):
    """The trajectory, computed block by block with a progress bar."""
    import jax
    import numpy as np
    from rich.progress import Progress

    from hybridsim.core.result import Status
    from hybridsim.sim import rollout

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("simulating", total=steps)
        parts = []
        done = 0
        while done < steps:
            size = min(BLOCK, steps - done)
            part = rollout.simulate(sim, state, np.tile(commands, (size, 1)))
            parts.append((done, part))
            state, done = part.final, done + size
            progress.update(task, completed=done)
            if int(part.status) != Status.OK:
                break
    first, last = parts[0][1], parts[-1][1]
    joined = {
        name: np.concatenate([getattr(first, name)[:1], *(getattr(part, name)[1:] for _, part in parts)])
        for name in ("q", "qd", "t")
    }
    failed = int(last.failed_step)
    rows = parts[-1][0] + failed + 1 if failed >= 0 else len(joined["t"])
    whole = rollout.Trajectory(
        **{name: values[:rows] for name, values in joined.items()},
        final=last.final,
        status=last.status,
        failed_step=np.asarray(parts[-1][0] + failed if failed >= 0 else -1),
        failed_dof=last.failed_dof,
    )
    return jax.tree.map(np.asarray, whole)


def _write_csv(out: Path, model: "Model", trajectory, every: int) -> None:
    import numpy as np

    from hybridsim.io.edit import write_atomically

    names = [
        "time",
        *(f"q:{n}" for n in model.topology.coordinate_names),
        *(f"qd:{n}" for n in model.topology.dof_names),
    ]
    table = np.column_stack([trajectory.t, trajectory.q, trajectory.qd])[:: max(every, 1)]
    lines = [",".join(names), *(",".join(repr(float(x)) for x in row) for row in table)]
    write_atomically(out, ("\n".join(lines) + "\n").encode())


def _print_json(facts: dict) -> None:
    print(json.dumps(facts, indent=2))

"""What tests of fitting share: recordings made by simulation, and problems around them."""

from collections.abc import Callable, Mapping, Sequence

import equinox as eqx
import numpy as np

from hybridsim import Simulator, simulate
from hybridsim.data.recording import Recording
from hybridsim.identify.fit import Checkpoint
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.identify.solvers.solver import Solver, SolverState
from hybridsim.identify.windows import InputSignal, Measurements
from hybridsim.model.model import Model
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots import double_pendulum, pendulum
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.state import Inputs

NOISE = 1e-3
DT = 0.01
FLYING = {f"p{c}": f"joint.q[root.{c}]" for c in ("x", "y", "z", "qw", "qx", "qy", "qz")}
DOUBLE = {"q0": "joint.q[joint0]", "q1": "joint.q[joint1]"}
NARROW = (
    Free("joint.damping[*]", bounds=(0.03, 0.04), initial=0.035),
    Free("body.mass[link1]", bounds=(0.1, 5)),
)
"""Free numbers of the double pendulum, of which the damping has bounds that its true values are not in."""
DOUBLE_STARTS = [[0.6, -0.4], [-0.9, 0.3], [0.2, 1.1]]


def changed(model: Model, where: Callable, values) -> Model:
    """The model with other numbers."""
    return eqx.tree_at(where, model, values)


def recorded(
    sim: Simulator,
    q: Sequence[float],
    qd: Sequence[float] | None = None,
    *,
    steps: int,
    channels: Mapping[str, str],
    drives: Mapping[str, np.ndarray] | None = None,
    user: Mapping[str, np.ndarray] | None = None,
    noise: float = 0.0,
    seed: int = 0,
    name: str = "run",
) -> Recording:
    """What sensors of coordinates and velocities say of a motion, with the commands that drove it (one per step).

    Beside the channels, all velocities are kept as they were, for `exactly_started`.

    Args:
        sim: what moves.
        q: coordinates at the start.
        qd: velocities at the start.
        steps: how many.
        channels: addresses `joint.q[…]` or `joint.qd[…]` by name.
        drives: commands by the name of the actuator; channels of their own in the recording.
        user: user inputs by name; likewise.
        noise: standard deviation that is added to every channel of the sensors.
        seed: of the noise.
        name: of the recording.
    """
    drives, user = drives or {}, user or {}
    actuators = sim.model.actuator.names
    u = np.zeros((steps, len(actuators)))
    for actuator, values in drives.items():
        u[:, actuators.index(actuator)] = values[:steps]
    inputs = Inputs(u, None, {name: values[:steps] for name, values in user.items()})
    trajectory = simulate(sim, sim.initial_state(q, qd), inputs, steps=steps)
    assert int(trajectory.status) == 0
    random, topology = np.random.default_rng(seed), sim.model.topology
    columns = {}
    for channel, address in channels.items():
        quantity, _, place = address.rstrip("]").partition("[")
        values = trajectory.q[:, topology.coordinate_names.index(place)] if quantity == "joint.q" else None
        values = trajectory.qd[:, topology.dof_names.index(place)] if values is None else values
        columns[channel] = values + noise * random.standard_normal(steps + 1)
    speeds = {f"speed {name}": trajectory.qd[:, k] for k, name in enumerate(topology.dof_names)}
    commands = {name: np.append(values[:steps], values[steps - 1]) for name, values in (drives | user).items()}
    assert not columns.keys() & commands.keys(), "a channel has the name of what drives it"
    return Recording.from_arrays(name, np.asarray(trajectory.t), columns | commands | speeds)


def problem(
    sim: Simulator,
    channels: Mapping[str, str],
    frees: Sequence[Free],
    train: Sequence[Recording],
    *,
    noise: float = NOISE,
    commands: Sequence[str] = (),
    user: Sequence[str] = (),
    held_out: Sequence[Recording] = (),
    **sensors,
) -> FitProblem:
    """What is fitted to what, with every channel under the name of what it drives."""
    setup = Setup(sim, Sensors.of(sim, channels, **sensors))
    measured = Measurements(
        dict.fromkeys(channels, noise),
        {name: InputSignal(name) for name in commands},
        {name: InputSignal(name) for name in user},
    )
    return FitProblem(setup, ParameterSpace(setup, frees), measured, tuple(train), tuple(held_out))


def true_double_pendulum() -> Model:
    return changed(
        double_pendulum(), lambda m: (m.joint.damping, m.body.mass), (np.array([0.05, 0.02]), np.array([1.2, 0.7]))
    )


def double_pendulum_problem(
    frees: Sequence[Free] = (Free("joint.damping[*]", bounds=(0, 1)), Free("body.mass[link1]", bounds=(0.1, 5))),
    *,
    backend: str = "auto",
    noise: float = 0.0,
    model: Model | None = None,
    steps: int = 60,
    **more,
) -> FitProblem:
    """Two links whose damping and one mass are not known; the other mass is, since only ratios can be seen."""
    true = changed(true_double_pendulum(), lambda m: m.body.mass, np.array([1.0, 0.7]))
    made = Simulator(true if model is None else model, dt=DT)
    runs = [
        recorded(made, q, steps=steps, channels=DOUBLE, noise=noise, seed=k, name=f"run{k}")
        for k, q in enumerate(DOUBLE_STARTS)
    ]
    return problem(Simulator(double_pendulum(), dt=DT, backend=backend), DOUBLE, frees, runs, **more)


def pendulum_problem(
    frees: Sequence[Free] = (Free("joint.damping[*]", bounds=(0, 1)),),
    *,
    damping: float = 0.1,
    steps: int = 80,
    noise: float = 0.0,
    **more,
) -> FitProblem:
    """One link whose damping is not known."""
    channels = {"q0": "joint.q[joint0]"}
    made = Simulator(pendulum(damping=damping), dt=DT)
    runs = [
        recorded(made, [q], steps=steps, channels=channels, noise=noise, seed=k, name=f"run{k}")
        for k, q in enumerate((1.2, -0.7))
    ]
    return problem(Simulator(pendulum(), dt=DT), channels, frees, runs, **more)


def exactly_started(of: FitProblem, stage: Stage) -> Objective:
    """What a stage minimises, from the states that the motions really had: channels are all coordinates, in order."""
    objective, _ = of.objective(stage)
    w, model = objective.windows, of.setup.sim.model
    rows = np.round(w.start / w.dt).astype(int)
    names = [*of.setup.sensors.names, *(f"speed {name}" for name in model.topology.dof_names)]
    states = np.array(
        [[of.train[run].series[name].values[row] for name in names] for run, row in zip(w.run, rows, strict=True)]
    )
    return Objective(
        objective.simulated, objective.layout, w, (states[:, : model.nq], states[:, model.nq :]), objective.terms
    )


def solved(solver: Solver, objective: Objective, point: Point, most: int = 10**6) -> SolverState:
    """Where a solver gets."""
    state = solver.init(objective, point)
    while not solver.is_done(state) and int(state.steps) < most:
        state = solver.step(objective, state)
    return state


class CopyingKeeper:
    """Keeps the newest checkpoint as copies of plain arrays, as a file would."""

    def __init__(self, checkpoint: Checkpoint | None = None):
        self.checkpoint, self.saved = checkpoint, 0

    def save(self, checkpoint: Checkpoint) -> None:
        self.checkpoint, self.saved = Checkpoint(checkpoint.stage, _copied(checkpoint.state)), self.saved + 1

    def newest(self) -> Checkpoint | None:
        return self.checkpoint


def _copied(tree):
    """Copies of all arrays; named tuples stay what they are only where the solver cannot make them again."""
    if isinstance(tree, SolverState | Point):
        return type(tree)(*map(_copied, tree))
    if isinstance(tree, tuple):
        return tuple(map(_copied, tree))
    if isinstance(tree, dict):
        return {name: _copied(value) for name, value in tree.items()}
    assert isinstance(tree, np.ndarray | np.generic), f"{type(tree).__name__} is not an array"
    return np.array(tree)

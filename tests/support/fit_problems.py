"""Simulated recordings and fit problems for tests."""

from collections.abc import Callable, Mapping, Sequence

import equinox as eqx
import numpy as np

from hybridsim import Simulator, simulate
from hybridsim.data.run import Run
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.solve import Checkpoint
from hybridsim.identify.solvers.solver import Solver, SolverState
from hybridsim.identify.stage import Stage
from hybridsim.identify.windows import ChannelRoles, InputSignal
from hybridsim.model.model import Model
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots import double_pendulum, pendulum
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.state import Inputs

NOISE = 1e-3
DT = 0.01
FREE_BODY_CHANNELS = {f"p{c}": f"joint.q[root.{c}]" for c in ("x", "y", "z", "qw", "qx", "qy", "qz")}
DOUBLE_PENDULUM_CHANNELS = {"q0": "joint.q[joint0]", "q1": "joint.q[joint1]"}
TIGHT_BOUNDS = (
    Free("joint.damping[*]", bounds=(0.03, 0.04), initial=0.035),
    Free("body.mass[link1]", bounds=(0.1, 5)),
)
"""Free parameters of the double pendulum; the true damping is outside of the bounds."""
INITIAL_COORDINATES = [[0.6, -0.4], [-0.9, 0.3], [0.2, 1.1]]


def with_values(model: Model, where: Callable, values) -> Model:
    """Replace arrays of a model."""
    return eqx.tree_at(where, model, values)


def simulate_recording(
    sim: Simulator,
    q: Sequence[float],
    qd: Sequence[float] | None = None,
    *,
    steps: int,
    channels: Mapping[str, str],
    commands: Mapping[str, np.ndarray] | None = None,
    user: Mapping[str, np.ndarray] | None = None,
    noise: float = 0.0,
    seed: int = 0,
    name: str = "run",
) -> Run:
    """Run of a simulated motion by sensors of coordinates and velocities, with its commands (one per step).

    All velocities without noise are recorded in addition to the channels, for `objective_at_true_states`.

    Args:
        sim: simulator.
        q: initial coordinates.
        qd: initial velocities.
        steps: number of steps.
        channels: addresses `joint.q[…]` or `joint.qd[…]` by name.
        commands: commands by the name of the actuator; recorded as channels of that name.
        user: user inputs by name, likewise.
        noise: standard deviation of the noise added to each sensor channel.
        seed: seed of the noise.
        name: name of the recording.
    """
    commands, user = commands or {}, user or {}
    actuators = sim.model.actuator.names
    u = np.zeros((steps, len(actuators)))
    for actuator, values in commands.items():
        u[:, actuators.index(actuator)] = values[:steps]
    inputs = Inputs(u, None, {name: values[:steps] for name, values in user.items()})
    trajectory = simulate(sim, sim.initial_state(q, qd), inputs, steps=steps)
    assert int(trajectory.status) == 0
    random, topology = np.random.default_rng(seed), sim.model.topology
    columns = {}
    for channel, address in channels.items():
        quantity, _, coordinate = address.rstrip("]").partition("[")
        values = trajectory.q[:, topology.coordinate_names.index(coordinate)] if quantity == "joint.q" else None
        values = trajectory.qd[:, topology.dof_names.index(coordinate)] if values is None else values
        columns[channel] = values + noise * random.standard_normal(steps + 1)
    speeds = {f"speed {name}": trajectory.qd[:, k] for k, name in enumerate(topology.dof_names)}
    input_columns = {name: np.append(values[:steps], values[steps - 1]) for name, values in (commands | user).items()}
    assert not columns.keys() & input_columns.keys(), "a channel has the name of an input"
    return Run.from_arrays(name, np.asarray(trajectory.t), columns | input_columns | speeds)


def build_fit_problem(
    sim: Simulator,
    channels: Mapping[str, str],
    free_parameters: Sequence[Free],
    train: Sequence[Run],
    *,
    noise: float = NOISE,
    commands: Sequence[str] = (),
    user: Sequence[str] = (),
    held_out: Sequence[Run] = (),
    **sensors,
) -> FitProblem:
    """Fit problem whose input channels have the names of their actuators and user inputs."""
    setup = Setup(sim, Sensors.from_addresses(sim, channels, **sensors))
    channel_roles = ChannelRoles(
        dict.fromkeys(channels, noise),
        {name: InputSignal(name) for name in commands},
        {name: InputSignal(name) for name in user},
    )
    return FitProblem(setup, ParameterSpace(setup, free_parameters), channel_roles, tuple(train), tuple(held_out))


def true_double_pendulum() -> Model:
    """Double pendulum with the true damping and masses."""
    return with_values(
        double_pendulum(), lambda m: (m.joint.damping, m.body.mass), (np.array([0.05, 0.02]), np.array([1.2, 0.7]))
    )


def double_pendulum_problem(
    free_parameters: Sequence[Free] = (
        Free("joint.damping[*]", bounds=(0, 1)),
        Free("body.mass[link1]", bounds=(0.1, 5)),
    ),
    *,
    backend: str = "auto",
    noise: float = 0.0,
    model: Model | None = None,
    steps: int = 60,
    **options,
) -> FitProblem:
    """Two links with unknown damping and one unknown mass; only mass ratios are identifiable, so the other is known."""
    true = with_values(true_double_pendulum(), lambda m: m.body.mass, np.array([1.0, 0.7]))
    true_sim = Simulator(true if model is None else model, dt=DT)
    runs = [
        simulate_recording(
            true_sim, q, steps=steps, channels=DOUBLE_PENDULUM_CHANNELS, noise=noise, seed=k, name=f"run{k}"
        )
        for k, q in enumerate(INITIAL_COORDINATES)
    ]
    return build_fit_problem(
        Simulator(double_pendulum(), dt=DT, backend=backend), DOUBLE_PENDULUM_CHANNELS, free_parameters, runs, **options
    )


def pendulum_problem(
    free_parameters: Sequence[Free] = (Free("joint.damping[*]", bounds=(0, 1)),),
    *,
    damping: float = 0.1,
    steps: int = 80,
    noise: float = 0.0,
    **options,
) -> FitProblem:
    """One link with unknown damping."""
    channels = {"q0": "joint.q[joint0]"}
    true_sim = Simulator(pendulum(damping=damping), dt=DT)
    runs = [
        simulate_recording(true_sim, [q], steps=steps, channels=channels, noise=noise, seed=k, name=f"run{k}")
        for k, q in enumerate((1.2, -0.7))
    ]
    return build_fit_problem(Simulator(pendulum(), dt=DT), channels, free_parameters, runs, **options)


def objective_at_true_states(fit_problem: FitProblem, stage: Stage) -> Objective:
    """Objective of a stage with the true initial states as its guess; channels must be all coordinates, in order."""
    objective, _ = fit_problem.objective(stage)
    w, model = objective.windows, fit_problem.setup.sim.model
    rows = np.round(w.start / w.dt).astype(int)
    names = [*fit_problem.setup.sensors.names, *(f"speed {name}" for name in model.topology.dof_names)]
    states = np.array(
        [
            [fit_problem.train[run].series[name].values[row] for name in names]
            for run, row in zip(w.recording, rows, strict=True)
        ]
    )
    return Objective(
        objective.simulator, objective.layout, w, (states[:, : model.nq], states[:, model.nq :]), objective.settings
    )


def run_solver(solver: Solver, objective: Objective, point: Point, max_steps: int = 10**6) -> SolverState:
    """Run a solver to termination or up to a number of steps; returns its state."""
    state = solver.init(objective, point)
    while not solver.is_done(state) and int(state.steps) < max_steps:
        state = solver.step(objective, state)
    return state


class CopyingCheckpointStore:
    """Checkpoint store in memory that copies all arrays, as writing to a file does."""

    def __init__(self, checkpoint: Checkpoint | None = None):
        self.checkpoint, self.save_count = checkpoint, 0

    def save(self, checkpoint: Checkpoint) -> None:
        self.checkpoint, self.save_count = Checkpoint(checkpoint.stage, _copy(checkpoint.state)), self.save_count + 1

    def load_newest(self) -> Checkpoint | None:
        return self.checkpoint


def _copy(tree):
    """Copies of all arrays; solver-specific named tuples become plain tuples, which `restore` must convert back."""
    if isinstance(tree, SolverState | Point):
        return type(tree)(*map(_copy, tree))
    if isinstance(tree, tuple):
        return tuple(map(_copy, tree))
    if isinstance(tree, dict):
        return {name: _copy(value) for name, value in tree.items()}
    assert isinstance(tree, np.ndarray | np.generic), f"{type(tree).__name__} is not an array"
    return np.array(tree)

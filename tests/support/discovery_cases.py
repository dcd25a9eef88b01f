"""Models with unmodelled effects, and candidate networks with more inputs and outputs than needed."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import equinox as eqx
import numpy as np

from hybridsim.data.run import Run
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.stage import Stage
from hybridsim.identify.windows import ChannelRoles, InputSignal
from hybridsim.model.model import Model
from hybridsim.networks.drag import RodDrag
from hybridsim.networks.friction import JointFriction
from hybridsim.networks.internal_force import InternalForce
from hybridsim.networks.mlp import MLP
from hybridsim.networks.passive import Dissipative
from hybridsim.networks.prune import WHOLE
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots import double_pendulum, n_link_pendulum, swimmer
from hybridsim.sim.rollout import simulate
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs
from hybridsim.taps.blueprint import Blueprint, Graft

DT, STEPS, RUNS, HELD_OUT = 0.005, 400, 8, 3
NOISE = 1e-3
"""Noise standard deviation assumed in the fit, also for noise-free measurements [rad or m]."""


class DiscoveryCase(NamedTuple):
    """A discovery problem with known solution."""

    problem: Callable[[float], FitProblem]
    """Problem as a function of the standard deviation of the noise."""
    required: frozenset[tuple[int, int]]
    """True support: indices of the graft and of its input, or `WHOLE`."""
    window: float
    """Length of the windows [s]."""
    warm_up_windows: tuple[float, ...]
    """Window lengths of the warm-up stages [s]."""

    @property
    def stage(self) -> Stage:
        return Stage(window=self.window, solver=LevenbergMarquardt(max_steps=30))

    @property
    def warm_up(self) -> list[Stage]:
        return [Stage(window=window, solver=LevenbergMarquardt(max_steps=30)) for window in self.warm_up_windows]


def discovery_problem(
    true: Simulator,
    model: Model,
    grafts: list[Graft],
    initial_states: list[tuple[np.ndarray, np.ndarray]],
    noise: float,
    commands: list[np.ndarray] | None = None,
) -> FitProblem:
    """Fit of grafts in an incomplete model to simulated recordings of the true one, with all coordinates measured."""
    rng = np.random.default_rng(1)
    names, actuators = model.topology.coordinate_names, model.actuator.names
    runs = []
    for k, (q, qd) in enumerate(initial_states):
        u = np.zeros((STEPS, model.nu)) if commands is None else commands[k]
        trajectory = simulate(true, true.initial_state(q, qd), Inputs(u), steps=STEPS)
        measured = trajectory.q + noise * rng.standard_normal(trajectory.q.shape)
        channels = {f"q {name}": measured[:, i] for i, name in enumerate(names)}
        command_channels = {f"u {name}": np.append(u[:, i], u[-1, i]) for i, name in enumerate(actuators)}
        runs.append(Run.from_arrays(f"run{k}", np.asarray(trajectory.t), channels | command_channels))
    sim = Simulator(model, dt=DT, blueprint=Blueprint(*grafts))
    setup = Setup(sim, Sensors.from_addresses(sim, {f"q {name}": f"joint.q[{name}]" for name in names}))
    channel_roles = ChannelRoles(
        {f"q {name}": NOISE for name in names}, {name: InputSignal(f"u {name}") for name in actuators}
    )
    train, held_out = tuple(runs[:-HELD_OUT]), tuple(runs[-HELD_OUT:])
    return FitProblem(setup, ParameterSpace(setup, [Free("graft[*]")]), channel_roles, train, held_out)


READS = {"joint.q": (1.0, 1.0), "joint.qd": (4.0, 4.0), "step.time": (1.0,)}
POSES = {"body.pose[*].p.x": (0.5, 0.5), "body.pose[*].p.z": (0.5, 0.5)}


def pendulum_discovery(reads: Mapping, noise: float, damping=(0.0, 0.0), stiffness=(0.0, 0.0)) -> FitProblem:
    """Double pendulum with unmodelled damping and stiffness; `reads` are candidate inputs with their scales."""
    model, joint_parameters = double_pendulum(), (np.array(damping), np.array(stiffness))
    true = eqx.tree_at(lambda m: (m.joint.damping, m.joint.stiffness), model, joint_parameters)
    rng = np.random.default_rng(0)
    initial_states = [(rng.uniform(-1.5, 1.5, 2), rng.normal(size=2)) for _ in range(RUNS)]
    scale = [x for scales in reads.values() for x in scales]
    grafts = [
        Graft(f"joint.tau[joint{k}]", list(reads), MLP(len(scale), 1, hidden=(6,), input_scale=scale)) for k in range(2)
    ]
    return discovery_problem(Simulator(true, dt=DT), model, grafts, initial_states, noise)


class Spring(InternalForce):
    """Spring of 20 N/m with a rest length of 0.8 m, less than the distance between the hanging links."""

    def axial_force(self, length, rate):
        return -20.0 * (length - 0.8)


def between(i: int, j: int, kind=InternalForce, **options) -> Graft:
    """Graft of a force between the midpoints of two links."""
    links, midpoint = f"[link{i},link{j}]", (0.0, 0.0, -0.25)
    reads = [f"body.pose{links}", f"body.twist{links}"]
    return Graft(f"body.external_wrench{links}", reads, kind(midpoint, midpoint, **options))


def chain_discovery(links: int, spring: tuple[int, int], noise: float, *, friction: bool) -> FitProblem:
    """Chain with an unmodelled spring between two links; candidates: forces between all pairs, joint friction."""
    model = n_link_pendulum(links, lengths=[0.5] * links, masses=[0.5] * links)
    rng = np.random.default_rng(0)
    initial_states = [(rng.uniform(-0.8, 0.8, links), rng.normal(size=links)) for _ in range(RUNS)]
    options = {"hidden": (6,), "force_scale": 5.0, "distance_scale": 0.5}
    grafts = [between(j, i, **options) for i in range(links) for j in range(i)]
    if friction:
        nets = [JointFriction(hidden=(4,), friction_scale=0.1) for _ in range(links)]
        grafts += [Graft(f"joint.tau[joint{k}]", f"joint.qd[joint{k}]", net) for k, net in enumerate(nets)]
    true = Simulator(model, dt=DT, blueprint=Blueprint(between(*spring, Spring)))
    return discovery_problem(true, model, grafts, initial_states, noise)


def swimmer_discovery(structured: bool, drag: RodDrag, noise: float) -> FitProblem:
    """Swimmer of four links with unmodelled drag of the third; candidates are wrenches on all links."""
    model, rng, t = swimmer(4), np.random.default_rng(0), DT * np.arange(STEPS)
    initial_states, commands = [], []
    for _ in range(RUNS):
        q = np.concatenate([np.zeros(2), rng.uniform(-1.0, 1.0, 4)])
        initial_states.append((q, np.concatenate([0.2 * rng.normal(size=2), 0.7 * rng.normal(size=4)])))
        frequency, phase = rng.uniform(0.5, 2.0, model.nu), rng.uniform(0.0, 6.0, model.nu)
        commands.append(0.001 * np.sin(2.0 * np.pi * t[:, None] * frequency + phase))
    scale, grafts = [3.0, 0.3, 0.3], []
    for k in range(4):
        twist = [f"body.twist[link{k}].{part}" for part in ("omega.z", "v.x", "v.y")]
        wrench = [f"body.external_wrench[link{k}].{part}" for part in ("torque.z", "force.x", "force.y")]
        if structured:
            net = Dissipative(3, 3, hidden=(6,), input_scale=scale, damping_scale=0.1)
            grafts.append(Graft(wrench, [*twist, *twist], net))
        else:
            net = MLP(3, 3, hidden=(6,), input_scale=scale, output_scale=[0.01, 0.1, 0.1])
            grafts.append(Graft(wrench, twist, net))
    truth = Blueprint(Graft("body.external_wrench[link2]", "body.twist[link2]", drag))
    return discovery_problem(Simulator(model, dt=DT, blueprint=truth), model, grafts, initial_states, noise, commands)


ROD = ((-0.1, 0.0, 0.0), (0.0, 0.0, 0.0))
DAMPING_SUPPORT = frozenset({(0, 2), (1, 3)})
"""Each joint's graft reads the velocity of the same joint."""
CASES = {
    "damping of both joints": DiscoveryCase(
        lambda noise: pendulum_discovery(READS | POSES, noise, (0.15, 0.1)), DAMPING_SUPPORT, 1.0, (0.25,)
    ),
    "damping of one joint": DiscoveryCase(
        lambda noise: pendulum_discovery(READS | POSES, noise, (0.15, 0.0)), frozenset({(0, 2)}), 1.0, (0.25,)
    ),
    "damping and stiffness": DiscoveryCase(
        lambda noise: pendulum_discovery(READS, noise, (0.15, 0.1), (2.0, 1.0)),
        DAMPING_SUPPORT | {(0, 0), (1, 1)},
        1.0,
        (0.25,),
    ),
    "a spring in a chain of four links": DiscoveryCase(
        lambda noise: chain_discovery(4, (1, 3), noise, friction=True), frozenset({(4, WHOLE)}), 0.5, (0.1,)
    ),
    "drag of one link": DiscoveryCase(
        lambda noise: swimmer_discovery(False, RodDrag(*ROD, linear=0.8), noise),
        frozenset({(2, 0), (2, 2)}),
        0.5,
        (0.1,),
    ),
    "drag of one link, structured": DiscoveryCase(
        lambda noise: swimmer_discovery(True, RodDrag(*ROD, linear=0.5, quadratic=1.0), noise),
        frozenset({(2, WHOLE)}),
        0.5,
        (0.1,),
    ),
}

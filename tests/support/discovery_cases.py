"""Mechanisms that miss something, and networks that may read and change more than is needed."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import equinox as eqx
import numpy as np

from hybridsim.data.recording import Recording
from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.windows import InputSignal, Measurements
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
"""Standard deviation that errors are measured by, also where there is no noise [rad or m]."""


class Case(NamedTuple):
    """Something to be found."""

    problem: Callable[[float], FitProblem]
    """Of the standard deviation of the noise."""
    wanted: frozenset[tuple[int, int]]
    """Numbers of the grafts that are needed and of their inputs, or `WHOLE`."""
    window: float
    """Length of the windows [s]."""
    before: tuple[float, ...]
    """Of those that the first fit begins with."""

    @property
    def stage(self) -> Stage:
        return Stage(window=self.window, solver=LevenbergMarquardt(max_steps=30))

    @property
    def warm_up(self) -> list[Stage]:
        return [Stage(window=window, solver=LevenbergMarquardt(max_steps=30)) for window in self.before]


def candidates(
    true: Simulator,
    model: Model,
    grafts: list[Graft],
    starts: list[tuple[np.ndarray, np.ndarray]],
    noise: float,
    commands: list[np.ndarray] | None = None,
) -> FitProblem:
    """Motions of a mechanism whose coordinates are all measured, and a model that misses something, with networks."""
    rng = np.random.default_rng(1)
    names, actuators = model.topology.coordinate_names, model.actuator.names
    runs = []
    for k, (q, qd) in enumerate(starts):
        u = np.zeros((STEPS, model.nu)) if commands is None else commands[k]
        motion = simulate(true, true.initial_state(q, qd), Inputs(u), steps=STEPS)
        measured = motion.q + noise * rng.standard_normal(motion.q.shape)
        channels = {f"q {name}": measured[:, i] for i, name in enumerate(names)}
        drives = {f"u {name}": np.append(u[:, i], u[-1, i]) for i, name in enumerate(actuators)}
        runs.append(Recording.from_arrays(f"run{k}", np.asarray(motion.t), channels | drives))
    sim = Simulator(model, dt=DT, blueprint=Blueprint(*grafts))
    setup = Setup(sim, Sensors.of(sim, {f"q {name}": f"joint.q[{name}]" for name in names}))
    told = Measurements({f"q {name}": NOISE for name in names}, {name: InputSignal(f"u {name}") for name in actuators})
    train, held_out = tuple(runs[:-HELD_OUT]), tuple(runs[-HELD_OUT:])
    return FitProblem(setup, ParameterSpace(setup, [Free("graft[*]")]), told, train, held_out)


READS = {"joint.q": (1.0, 1.0), "joint.qd": (4.0, 4.0), "step.time": (1.0,)}
POSES = {"body.pose[*].p.x": (0.5, 0.5), "body.pose[*].p.z": (0.5, 0.5)}


def pendulum(reads: Mapping, noise: float, damping=(0.0, 0.0), stiffness=(0.0, 0.0)) -> FitProblem:
    """A double pendulum; the torque of each joint may depend on much, given with its usual sizes."""
    model, losses = double_pendulum(), (np.array(damping), np.array(stiffness))
    true = eqx.tree_at(lambda m: (m.joint.damping, m.joint.stiffness), model, losses)
    rng = np.random.default_rng(0)
    starts = [(rng.uniform(-1.5, 1.5, 2), rng.normal(size=2)) for _ in range(RUNS)]
    scale = [x for some in reads.values() for x in some]
    grafts = [
        Graft(f"joint.tau[joint{k}]", list(reads), MLP(len(scale), 1, hidden=(6,), input_scale=scale)) for k in range(2)
    ]
    return candidates(Simulator(true, dt=DT), model, grafts, starts, noise)


class Spring(InternalForce):
    """20 N/m, 0.8 m long: shorter than the distance of the links where they hang down."""

    def along(self, length, rate):
        return -20.0 * (length - 0.8)


def between(i: int, j: int, kind=InternalForce, **options) -> Graft:
    """A force between the middles of two links."""
    links, middle = f"[link{i},link{j}]", (0.0, 0.0, -0.25)
    reads = [f"body.pose{links}", f"body.twist{links}"]
    return Graft(f"body.external_force{links}", reads, kind(middle, middle, **options))


def chain(links: int, spring: tuple[int, int], noise: float, *, friction: bool) -> FitProblem:
    """A chain with a spring between two links; any two may have one, and any joint friction."""
    model = n_link_pendulum(links, lengths=[0.5] * links, masses=[0.5] * links)
    rng = np.random.default_rng(0)
    starts = [(rng.uniform(-0.8, 0.8, links), rng.normal(size=links)) for _ in range(RUNS)]
    options = {"hidden": (6,), "force_scale": 5.0, "distance_scale": 0.5}
    grafts = [between(j, i, **options) for i in range(links) for j in range(i)]
    if friction:
        nets = [JointFriction(hidden=(4,), friction_scale=0.1) for _ in range(links)]
        grafts += [Graft(f"joint.tau[joint{k}]", f"joint.qd[joint{k}]", net) for k, net in enumerate(nets)]
    true = Simulator(model, dt=DT, blueprint=Blueprint(between(*spring, Spring)))
    return candidates(true, model, grafts, starts, noise)


def swimming(structured: bool, drag: RodDrag, noise: float) -> FitProblem:
    """A swimmer of four links of which the third has drag; any may have some."""
    model, rng, t = swimmer(4), np.random.default_rng(0), DT * np.arange(STEPS)
    starts, commands = [], []
    for _ in range(RUNS):
        q = np.concatenate([np.zeros(2), rng.uniform(-1.0, 1.0, 4)])
        starts.append((q, np.concatenate([0.2 * rng.normal(size=2), 0.7 * rng.normal(size=4)])))
        frequency, phase = rng.uniform(0.5, 2.0, model.nu), rng.uniform(0.0, 6.0, model.nu)
        commands.append(0.001 * np.sin(2.0 * np.pi * t[:, None] * frequency + phase))
    scale, grafts = [3.0, 0.3, 0.3], []
    for k in range(4):
        twist = [f"body.twist[link{k}].{part}" for part in ("omega.z", "v.x", "v.y")]
        wrench = [f"body.external_force[link{k}].{part}" for part in ("torque.z", "force.x", "force.y")]
        if structured:
            net = Dissipative(3, 3, hidden=(6,), input_scale=scale, damping_scale=0.1)
            grafts.append(Graft(wrench, [*twist, *twist], net))
        else:
            net = MLP(3, 3, hidden=(6,), input_scale=scale, output_scale=[0.01, 0.1, 0.1])
            grafts.append(Graft(wrench, twist, net))
    truth = Blueprint(Graft("body.external_force[link2]", "body.twist[link2]", drag))
    return candidates(Simulator(model, dt=DT, blueprint=truth), model, grafts, starts, noise, commands)


ROD = ((-0.1, 0.0, 0.0), (0.0, 0.0, 0.0))
DAMPED = frozenset({(0, 2), (1, 3)})
"""Each joint's own velocity."""
CASES = {
    "damping of both joints": Case(lambda noise: pendulum(READS | POSES, noise, (0.15, 0.1)), DAMPED, 1.0, (0.25,)),
    "damping of one joint": Case(
        lambda noise: pendulum(READS | POSES, noise, (0.15, 0.0)), frozenset({(0, 2)}), 1.0, (0.25,)
    ),
    "damping and stiffness": Case(
        lambda noise: pendulum(READS, noise, (0.15, 0.1), (2.0, 1.0)), DAMPED | {(0, 0), (1, 1)}, 1.0, (0.25,)
    ),
    "a spring in a chain of four links": Case(
        lambda noise: chain(4, (1, 3), noise, friction=True), frozenset({(4, WHOLE)}), 0.5, (0.1,)
    ),
    "drag of one link": Case(
        lambda noise: swimming(False, RodDrag(*ROD, linear=0.8), noise), frozenset({(2, 0), (2, 2)}), 0.5, (0.1,)
    ),
    "drag of one link, structured": Case(
        lambda noise: swimming(True, RodDrag(*ROD, linear=0.5, quadratic=1.0), noise),
        frozenset({(2, WHOLE)}),
        0.5,
        (0.1,),
    ),
}

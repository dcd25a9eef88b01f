"""Discovery among sites: which bodies a spring connects, and which link of a swimmer has drag."""

import numpy as np
import pytest
from fit_problems import NOISE, problem, recorded

from hybridsim.core.errors import TapError
from hybridsim.identify.discover import discover
from hybridsim.identify.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.problem import Problem, Stage
from hybridsim.models import double_pendulum, n_link_pendulum, swimmer
from hybridsim.params.free import Free
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft
from hybridsim.taps.drag import RodDrag
from hybridsim.taps.friction import JointFriction
from hybridsim.taps.internal import InternalForce
from hybridsim.taps.networks import MLP
from hybridsim.taps.passive import Dissipative

DT, STEPS = 0.005, 400
FAST = LevenbergMarquardt(most_steps=30)
STAGE, WARM_UP = Stage(window=0.5, solver=FAST), (Stage(window=0.1, solver=FAST),)


class Spring(InternalForce):
    """40 N/m, 0.4 m long."""

    def along(self, length, rate):
        return -40.0 * (length - 0.4)


def between(i: int, j: int, kind=InternalForce, **options) -> Graft:
    """A force between the middles of two links."""
    links, middle = f"[link{i},link{j}]", (0.0, 0.0, -0.25)
    reads = [f"body.pose{links}", f"body.twist{links}"]
    return Graft(f"body.external_force{links}", reads, kind(middle, middle, **options))


def chain(links: int, spring: tuple[int, int], noise: float, friction: bool) -> Problem:
    """A chain with a spring between two links; any two may have one, and any joint friction."""
    model = n_link_pendulum(links, lengths=[0.5] * links, masses=[0.5] * links)
    true = Simulator(model, dt=DT, blueprint=Blueprint(between(*spring, Spring)))
    channels = {f"q{k}": f"joint.q[joint{k}]" for k in range(links)}
    rng = np.random.default_rng(0)
    runs = []
    for k in range(8):
        q, qd = rng.uniform(-1.0, 1.0, links), rng.normal(size=links)
        runs.append(recorded(true, q, qd, steps=STEPS, channels=channels, noise=noise, seed=k, name=str(k)))
    options = {"hidden": (6,), "force_scale": 10.0, "distance_scale": 0.5}
    grafts = [between(j, i, **options) for i in range(links) for j in range(i)]
    if friction:
        nets = [JointFriction(hidden=(4,), friction_scale=0.1) for _ in range(links)]
        grafts += [Graft(f"joint.tau[joint{k}]", f"joint.qd[joint{k}]", net) for k, net in enumerate(nets)]
    sim = Simulator(model, dt=DT, blueprint=Blueprint(*grafts))
    return problem(sim, channels, [Free("graft[*]")], runs[:5], held_out=runs[5:])


def swimming(kind: str, drag: RodDrag, noise: float) -> Problem:
    """Four links of which the third has drag; any may have some."""
    model = swimmer(4)
    true = Simulator(model, dt=DT, blueprint=Blueprint(Graft("body.external_force[link2]", "body.twist[link2]", drag)))
    channels = {f"of {name}": f"joint.q[{name}]" for name in model.topology.coordinate_names}
    rng, t = np.random.default_rng(0), DT * np.arange(STEPS)
    runs = []
    for k in range(8):
        drives = {
            name: 0.001 * np.sin(2.0 * np.pi * rng.uniform(0.5, 2.0) * t + rng.uniform(0.0, 6.0))
            for name in model.actuator.names
        }
        q = np.concatenate([np.zeros(2), rng.uniform(-1.0, 1.0, 4)])
        qd = np.concatenate([0.2 * rng.normal(size=2), 0.7 * rng.normal(size=4)])
        more = {"channels": channels, "drives": drives, "noise": noise, "seed": k, "name": str(k)}
        runs.append(recorded(true, q, qd, steps=STEPS, **more))
    grafts = []
    for k in range(4):
        twist = [f"body.twist[link{k}].{part}" for part in ("omega.z", "v.x", "v.y")]
        wrench = [f"body.external_force[link{k}].{part}" for part in ("torque.z", "force.x", "force.y")]
        if kind == "perceptrons":
            net = MLP(3, 3, hidden=(6,), input_scale=[3.0, 0.3, 0.3], output_scale=[0.01, 0.1, 0.1])
            grafts.append(Graft(wrench, twist, net))
        else:
            net = Dissipative(3, 3, hidden=(6,), input_scale=[3.0, 0.3, 0.3], damping_scale=0.1)
            grafts.append(Graft(wrench, [*twist, *twist], net))
    sim = Simulator(model, dt=DT, blueprint=Blueprint(*grafts))
    commands = model.actuator.names
    return problem(sim, channels, [Free("graft[*]")], runs[:5], held_out=runs[5:], commands=commands)


ROD = ((-0.1, 0.0, 0.0), (0.0, 0.0, 0.0))
CASES = {
    "a spring in a chain of four links": (lambda noise: chain(4, (1, 3), noise, friction=True), {(4, -1)}),
    "drag of a link by perceptrons": (
        lambda noise: swimming("perceptrons", RodDrag(*ROD, linear=0.8), noise),
        {(2, 0), (2, 2)},
    ),
    "drag of a link by dissipative networks": (
        lambda noise: swimming("dissipative", RodDrag(*ROD, linear=0.5, quadratic=1.0), noise),
        {(2, -1)},
    ),
}
"""Problems, and the numbers of grafts and inputs that are to be found."""


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, NOISE])
@pytest.mark.parametrize("case", CASES)
def test_exact_sites_in_nine_of_ten_seeds(case, noise):
    made, wanted = CASES[case]
    found = discover(made(noise), STAGE, seeds=range(10), warm_up=WARM_UP, tell=print)
    exact = [{(c.graft, c.column) for c in one.best.support} == wanted for one in found.seeds]
    assert sum(exact) >= 9


def test_a_spring_is_found_between_its_bodies_and_the_others_are_left_out():
    of = chain(3, (0, 2), NOISE, friction=False)
    found = discover(of, STAGE, seeds=[0], warm_up=WARM_UP)
    (spring,) = found.support
    assert str(spring) == (
        "InternalForce(body.pose[link0,link2], body.twist[link0,link2]) → body.external_force[link0,link2]"
    )
    assert found.plain > 100.0 and found.best.best.error == pytest.approx(1.0, abs=0.1)
    (graft,) = found.blueprint().grafts
    assert graft.outputs == ("body.external_force[link0,link2]",)
    # its force is the spring's, where motions have been
    lengths = np.linspace(0.5, 0.9, 5)
    forces = [float(graft.net.along(x, np.zeros(()))) for x in lengths]
    np.testing.assert_allclose(forces, -40.0 * (lengths - 0.4), atol=0.5)


def test_what_replaces_a_quantity_cannot_be_left_out():
    of = chain(3, (0, 2), 0.0, friction=False)
    graft = Graft("joint.tau", ["joint.q", "joint.qd"], MLP(4, 2, hidden=(3,)), mode="replace")
    sim = Simulator(double_pendulum(), dt=DT, blueprint=Blueprint(graft))
    channels = {"q0": "joint.q[joint0]", "q1": "joint.q[joint1]"}
    with pytest.raises(TapError, match="cannot be tried without"):
        discover(problem(sim, channels, [Free("graft[*]")], of.train, held_out=of.held_out), STAGE)

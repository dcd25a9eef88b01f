"""Discovery finds what a mechanism really depends on, and nothing else."""

import equinox as eqx
import numpy as np
import pytest
from fit_problems import DOUBLE, NOISE, problem, recorded

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.discover import discover
from hybridsim.identify.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.problem import Problem, Stage
from hybridsim.models import double_pendulum
from hybridsim.params.free import Free
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.step import step
from hybridsim.taps.blueprint import Blueprint, Graft
from hybridsim.taps.networks import MLP

DT = 0.005
FAST = LevenbergMarquardt(most_steps=30)
STAGE, WARM_UP = Stage(window=1.0, solver=FAST), (Stage(window=0.25, solver=FAST),)
READS = {"joint.q": (1.0, 1.0), "joint.qd": (4.0, 4.0), "step.time": (1.0,)}
POSES = {"body.pose[*].p.x": (0.5, 0.5), "body.pose[*].p.z": (0.5, 0.5)}


def candidates(reads, damping=(0.0, 0.0), stiffness=(0.0, 0.0), noise=0.0, runs=8, hidden=(6,)) -> Problem:
    """A double pendulum whose networks may read more than they need."""
    model = double_pendulum()
    true = eqx.tree_at(lambda m: (m.joint.damping, m.joint.stiffness), model, (np.array(damping), np.array(stiffness)))
    rng = np.random.default_rng(0)
    sim = Simulator(true, dt=DT)
    found = [
        recorded(
            sim,
            rng.uniform(-1.5, 1.5, 2),
            rng.normal(size=2),
            steps=400,
            channels=DOUBLE,
            noise=noise,
            seed=k,
            name=str(k),
        )
        for k in range(runs)
    ]
    scale = [x for some in reads.values() for x in some]
    grafts = [
        Graft(f"joint.tau[joint{k}]", list(reads), MLP(len(scale), 1, hidden=hidden, input_scale=scale))
        for k in range(2)
    ]
    of = problem(Simulator(model, dt=DT, blueprint=Blueprint(*grafts)), DOUBLE, [Free("graft[*]")], found[:5])
    return Problem(of.setup, of.space, of.measured, tuple(found[:5]), tuple(found[5:]))


DAMPED = {"joint.qd[joint0] → joint.tau[joint0]", "joint.qd[joint1] → joint.tau[joint1]"}


def test_damping_is_found_and_the_blueprint_is_ready_to_use():
    of = candidates(READS, damping=(0.15, 0.1), noise=NOISE)
    found = discover(of, STAGE, seeds=[0], warm_up=WARM_UP)
    assert {str(column) for column in found.support} == DAMPED
    assert found.plain > 30.0 and found.best.best.error == pytest.approx(1.0, abs=0.1)
    assert found.sites == {("joint.tau[joint0]",): 1.0, ("joint.tau[joint1]",): 1.0}
    blueprint = found.blueprint()
    assert [graft.inputs for graft in blueprint.grafts] == [("joint.qd[joint0]",), ("joint.qd[joint1]",)]
    # the same as the network with all of its inputs, of which most have no weight
    sim = of.space.put(of.setup, found.best.best.theta).sim
    state = sim.initial_state([0.5, -0.2], [1.0, 2.0])
    pruned = Simulator(sim.model, dt=DT, blueprint=blueprint)
    np.testing.assert_allclose(step(pruned, state).qd, step(sim, state).qd, rtol=1e-12)
    # seeds that are known are not done again
    told = []
    again = discover(of, STAGE, seeds=[0], known={0: found.seeds[0]}, tell=told.append)
    assert again.support == found.support and not told


CASES = {
    "both joints": ({**READS, **POSES}, {"damping": (0.15, 0.1)}, DAMPED),
    "one joint": ({**READS, **POSES}, {"damping": (0.15, 0.0)}, {"joint.qd[joint0] → joint.tau[joint0]"}),
    "friction and stiffness": (
        READS,
        {"damping": (0.15, 0.1), "stiffness": (2.0, 1.0)},
        DAMPED | {"joint.q[joint0] → joint.tau[joint0]", "joint.q[joint1] → joint.tau[joint1]"},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, NOISE])
@pytest.mark.parametrize("case", CASES)
def test_exact_supports_in_nine_of_ten_seeds(case, noise):
    """Distractors: time, and positions of the bodies."""
    reads, physics, wanted = CASES[case]
    found = discover(candidates(reads, noise=noise, **physics), STAGE, seeds=range(10), warm_up=WARM_UP)
    exact = [{str(column) for column in one.best.support} == wanted for one in found.seeds]
    assert sum(exact) >= 9


def test_nothing_is_found_where_nothing_is_missing():
    found = discover(candidates(READS, runs=6), STAGE, seeds=[0])
    assert not found.support and not found.blueprint().grafts


def test_what_cannot_be_chosen_from_is_told():
    of = candidates(READS, runs=6)
    with pytest.raises(HybridsimError, match="hold some out"):
        discover(Problem(of.setup, of.space, of.measured, of.train), STAGE)
    plain = problem(Simulator(double_pendulum(), dt=DT), DOUBLE, [Free("joint.damping[*]")], of.train)
    with pytest.raises(HybridsimError, match="no inputs to choose from"):
        discover(Problem(plain.setup, plain.space, plain.measured, of.train, of.held_out), STAGE)

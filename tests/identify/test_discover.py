"""Discovery selects exactly the inputs that a mechanism depends on."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError, TapError
from hybridsim.identify import score
from hybridsim.identify.discover import Discovery, discover
from hybridsim.identify.initial_state_fit import fit_initial_states
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.support_search import FittedSupport, SeedResult, SupportSearch, theta_with_fresh_networks
from hybridsim.networks.mlp import MLP
from hybridsim.networks.prune import PruningUnit, pruning_units
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots import double_pendulum
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.step import step
from hybridsim.taps.blueprint import Blueprint, Graft
from support.discovery_cases import (
    CASES,
    DT,
    NOISE,
    READS,
    RUNS,
    chain_discovery,
    discovery_problem,
    pendulum_discovery,
)

STAGE, WARM_UP = CASES["damping of both joints"].stage, CASES["damping of both joints"].warm_up
DAMPING_INPUTS = {"joint.qd[joint0] → joint.tau[joint0]", "joint.qd[joint1] → joint.tau[joint1]"}


def test_damping_is_found_and_the_blueprint_is_ready_to_use():
    fit_problem = pendulum_discovery(READS, NOISE, (0.15, 0.1))
    found = discover(fit_problem, STAGE, seeds=[0], warm_up=WARM_UP)
    assert {str(column) for column in found.support} == DAMPING_INPUTS
    assert found.baseline_rms > 30.0 and found.final.residual_rms == pytest.approx(1.0, abs=0.1)
    assert found.site_frequency == {("joint.tau[joint0]",): 1.0, ("joint.tau[joint1]",): 1.0}
    blueprint = found.blueprint()
    assert [graft.inputs for graft in blueprint.grafts] == [("joint.qd[joint0]",), ("joint.qd[joint1]",)]
    # equal to the network with all of its inputs, most of which have zero weights
    sim = fit_problem.space.put(fit_problem.setup, found.final.theta).sim
    state = sim.initial_state([0.5, -0.2], [1.0, 2.0])
    pruned = Simulator(sim.model, dt=DT, blueprint=blueprint)
    np.testing.assert_allclose(step(pruned, state).qd, step(sim, state).qd, rtol=1e-12)
    # completed seeds are not run again
    messages = []
    again = discover(fit_problem, STAGE, seeds=[0], completed={0: found.seed_results[0]}, log=messages.append)
    assert again.support == found.support and not messages


def test_a_spring_is_found_between_its_bodies_only():
    case = CASES["a spring in a chain of four links"]
    found = discover(chain_discovery(3, (0, 2), NOISE, friction=False), case.stage, seeds=[0], warm_up=case.warm_up)
    (spring,) = found.support
    assert str(spring) == (
        "InternalForce(body.pose[link0,link2], body.twist[link0,link2]) → body.external_wrench[link0,link2]"
    )
    assert found.baseline_rms > 30.0 and found.final.residual_rms == pytest.approx(1.0, abs=0.1)
    (graft,) = found.blueprint().grafts
    assert graft.outputs == ("body.external_wrench[link0,link2]",)
    # its force is the spring's within the range of the recordings
    lengths = np.linspace(0.75, 0.95, 5)
    forces = [float(graft.net.axial_force(x, np.zeros(()))) for x in lengths]
    np.testing.assert_allclose(forces, -20.0 * (lengths - 0.8), atol=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, NOISE])
@pytest.mark.parametrize("name", CASES)
def test_exactly_what_is_missing_is_found_in_nine_of_ten_seeds(name, noise):
    case = CASES[name]
    found = discover(case.problem(noise), case.stage, seeds=range(10), warm_up=case.warm_up)
    exact = [{(c.graft, c.column) for c in one.best.support} == case.required for one in found.seed_results]
    assert sum(exact) >= 9


@pytest.mark.parametrize("noise", [0.0, NOISE])
def test_nothing_is_found_where_nothing_is_missing(noise):
    found = discover(pendulum_discovery(READS, noise), STAGE, seeds=[0])
    assert not found.support and not found.blueprint().grafts


def constant_torque_problem(noise: float) -> FitProblem:
    """Problem of a joint with a constant external torque, and networks with many candidate inputs."""
    model, rng = double_pendulum(), np.random.default_rng(0)
    initial = [(rng.uniform(-1.5, 1.5, 2), rng.normal(size=2)) for _ in range(RUNS)]
    push = Graft("joint.tau[joint0]", "joint.q[joint0]", lambda q: 0.0 * q + 0.3)
    grafts = list(pendulum_discovery(READS, 0.0).setup.sim.blueprint.grafts)
    return discovery_problem(Simulator(model, dt=DT, blueprint=Blueprint(push)), model, grafts, initial, noise)


def test_lack_of_convergence_of_a_set_of_inputs_is_reported(monkeypatch):
    fit_problem = pendulum_discovery(READS, NOISE, (0.15, 0.1))
    units = pruning_units(fit_problem.setup.sim.bound_blueprint(), fit_problem.space.names)
    damping = frozenset(unit for unit in units if str(unit) in DAMPING_INPUTS)
    initial = theta_with_fresh_networks(fit_problem, 0)

    def fitted(max_steps):
        solver = LevenbergMarquardt(max_steps=max_steps, cost_tolerance=1e-4)
        stage, *warm_up = (replace(stage, solver=solver) for stage in (STAGE, *WARM_UP))
        search = SupportSearch(fit_problem, stage, warm_up, units, initial, lambda message: None)
        return search.fit_from_scratch(damping)

    assert fitted(60).has_converged is True and fitted(2).has_converged is False
    monkeypatch.setattr(score, "fit_initial_states", lambda *args, **_: fit_initial_states(*args, max_steps=1))
    assert fitted(60).has_converged is False


def test_a_constant_is_not_mistaken_for_an_input():
    fit_problem = constant_torque_problem(NOISE)
    found = discover(fit_problem, STAGE, seeds=[0], warm_up=WARM_UP)
    assert [str(column) for column in found.support] == ["a constant → joint.tau[joint0]"]
    (graft,) = found.blueprint().grafts
    assert float(graft.net(np.array([5.0]))[0]) == pytest.approx(0.3, rel=0.01)


@pytest.mark.slow
def test_a_faint_effect_is_found():
    """Damping that adds a tenth to the error."""
    found = discover(pendulum_discovery(READS, NOISE, (0.0, 0.0015)), STAGE, seeds=range(5), warm_up=WARM_UP)
    assert found.baseline_rms < 1.2
    assert {str(column) for column in found.support} == {"joint.qd[joint1] → joint.tau[joint1]"}


def seed_result(seed: int, *columns: PruningUnit) -> SeedResult:
    one = FittedSupport(frozenset(columns), np.zeros(1), 1.0)
    return SeedResult(seed, one, (), one)


def test_frequencies_of_inputs_and_sites_over_seeds():
    fit_problem = pendulum_discovery(READS, 0.0)
    columns = pruning_units(fit_problem.setup.sim.bound_blueprint(), fit_problem.space.names)
    first, second = columns[0], columns[-1]
    assert first.outputs != second.outputs
    seeds = (seed_result(0, first), seed_result(1, first, second), seed_result(2, first))
    discovery = Discovery(fit_problem, columns, 9.0, seeds, seeds[0].best)
    assert discovery.frequency[first] == 1.0 and discovery.frequency[second] == pytest.approx(1 / 3)
    assert discovery.site_frequency == {first.outputs: 1.0, second.outputs: pytest.approx(1 / 3)}


class NetworkWithoutAblation(eqx.Module):
    """A user-defined network without a method to ablate it."""

    log_size: np.ndarray

    def __call__(self, x):
        return -jnp.exp(self.log_size) * x


def test_a_network_that_cannot_be_ablated_is_an_error():
    fit_problem = pendulum_discovery(READS, 0.0)
    graft = Graft("joint.tau", "joint.qd", NetworkWithoutAblation(np.zeros(2)))
    setup = Setup(Simulator(double_pendulum(), dt=DT, blueprint=Blueprint(graft)), fit_problem.setup.sensors)
    fit_problem = replace(fit_problem, setup=setup, space=ParameterSpace(setup, [Free("graft[*]")]))
    with pytest.raises(TapError, match="give it a method ablate"):
        discover(fit_problem, STAGE)


def test_problems_without_candidates_are_errors():
    fit_problem = pendulum_discovery(READS, 0.0)
    with pytest.raises(HybridsimError, match="hold some out"):
        discover(FitProblem(fit_problem.setup, fit_problem.space, fit_problem.channel_roles, fit_problem.train), STAGE)

    def with_networks(*grafts, free):
        setup = Setup(Simulator(double_pendulum(), dt=DT, blueprint=Blueprint(*grafts)), fit_problem.setup.sensors)
        return replace(fit_problem, setup=setup, space=ParameterSpace(setup, [Free(free)]))

    with pytest.raises(HybridsimError, match="no inputs to choose from"):
        discover(with_networks(free="joint.damping[*]"), STAGE)
    replacing = Graft("joint.tau", ["joint.q", "joint.qd"], MLP(4, 2, hidden=(3,)), mode="replace")
    with pytest.raises(TapError, match="cannot be ablated"):
        discover(with_networks(replacing, free="graft[*]"), STAGE)

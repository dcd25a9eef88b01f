"""Identifiability of parameters, before a fit."""

import numpy as np
import pytest

from hybridsim import ModelBuilder
from hybridsim.data.run import Run
from hybridsim.identify.identifiability import identifiability
from hybridsim.identify.normal_equations import eliminate_initial_states
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.stage import Stage
from hybridsim.identify.windows import ChannelRoles
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots import double_pendulum
from hybridsim.sim.rollout import simulate
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from support.fit_problems import DT, build_fit_problem, double_pendulum_problem, pendulum_problem

NOISE = 1e-3
LINK = {"axis": (0, 1, 0), "mass": 1.0, "com": (0, 0, -0.5), "inertia": (0.1, 0.1, 0.01)}


@pytest.fixture(scope="module")
def setup_and_runs():
    """A double pendulum and two runs of it."""
    sim = Simulator(double_pendulum(), dt=0.005)
    runs = []
    for k, start in enumerate([(1.0, -0.5), (-2.0, 0.7)]):
        trajectory = simulate(sim, sim.initial_state(start), steps=200)
        angles = {"first": trajectory.q[:, 0], "second": trajectory.q[:, 1]}
        runs.append(Run.from_arrays(f"run{k}", trajectory.t, angles))
    sensors = Sensors.from_addresses(sim, {"first": "joint.q[joint0]", "second": "joint.q[joint1]"})
    return Setup(sim, sensors), tuple(runs)


def identifiability_of(setup_and_runs, *free_parameters: Free):
    setup, runs = setup_and_runs
    channel_roles = ChannelRoles({"first": NOISE, "second": NOISE}, {}, {})
    fit_problem = FitProblem(setup, ParameterSpace(setup, list(free_parameters)), channel_roles, runs)
    objective, _ = fit_problem.objective(Stage(window=0.5))
    return identifiability(objective, objective.point(fit_problem.space.initial))


def test_identifiable_parameters_cause_no_warnings(setup_and_runs):
    found = identifiability_of(setup_and_runs, Free("body.mass[link1]"), Free("joint.damping[*]", initial=0.1))
    assert found.is_identifiable and found.rank == 3
    assert found.condition_number < 1e3
    assert found.messages() == []
    assert np.isfinite(found.theta_std).all()


def test_an_unidentifiable_parameter_is_named(setup_and_runs):
    """Both joints rotate about y: the lateral centre of mass of the first link has no effect."""
    found = identifiability_of(setup_and_runs, Free("body.mass[link1]"), Free("body.com[link0].y"))
    assert found.unidentifiable == ("body.com[link0].y",)
    assert found.rank == 1 and found.condition_number == np.inf
    assert "body.com[link0].y is unidentifiable from this data" in found.messages()[0]


def test_confounded_parameters_are_named_together(setup_and_runs):
    """Without other forces, a common factor of masses, inertias and damping has no effect."""
    free_parameters = [Free("body.mass[*]"), Free("body.inertia[*].yy"), Free("joint.damping[*]", initial=0.1)]
    found = identifiability_of(setup_and_runs, *free_parameters)
    confounded = found.confounded
    # the first link rotates about a fixed point: its mass acts through its weight and through one moment of inertia
    assert len(confounded) == 1 and found.rank == 5
    assert set(confounded[0]) == set(found.names)
    assert "are confounded" in found.messages()[0]
    assert not identifiability_of(setup_and_runs, Free("body.mass[link0]"), Free("body.inertia[link0].yy")).confounded


def test_a_prior_makes_parameters_identifiable(setup_and_runs):
    free_parameters = [Free("body.mass[link0]", prior=(1.0, 0.1)), Free("body.mass[link1]"), Free("body.inertia[*].yy")]
    assert identifiability_of(setup_and_runs, *free_parameters, Free("joint.damping[*]", initial=0.1)).is_identifiable


def test_weak_parameters_and_initial_values_at_bounds_are_reported(setup_and_runs):
    found = identifiability_of(setup_and_runs, Free("joint.armature[joint0]", bounds=(0.0, 1e-9)))
    assert found.weak == ("joint.armature[joint0]",) == found.at_bounds
    (message,) = (message for message in found.messages() if "weakly identifiable" in message)
    assert message.endswith(f"causes a standard deviation of {found.value_std[0]:.2g} kg·m²")


def test_deviations_follow_from_the_covariance(setup_and_runs):
    """The inverse of the Gauss–Newton matrix with the initial states eliminated."""
    setup, runs = setup_and_runs
    channel_roles = ChannelRoles({"first": NOISE, "second": NOISE}, {}, {})
    space = ParameterSpace(setup, [Free("body.mass[link1]"), Free("joint.damping[joint1]", initial=0.1)])
    objective, _ = FitProblem(setup, space, channel_roles, runs).objective(Stage(window=0.5))
    point = objective.point(space.initial)
    found = identifiability(objective, point)
    _, equations = objective.normal_equations(point)
    nothing = np.zeros((1, objective.N)), np.zeros((1, objective.windows.count, objective.s))
    covariance = np.linalg.inv(eliminate_initial_states(equations, *nothing).A[0])
    np.testing.assert_allclose(found.theta_std, np.sqrt(np.diag(covariance)), rtol=1e-6)


@pytest.mark.parametrize("more", [{"scale": 0.2}, {"map": "interval", "bounds": (0.3, 4.0)}])
def test_uncertainties_are_in_units_of_the_values(setup_and_runs, more):
    plain, other = (identifiability_of(setup_and_runs, Free("body.mass[link1]", **some)) for some in ({}, more))
    assert plain.units == ("kg",)
    np.testing.assert_allclose(other.value_std, plain.value_std, rtol=1e-4)
    assert abs(other.theta_std[0] / plain.theta_std[0] - 1.0) > 0.1


def test_identifiability_does_not_depend_on_the_loss():
    fit_problem = double_pendulum_problem(noise=NOISE)
    found = []
    for loss in ("linear", "cauchy"):
        objective, _ = fit_problem.objective(Stage(window=0.3, loss=loss))
        found.append(identifiability(objective, objective.point(fit_problem.space.initial)).theta_std)
    np.testing.assert_array_equal(*found)


def test_unobservable_initial_states_do_not_reduce_identifiability():
    """Two uncoupled pendulums, only one of them measured, with few samples."""
    two = ModelBuilder("two")
    for k in range(2):
        two.add_body(f"link{k}", joint=f"joint{k}", **LINK)
    one = pendulum_problem()
    channels = {"q0": "joint.q[joint0]"}
    free_parameters = [Free("joint.damping[joint0]", bounds=(0, 1))]
    fit_problem = build_fit_problem(Simulator(two.build(), dt=DT), channels, free_parameters, one.train)
    deviations = []
    for samples in (4, 12):
        objective, _ = fit_problem.objective(Stage(window=samples * DT))
        result = identifiability(objective, objective.point(fit_problem.space.initial))
        assert result.is_identifiable
        deviations.append(result.theta_std[0])
    # the same as for a single pendulum
    alone = build_fit_problem(Simulator(_single_pendulum(), dt=DT), channels, free_parameters, one.train)
    objective, _ = alone.objective(Stage(window=4 * DT))
    assert deviations[0] == pytest.approx(
        identifiability(objective, objective.point(alone.space.initial)).theta_std[0], rel=1e-6
    )


def _single_pendulum():
    single = ModelBuilder("one")
    single.add_body("link0", joint="joint0", **LINK)
    return single.build()

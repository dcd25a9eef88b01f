"""Inverse-dynamics fits: accurate where parameters are identifiable, and reported where they are not."""

import equinox as eqx
import numpy as np
import pytest

from hybridsim import Simulator
from hybridsim.core.errors import HybridsimError, ModelWarning
from hybridsim.dynamics.actuation import Actuation, AffineActuator, FirstOrderLag
from hybridsim.identify.inverse_dynamics_fit import fit_inverse_dynamics
from hybridsim.params.free import Free
from hybridsim.params.log_cholesky import nominal_body
from hybridsim.params.setup import Setup
from hybridsim.robots import cube, four_joint_arm
from support.fit_problems import FREE_BODY_CHANNELS, build_fit_problem, simulate_recording, with_values

DT, STEPS = 0.002, 1000
CHANNELS = {f"q{k}": f"joint.q[joint{k}]" for k in (1, 2, 3, 4)}
ACTUATORS = [f"joint{k}" for k in (1, 2, 3, 4)]


def excitation(seed: int) -> dict[str, np.ndarray]:
    """Torques that move every joint at several frequencies."""
    t, random = np.arange(STEPS) * DT, np.random.default_rng(seed)
    return {
        name: sum(random.uniform(0.2, 0.6) * np.sin(w * t + random.uniform(0, 6)) for w in (3.0, 7.0, 12.0))
        for name in ACTUATORS
    }


@pytest.fixture(scope="module")
def true_model():
    arm_problem = four_joint_arm()
    return with_values(
        arm_problem,
        lambda m: (m.body.mass, m.joint.damping, m.joint.friction, m.joint.armature, m.joint.friction_width),
        (
            np.asarray(arm_problem.body.mass) * [1.0, 1.2, 0.8, 1.25],
            np.array([0.2, 0.25, 0.05, 0.1]),
            np.array([0.1, 0.0, 0.15, 0.05]),
            np.array([0.02, 0.0, 0.01, 0.0]),
            np.full(4, 0.1),
        ),
    )


@pytest.fixture(scope="module")
def nominal_simulator():
    return Simulator(with_values(four_joint_arm(), lambda m: m.joint.friction_width, np.full(4, 0.1)), dt=DT)


def runs(model, noise: float):
    sim = Simulator(model, dt=DT)
    initial = ([0.3, -0.9, -0.4, 0.6], [-0.5, -1.8, 0.3, -0.2])
    return [
        simulate_recording(
            sim, q, steps=STEPS, channels=CHANNELS, commands=excitation(k), noise=noise, seed=k, name=f"run{k}"
        )
        for k, q in enumerate(initial)
    ]


@pytest.fixture(scope="module")
def arm_problem(true_model, nominal_simulator):
    free_parameters = [Free("body.mass[link4]"), Free("joint.damping[*]", bounds=(0, 0.2)), Free("joint.friction[*]")]
    return build_fit_problem(nominal_simulator, CHANNELS, free_parameters, runs(true_model, 1e-5), commands=ACTUATORS)


def fit_without_convergence(setup, recordings, channel_roles, **options):
    """Inverse-dynamics fit whose constrained least squares end at their iteration limit, which it reports."""
    with pytest.warns(
        ModelWarning, match=r"'arm' did not converge in 2000 .* is \S+e-0[5-7] instead of 1e-08"
    ) as caught:
        found = fit_inverse_dynamics(setup, recordings, channel_roles, **options)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert not found.has_converged and f"{found.residual:.2g}" in str(caught[0].message)
    return found


@pytest.fixture(scope="module")
def estimate(arm_problem):
    return fit_without_convergence(arm_problem.setup, arm_problem.train, arm_problem.channel_roles)


def test_torque_residuals_decrease_severalfold(estimate):
    assert (estimate.error_after < 0.25 * estimate.error_before).all()
    assert np.linalg.norm(estimate.error_after) < 0.15 * np.linalg.norm(estimate.error_before)


def test_friction_and_damping_are_near_the_true_values(estimate, true_model):
    found = estimate.setup.sim.model.joint
    np.testing.assert_allclose(found.damping, true_model.joint.damping, atol=0.01)
    np.testing.assert_allclose(found.friction, true_model.joint.friction, atol=0.01)
    assert (found.damping >= 0.0).all() and (found.friction >= 0.0).all() and (found.armature >= 0.0).all()


def test_bodies_are_physically_consistent(estimate):
    body, names = estimate.setup.sim.model.body, estimate.setup.sim.model.topology.body_names
    for k, name in enumerate(names):
        nominal_body(name, float(body.mass[k]), np.asarray(body.com[k]), np.asarray(body.inertia[k]), diagonal=False)


def test_weak_parameters_are_named(estimate):
    # the first link rotates about the vertical only: its mass and the height of its centre of mass have no effect
    assert "body.mass[link1]" in estimate.weak and "body.com[link1].z" in estimate.weak
    assert not any(name.startswith(("joint.damping", "joint.friction")) for name in estimate.weak)


def test_correct_model_parameters_are_kept(nominal_simulator):
    noise_free = runs(nominal_simulator.model, 0.0)
    fit_problem = build_fit_problem(
        nominal_simulator, CHANNELS, [Free("body.mass[link4]")], noise_free, commands=ACTUATORS
    )
    found = fit_without_convergence(fit_problem.setup, fit_problem.train, fit_problem.channel_roles).setup.sim.model
    np.testing.assert_allclose(found.body.mass, nominal_simulator.model.body.mass, rtol=0.02)
    np.testing.assert_allclose(found.joint.damping, nominal_simulator.model.joint.damping, atol=0.01)


def test_theta_of_a_space_is_within_its_bounds(arm_problem, estimate):
    theta = estimate.theta(arm_problem.space)
    assert (theta >= arm_problem.space.lower).all() and (theta <= arm_problem.space.upper).all()
    values = arm_problem.space.values(theta)
    assert values["joint.damping[joint2]"] == pytest.approx(0.2)
    assert values["body.mass[link4]"] == pytest.approx(float(estimate.setup.sim.model.body.mass[3]))


def test_noise_does_not_cause_inconsistent_bodies(arm_problem):
    # the unconstrained estimate would be inconsistent, as a window of five samples does not average out the noise
    noisy = fit_without_convergence(arm_problem.setup, arm_problem.train, arm_problem.channel_roles, filter_samples=5)
    assert len(noisy.inconsistent) > 1
    body = noisy.setup.sim.model.body
    assert (np.asarray(body.mass) > 0.0).all()
    for k, name in enumerate(noisy.setup.sim.model.topology.body_names):
        nominal_body(name, float(body.mass[k]), np.asarray(body.com[k]), np.asarray(body.inertia[k]), diagonal=False)


def test_a_free_base_is_an_error():
    sim = Simulator(cube(), dt=0.01)
    run = simulate_recording(
        sim, [0, 0, 1, 1, 0, 0, 0], [3.0, -2.0, 4.0, 0.5, 0.2, 1.0], steps=60, channels=FREE_BODY_CHANNELS
    )
    flying_problem = build_fit_problem(sim, FREE_BODY_CHANNELS, [Free("gravity.z")], [run])
    with pytest.raises(HybridsimError, match="'cube' has free, spherical or mimic joints"):
        fit_inverse_dynamics(flying_problem.setup, flying_problem.train, flying_problem.channel_roles)


def test_an_unmeasured_joint_is_an_error(arm_problem, nominal_simulator):
    some = {name: CHANNELS[name] for name in ("q1", "q2", "q4")}
    fit_problem = build_fit_problem(
        nominal_simulator, some, [Free("body.mass[link4]")], arm_problem.train, commands=ACTUATORS
    )
    with pytest.raises(HybridsimError, match="no channel measures joint3"):
        fit_inverse_dynamics(fit_problem.setup, fit_problem.train, fit_problem.channel_roles)


def test_actuators_with_internal_states_are_an_error(arm_problem, nominal_simulator):
    lagging = Simulator(nominal_simulator.model, dt=DT, actuation=Actuation(AffineActuator(), FirstOrderLag(0.01)))
    with pytest.raises(HybridsimError, match="actuators without internal states"):
        setup = eqx.tree_at(lambda s: s.sim, arm_problem.setup, lagging)
        fit_inverse_dynamics(setup, arm_problem.train, arm_problem.channel_roles)


def test_gains_and_biases_of_sensors_are_removed(arm_problem, estimate):
    sensors = eqx.tree_at(lambda s: (s.gain, s.bias), arm_problem.setup.sensors, (np.full(4, 2.0), np.ones(4)))
    calibrated = Setup(arm_problem.setup.sim, sensors)
    doubled = [_rescale(run) for run in arm_problem.train]
    found = fit_without_convergence(calibrated, doubled, arm_problem.channel_roles)
    np.testing.assert_allclose(found.setup.sim.model.joint.damping, estimate.setup.sim.model.joint.damping, rtol=1e-6)


def _rescale(run):
    values = {name: s.values if name not in CHANNELS else 2.0 * s.values + 1.0 for name, s in run.series.items()}
    return type(run).from_arrays(run.name, run.series["q1"].t, values)

"""Standard errors of a fit: against an independent Jacobian, and (slow) against the spread over noise."""

import numpy as np
import pytest

import hybridsim as hs
from hybridsim.identify.solve import solve
from hybridsim.identify.uncertainty import standard_errors
from hybridsim.project.fit import fit_task
from hybridsim.robots import pendulum

NOISE, DAMPING = 2e-3, 0.05
NAMES = ("joint.damping[joint0]", "body.mass[link0]")


def recordings(seed: int, runs: int = 2, noise: float = NOISE, outliers: float = 0.0) -> list[hs.Recording]:
    sim, rng = hs.Simulator(pendulum(damping=DAMPING), dt=0.01), np.random.default_rng(seed)
    found = []
    for k in range(runs):
        torque = 0.5 * np.sin(3.0 * np.arange(200) * 0.01 + k)[:, None]
        motion = hs.simulate(sim, sim.initial_state([0.5 + 0.5 * k]), hs.Inputs(torque), steps=200)
        q = motion.q[:200, 0] + noise * rng.standard_normal(200)
        q += np.where(rng.random(200) < outliers, 50.0 * NOISE * rng.standard_normal(200), 0.0)
        found.append(hs.Recording.from_arrays(f"run{k}", motion.t[:200], {"q": q, "u": torque[:, 0]}))
    return found


def solution(stage: hs.Stage, free=NAMES, seed: int = 0, noise: float = NOISE, outliers: float = 0.0):
    channels = [hs.Channel("q", "joint.q[joint0]", noise=NOISE)]
    experiment = hs.Experiment(pendulum(), dt=0.01, channels=channels, commands={"joint0": "u"})
    task = fit_task(experiment, list(free), recordings(seed, noise=noise, outliers=outliers), 0, stages=stage)
    found = solve(task.problem, task.stages)
    return found, standard_errors(found.objective, found.point)


def difference_jacobian(found) -> np.ndarray:
    """Jacobian of all residuals with respect to θ and the initial states of all windows, by central differences."""
    objective, point, columns = found.objective, found.point, []
    windows = objective.windows
    used = windows.weight > 0.0

    def residuals(point):
        sampled, ok = objective.sampled_readings(point)
        assert ok.all()
        return (windows.weight * (sampled[0] - windows.value))[used]

    for name in ("theta", "q", "qd"):
        array = getattr(point, name)
        for index in np.ndindex(array.shape):
            ends = []
            for sign in (1.0, -1.0):
                shifted = array.copy()
                shifted[index] += sign * 1e-6
                ends.append(residuals(point._replace(**{name: shifted})))
            columns.append((ends[0] - ends[1]) / 2e-6)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("window", [0.5, None])
def test_standard_errors_agree_with_an_independent_jacobian(window):
    found, errors = solution(hs.Stage(window=window))
    J = difference_jacobian(found)
    expected = np.sqrt(np.diag(np.linalg.inv(J.T @ J)))[:2]
    sampled, _ = found.objective.sampled_readings(found.point)
    windows = found.objective.windows
    used = windows.weight > 0.0
    residual = (windows.weight * (sampled[0] - windows.value))[used]
    scale = max(1.0, np.sqrt(residual @ residual / (used.sum() - J.shape[1])))
    theta_per_value = found.objective.layout.space.values(found.theta + 1e-6)
    values = found.objective.layout.space.values(found.theta)
    slopes = [(theta_per_value[name] - values[name]) / 1e-6 for name in NAMES]
    assert [errors[name] for name in NAMES] == pytest.approx(scale * expected * slopes, rel=1e-3)
    assert all(abs(values[name] - true) < 4.0 * errors[name] for name, true in zip(NAMES, (DAMPING, 1.0), strict=True))


def test_priors_bounds_and_the_size_of_residuals_count():
    _, plain = solution(hs.Stage(window=0.5))
    narrow = hs.Free(NAMES[0], prior=(DAMPING, 1e-5))
    _, with_prior = solution(hs.Stage(window=0.5), (narrow, NAMES[1]))
    assert with_prior[NAMES[0]] == pytest.approx(1e-5, rel=0.01) and with_prior[NAMES[1]] < plain[NAMES[1]]
    _, noisy = solution(hs.Stage(window=0.5), noise=4.0 * NOISE)
    assert noisy[NAMES[0]] == pytest.approx(4.0 * plain[NAMES[0]], rel=0.2)
    _, prior_with_noise = solution(hs.Stage(window=0.5), (narrow, NAMES[1]), noise=4.0 * NOISE)
    assert prior_with_noise[NAMES[0]] == pytest.approx(1e-5, rel=0.01)


@pytest.mark.parametrize("at_bound", [0, 1])
def test_parameters_at_a_bound_count_as_fixed(at_bound):
    """Their standard errors are those of a prior that is as narrow."""
    true, other = (DAMPING, 1.0)[at_bound], NAMES[1 - at_bound]
    bounded = hs.Free(NAMES[at_bound], bounds=(0.5 * true, 0.9 * true), initial=0.8 * true)
    narrow = hs.Free(NAMES[at_bound], initial=0.9 * true, prior=(0.9 * true, 1e-9))
    (_, errors), (_, expected) = (solution(hs.Stage(window=0.5), (free, other)) for free in (bounded, narrow))
    assert NAMES[at_bound] not in errors and np.isfinite(errors[other])
    assert errors[other] == pytest.approx(expected[other], rel=0.01)


def test_priors_on_initial_states_count():
    """Against the normal equations of the solver, which contain them."""
    found, errors = solution(hs.Stage(window=0.05, initial_states="prior"))
    _, equations = found.objective.normal_equations(found.point)
    A, B, D = equations.A[0], equations.B[0], equations.D[0]
    covariance = np.linalg.inv(A - np.einsum("wsn,wst,wtm->nm", B, np.linalg.inv(D), B))
    values, moved = (found.objective.layout.space.values(found.theta + step) for step in (0.0, 1e-6))
    slopes = [(moved[name] - values[name]) / 1e-6 for name in NAMES]
    expected = np.sqrt(np.diag(covariance)) * slopes
    assert [errors[name] for name in NAMES] == pytest.approx(expected, rel=0.1)


def test_entries_that_a_penalty_has_set_to_zero_count_as_fixed():
    free = (*NAMES[1:], hs.Free("joint.stiffness[joint0]", initial=1.0, bounds=(0.0, 5.0), l1=1e6))
    found, errors = solution(hs.Stage(window=0.5), free)
    assert found.objective.layout.space.values(found.theta)["joint.stiffness[joint0]"] == 0.0
    _, fixed = solution(hs.Stage(window=0.5), free[:1])
    assert errors == pytest.approx(fixed, rel=1e-3)


@pytest.mark.parametrize(
    "stage",
    [
        hs.Stage(window=0.5, stride=0.1),
        hs.Stage(window=0.5, burn_in=0.1, stride=0.3),
        hs.Stage(window=0.5, continuity=(1e-4, 1e-3)),
        hs.Stage(window=0.1, initial_states="measured"),
    ],
)
def test_none_are_computed_where_the_linearization_does_not_apply(stage):
    assert solution(stage)[1] == {}


def test_windows_that_overlap_in_their_burn_in_only_have_standard_errors():
    _, plain = solution(hs.Stage(window=0.4))
    _, errors = solution(hs.Stage(window=0.5, burn_in=0.1))
    assert [errors[name] for name in NAMES] == pytest.approx([plain[name] for name in NAMES], rel=0.5)


def test_what_the_data_do_not_determine_has_no_finite_error():
    """A planar pendulum does not tell the products of inertia, and its inertia only together with mass and centre."""
    _, errors = solution(hs.Stage(window=0.5), ("inertial[link0]",))
    assert np.isinf(errors["body.mass[link0]"]) and np.isinf(errors["body.inertia[link0].yy"])


@pytest.mark.slow
@pytest.mark.parametrize("window", [0.5, None])
def test_standard_errors_agree_with_the_spread_over_noise(window):
    found = [solution(hs.Stage(window=window), seed=seed) for seed in range(60)]
    for name in NAMES:
        estimates = [fit.objective.layout.space.values(fit.theta)[name] for fit, _ in found]
        errors = [errors[name] for _, errors in found]
        assert np.mean(errors) == pytest.approx(np.std(estimates, ddof=1), rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["huber", "soft_l1", "cauchy"])
def test_standard_errors_of_robust_losses_agree_with_the_spread_over_noise_and_outliers(loss):
    stage = hs.Stage(window=0.5, loss=loss)
    found = [solution(stage, seed=seed, outliers=0.05) for seed in range(60)]
    for name in NAMES:
        estimates = [fit.objective.layout.space.values(fit.theta)[name] for fit, _ in found]
        errors = [errors[name] for _, errors in found]
        assert np.mean(errors) == pytest.approx(np.std(estimates, ddof=1), rel=0.3)

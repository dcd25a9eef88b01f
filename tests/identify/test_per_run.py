"""Per-run parameters: encoder offsets, payloads, clock offsets."""

from dataclasses import replace

import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError, SpecificationError
from hybridsim.data.run import Run
from hybridsim.identify.identifiability import identifiability
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.score import score_predictions, score_windows
from hybridsim.identify.solve import solve
from hybridsim.identify.solvers.lbfgs import LBFGS
from hybridsim.identify.solvers.levenberg_marquardt import CalibrationSolver
from hybridsim.identify.stage import Stage
from hybridsim.identify.theta_layout import ThetaLayout
from hybridsim.params.free import Free
from support.fit_problems import NOISE, pendulum_problem, run_solver
from support.objective_gradient import check_gradient

BIASES = {"run0": 0.04, "run1": -0.03}
DAMPING = 0.1
COMMON = Free("joint.damping[*]", bounds=(0, 1))
PER_RUN = Free("sensor.bias[*]", per="run", scale=0.01)


def shift(run: Run, offset: float) -> Run:
    columns = {name: one.values + offset * (name == "q0") for name, one in run.series.items()}
    return Run.from_arrays(run.name, run.series["q0"].t, columns)


def offset_problem(free_parameters=(COMMON, PER_RUN), **more) -> FitProblem:
    """Fit of a pendulum whose encoder offset differs between runs."""
    found = pendulum_problem(free_parameters, damping=DAMPING, **more)
    return replace(found, train=tuple(shift(run, BIASES[run.name]) for run in found.train))


def test_parameters_are_estimated_separately_for_each_run():
    fit_problem = offset_problem()
    found = solve(fit_problem, [Stage(window=0.3)])
    assert fit_problem.space.values(found.theta)["joint.damping[joint0]"] == pytest.approx(DAMPING, rel=1e-6)
    assert {run: pytest.approx(bias, abs=1e-7) for run, bias in BIASES.items()} == {
        run: values["sensor.bias[q0]"] for run, values in found.run_values.items()
    }
    # the common θ has the initial values of per-run parameters
    assert fit_problem.space.values(found.theta)["sensor.bias[q0]"] == 0.0


def test_the_order_of_free_parameters_has_no_effect():
    """For a single run, stacked θ has as many entries as single-run θ, but in another order."""
    scores = []
    for free_parameters in ((COMMON, PER_RUN), (PER_RUN, COMMON)):
        fit_problem = offset_problem(free_parameters)
        result = score_windows(fit_problem, solve(fit_problem, [Stage(window=0.3)]).theta, fit_problem.train[:1], 0.3)
        scores.append(result.scores[0].worst)
        (bias,) = result.point.theta[0, ~result.objective.layout.is_common] * PER_RUN.scale
        assert bias == pytest.approx(BIASES["run0"], abs=1e-6)
        alone = replace(fit_problem, train=fit_problem.train[:1])
        assert solve(alone, [Stage(window=0.3)]).run_values["run0"]["sensor.bias[q0]"] == pytest.approx(bias, abs=1e-6)
    assert max(scores) < 1e-6


def test_a_common_value_for_all_runs_fits_worse():
    separate, common = (offset_problem((COMMON, replace(PER_RUN, per=per))) for per in ("run", "fit"))
    costs = [solve(fit_problem, [Stage(window=0.3)]).costs[-1] for fit_problem in (separate, common)]
    assert costs[0] < 1e-6 * costs[1]


def test_gradient_based_solvers_estimate_per_run_parameters():
    fit_problem = offset_problem()
    objective, _ = fit_problem.objective(Stage(window=0.4))
    state = run_solver(LBFGS(max_steps=300), objective, objective.point(fit_problem.space.initial))
    biases = fit_problem.layout().run_values(state.point.theta[0])
    assert [values["sensor.bias[q0]"] for values in biases.values()] == pytest.approx(list(BIASES.values()), abs=2e-3)


@pytest.mark.parametrize(
    "free_parameters",
    [(COMMON, PER_RUN), (PER_RUN, COMMON, Free("body.mass[link0]", per="run", prior=(1.0, 0.2), l2=0.3))],
)
@pytest.mark.parametrize(
    "stage", [Stage(window=0.2), Stage(window=0.2, continuity=(1e-2, 1e-1))], ids=["independent", "continuous"]
)
def test_gradients(free_parameters, stage):
    objective, _ = offset_problem(free_parameters).objective(stage)
    check_gradient(objective)


def test_gradients_with_respect_to_per_run_delays():
    delay = Free("sensor.delay[*]", per="run", bounds=(0, 0.05), initial=0.01)
    objective, _ = offset_problem((COMMON, delay), delay=0.01).objective(Stage(window=0.2))
    check_gradient(objective, rtol=1e-5)


def test_the_layout_of_stacked_theta():
    fit_problem = offset_problem((PER_RUN, COMMON))
    layout = fit_problem.layout()
    assert layout.names == ("joint.damping[joint0]", "sensor.bias[q0] of run0", "sensor.bias[q0] of run1")
    assert layout.size == 3 and layout.is_common.tolist() == [True, False, False]
    theta = np.array([10.0, 1.0, 2.0])
    assert layout.recording_theta(theta, 0).tolist() == [1.0, 10.0] and layout.recording_theta(theta, 1).tolist() == [
        2.0,
        10.0,
    ]
    assert layout.common_theta(theta).tolist() == [fit_problem.space.initial[0], 10.0]
    assert layout.stack(np.array([5.0, 6.0])).tolist() == [6.0, 5.0, 5.0]


def test_without_per_run_parameters_the_layout_is_the_identity():
    fit_problem = pendulum_problem()
    layout = ThetaLayout(fit_problem.space, ["a", "b", "c"])
    assert not layout.has_per_run_parameters
    assert layout.size == fit_problem.space.size and layout.names == fit_problem.space.names
    assert layout.run_values(fit_problem.space.initial) == {}


def test_confounded_per_run_parameters_are_named_with_their_runs():
    fit_problem = offset_problem((COMMON, Free("body.mass[link0]", per="run"), Free("gravity.magnitude")))
    objective, _ = fit_problem.objective(Stage(window=0.4))
    (combination,) = identifiability(objective, objective.point(fit_problem.space.initial)).confounded
    assert {"body.mass[link0] of run0", "body.mass[link0] of run1"} <= set(combination)


def test_other_runs_are_scored_with_per_run_parameters_fitted_on_them():
    fit_problem = offset_problem(steps=240, noise=NOISE)
    theta = solve(fit_problem, [Stage(window=0.3)]).theta
    other = [shift(fit_problem.train[0], 0.07)]
    assert score_windows(fit_problem, theta, other, 0.3).scores[0].mean == pytest.approx(NOISE, rel=0.15)
    # a velocity from ten samples is uncertain, and so is the prediction; a wrong encoder offset is far worse
    without = pendulum_problem((COMMON,), damping=DAMPING)
    errors = [
        score_predictions(one, at, other, initialization_time=0.1, horizon=0.2).scores[0].mean
        for one, at in ((fit_problem, theta), (without, theta[:1]))
    ]
    assert errors[0] < 2.5 * NOISE < 0.5 * errors[1]


def test_predictions_do_not_depend_on_later_samples():
    fit_problem = offset_problem(steps=240)
    theta = np.array([fit_problem.space.initial[0], 0.0])
    run = fit_problem.train[0]
    t = run.series["q0"].t
    # samples after the first quarter must not affect the per-run parameters
    late = Run.from_arrays("run0", t, {"q0": np.where(t > 1.0, 0.3, 0.0) + run.series["q0"].values})
    scores = [score_predictions(fit_problem, theta, [one], initialization_time=0.1, horizon=0.2) for one in (run, late)]
    estimates = [one.point.theta[0, ~one.objective.layout.is_common] for one in scores]
    np.testing.assert_array_equal(estimates[0], estimates[1])
    assert scores[0].objective.windows.start.min() > 0.25 * t[-1]
    with pytest.raises(HybridsimError, match="no run is long enough"):
        score_predictions(fit_problem, theta, [run], initialization_time=0.1, horizon=2.2)


def test_common_parameters_can_be_held():
    objective, _ = offset_problem().objective(Stage(window=0.4))
    start = objective.stacked_point(objective.layout.initial)
    state = run_solver(CalibrationSolver(), objective, start)
    common = objective.layout.is_common
    assert np.array_equal(state.point.theta[:, common], start.theta[:, common])
    assert np.all(state.point.theta[:, ~common] != start.theta[:, ~common])


def test_an_invalid_per_is_an_error():
    with pytest.raises(SpecificationError, match="valid values are fit, run"):
        Free("sensor.bias[*]", per="runs")


def test_segments_of_a_run_share_its_parameters():
    fit_problem = offset_problem()
    segments = [
        replace(segment, name=f"{run.name}.{k}", segment_of=run.name)
        for run in fit_problem.train
        for k, segment in enumerate((run.slice(0.0, 0.35), run.slice(0.4, 0.8)))
    ]
    segmented_problem = replace(fit_problem, train=tuple(segments))
    assert segmented_problem.layout().names == fit_problem.layout().names
    found = solve(segmented_problem, [Stage(window=0.3)])
    assert {run: values["sensor.bias[q0]"] for run, values in found.run_values.items()} == pytest.approx(
        BIASES, abs=1e-6
    )
    check_gradient(segmented_problem.objective(Stage(window=0.2))[0])

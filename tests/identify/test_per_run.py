"""Numbers that every run has its own of: where encoders were zeroed, what was carried, how far clocks are apart."""

from dataclasses import replace

import numpy as np
import pytest

from hybridsim.core.errors import HybridsimError, ParameterError
from hybridsim.data.recording import Recording
from hybridsim.identify.fit import fit
from hybridsim.identify.identifiability import identifiability
from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.identify.score import score_predictions, score_windows
from hybridsim.identify.solvers.lbfgs import LBFGS
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.theta_layout import ThetaLayout
from hybridsim.params.free import Free
from hybridsim.params.space import ParameterSpace
from support.fit_problems import NOISE, pendulum_problem, solved
from support.objective_gradient import check_gradient

BIASES = {"run0": 0.04, "run1": -0.03}
DAMPING = 0.1
COMMON = Free("joint.damping[*]", bounds=(0, 1))
OWN = Free("sensor.bias[*]", per="run", scale=0.01)


def shifted(run: Recording, by: float) -> Recording:
    columns = {name: one.values + by * (name == "q0") for name, one in run.series.items()}
    return Recording.from_arrays(run.name, run.series["q0"].t, columns)


def zeroed_anew(frees=(COMMON, OWN), **more) -> FitProblem:
    """A pendulum whose encoder says something else at rest in every run."""
    found = pendulum_problem(frees, damping=DAMPING, **more)
    return replace(found, train=tuple(shifted(run, BIASES[run.name]) for run in found.train))


def test_every_run_gets_its_own_numbers():
    of = zeroed_anew()
    found = fit(of, [Stage(window=0.3)])
    assert of.space.values(found.theta)["joint.damping[joint0]"] == pytest.approx(DAMPING, rel=1e-6)
    assert {run: pytest.approx(bias, abs=1e-7) for run, bias in BIASES.items()} == {
        run: values["sensor.bias[q0]"] for run, values in found.of_runs.items()
    }
    # what is common has no say on what a run has of its own
    assert of.space.values(found.theta)["sensor.bias[q0]"] == 0.0


def test_the_order_of_what_is_free_makes_no_difference():
    """A single run has as many numbers in the long θ as there are in the short one, but in another order."""
    scores = []
    for frees in ((COMMON, OWN), (OWN, COMMON)):
        of = zeroed_anew(frees)
        judged = score_windows(of, fit(of, [Stage(window=0.3)]).theta, of.train[:1], 0.3)
        scores.append(judged.scores[0].worst)
        (own,) = judged.point.theta[0, ~judged.objective.layout.is_common] * OWN.scale
        assert own == pytest.approx(BIASES["run0"], abs=1e-6)
        alone = replace(of, train=of.train[:1])
        assert fit(alone, [Stage(window=0.3)]).of_runs["run0"]["sensor.bias[q0]"] == pytest.approx(own, abs=1e-6)
    assert max(scores) < 1e-6


def test_one_number_for_all_runs_explains_less():
    apart, together = (zeroed_anew((COMMON, replace(OWN, per=per))) for per in ("run", "all"))
    costs = [fit(of, [Stage(window=0.3)]).costs[-1] for of in (apart, together)]
    assert costs[0] < 1e-6 * costs[1]


def test_solvers_by_gradients_see_them_too():
    of = zeroed_anew()
    objective, _ = of.objective(Stage(window=0.4))
    state = solved(LBFGS(max_steps=300), objective, objective.point(of.space.initial))
    biases = of.layout().own_values(state.point.theta[0])
    assert [values["sensor.bias[q0]"] for values in biases.values()] == pytest.approx(list(BIASES.values()), abs=2e-3)


@pytest.mark.parametrize(
    "frees", [(COMMON, OWN), (OWN, COMMON, Free("body.mass[link0]", per="run", prior=(1.0, 0.2), l2=0.3))]
)
@pytest.mark.parametrize("stage", [Stage(window=0.2), Stage(window=0.2, ties=(1e-2, 1e-1))], ids=["apart", "tied"])
def test_gradients(frees, stage):
    objective, _ = zeroed_anew(frees).objective(stage)
    check_gradient(objective)


def test_gradients_by_delays_of_runs():
    late = Free("sensor.delay[*]", per="run", bounds=(0, 0.05), initial=0.01)
    objective, _ = zeroed_anew((COMMON, late), delay=0.01).objective(Stage(window=0.2))
    check_gradient(objective, rtol=1e-5)


def test_where_the_numbers_are():
    of = zeroed_anew((OWN, COMMON))
    layout = of.layout()
    assert layout.names == ("joint.damping[joint0]", "sensor.bias[q0] of run0", "sensor.bias[q0] of run1")
    assert layout.size == 3 and layout.is_common.tolist() == [True, False, False]
    theta = np.array([10.0, 1.0, 2.0])
    assert layout.of_run(theta, 0).tolist() == [1.0, 10.0] and layout.of_run(theta, 1).tolist() == [2.0, 10.0]
    assert layout.common(theta).tolist() == [of.space.initial[0], 10.0]
    assert layout.lengthened(np.array([5.0, 6.0])).tolist() == [6.0, 5.0, 5.0]


def test_without_such_numbers_nothing_is_longer():
    of = pendulum_problem()
    layout = ThetaLayout(of.space, ["a", "b", "c"])
    assert not layout.has_own and layout.size == of.space.size and layout.names == of.space.names
    assert layout.own_values(of.space.initial) == {}


def test_a_run_whose_numbers_cannot_be_told_is_named():
    of = zeroed_anew((COMMON, Free("body.mass[link0]", per="run"), Free("gravity.magnitude")))
    objective, _ = of.objective(Stage(window=0.4))
    (told,) = identifiability(objective, objective.point(of.space.initial)).confounded
    assert {"body.mass[link0] of run0", "body.mass[link0] of run1"} <= set(told)


def test_runs_that_were_not_fitted_are_scored_with_numbers_found_on_them():
    of = zeroed_anew(steps=240, noise=NOISE)
    theta = fit(of, [Stage(window=0.3)]).theta
    other = [shifted(of.train[0], 0.07)]
    assert score_windows(of, theta, other, 0.3).scores[0].mean == pytest.approx(NOISE, rel=0.15)
    # a velocity from ten samples is uncertain, and so is what comes after them; a wrong zero is far worse
    without = pendulum_problem((COMMON,), damping=DAMPING)
    errors = [
        score_predictions(one, at, other, before=0.1, after=0.2).scores[0].mean
        for one, at in ((of, theta), (without, theta[:1]))
    ]
    assert errors[0] < 2.5 * NOISE < 0.5 * errors[1]


def test_predictions_do_not_see_what_they_predict():
    of = zeroed_anew(steps=240)
    theta = np.array([of.space.initial[0], 0.0])
    run = of.train[0]
    t = run.series["q0"].t
    # whatever comes after the first quarter must not change the run's own numbers
    late = Recording.from_arrays("run0", t, {"q0": np.where(t > 1.0, 0.3, 0.0) + run.series["q0"].values})
    found = [score_predictions(of, theta, [one], before=0.1, after=0.2) for one in (run, late)]
    own = [one.point.theta[0, ~one.objective.layout.is_common] for one in found]
    np.testing.assert_array_equal(own[0], own[1])
    assert found[0].objective.windows.start.min() > 0.25 * t[-1]
    with pytest.raises(HybridsimError, match="no run is long enough"):
        score_predictions(of, theta, [run], before=0.1, after=2.2)


def test_what_is_common_can_be_held():
    objective, _ = zeroed_anew().objective(Stage(window=0.4))
    start = objective.point_of_runs(objective.layout.start)
    state = solved(LevenbergMarquardt(hold_common=True), objective, start)
    common = objective.layout.is_common
    assert np.array_equal(state.point.theta[:, common], start.theta[:, common])
    assert np.all(state.point.theta[:, ~common] != start.theta[:, ~common])


def test_a_wrong_word_is_told():
    of = pendulum_problem()
    with pytest.raises(ParameterError, match="per 'all' or per 'run', not 'runs'"):
        ParameterSpace(of.setup, [Free("sensor.bias[*]", per="runs")])


def test_pieces_of_one_run_share_its_numbers():
    of = zeroed_anew()
    pieces = [
        replace(part, name=f"{run.name}.{k}", segment_of=run.name)
        for run in of.train
        for k, part in enumerate((run.slice(0.0, 0.35), run.slice(0.4, 0.8)))
    ]
    cut = replace(of, train=tuple(pieces))
    assert cut.layout().names == of.layout().names
    found = fit(cut, [Stage(window=0.3)])
    assert {run: values["sensor.bias[q0]"] for run, values in found.of_runs.items()} == pytest.approx(BIASES, abs=1e-6)
    check_gradient(cut.objective(Stage(window=0.2))[0])

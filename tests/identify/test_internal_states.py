"""Internal states of actuators in fits: windows need a burn-in, which initializes them; whole runs do not."""

from dataclasses import replace

import numpy as np
import pytest

from hybridsim import Simulator, simulate
from hybridsim.core.errors import HybridsimError
from hybridsim.data.run import Run
from hybridsim.dynamics.actuation import Actuation, AffineActuator, FirstOrderLag, SeriesElastic
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.score import score_predictions, score_windows
from hybridsim.identify.solve import solve
from hybridsim.identify.stage import Stage
from hybridsim.identify.windows import ChannelRoles, InputSignal
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots import acrobot
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.state import Inputs
from support.fit_problems import DT, NOISE
from support.objective_gradient import check_gradient

DAMPING = 0.1


def acrobot_problem(*stages) -> FitProblem:
    """Fit of an acrobot with the given actuation."""
    sim = Simulator(acrobot(), dt=DT, actuation=Actuation(*stages))
    u = 3.0 * np.sin(4.0 * DT * np.arange(150))[:, None]
    trajectory = simulate(sim, sim.initial_state([0.3, -0.2]), Inputs(u), steps=150)
    columns = {"q0": trajectory.q[:, 0], "q1": trajectory.q[:, 1], "u": np.append(u, 0.0)}
    run = Run.from_arrays("run", np.asarray(trajectory.t), {name: np.asarray(x) for name, x in columns.items()})
    setup = Setup(sim, Sensors.from_addresses(sim, {"q0": "joint.q[shoulder]", "q1": "joint.q[elbow]"}))
    space = ParameterSpace(setup, [Free("joint.damping[*]", bounds=(0, 1), initial=DAMPING)])
    return FitProblem(
        setup, space, ChannelRoles(dict.fromkeys(("q0", "q1"), NOISE), {"elbow": InputSignal("u")}), (run,)
    )


LAG = (FirstOrderLag(0.05), AffineActuator())


def test_windows_with_unknown_internal_states_of_actuators_are_refused():
    fit_problem = acrobot_problem(*LAG)
    with pytest.raises(
        HybridsimError,
        match=r"the actuation stages \(FirstOrderLag\) are unknown .* give the stage of the fit a burn_in",
    ):
        solve(fit_problem, [Stage(window=0.25)])


def test_a_burn_in_initializes_internal_states():
    fit_problem = acrobot_problem(*LAG)
    found = solve(fit_problem, [Stage(window=0.7, burn_in=0.3)])
    # the error that remains after six time constants
    assert list(fit_problem.space.values(found.theta).values()) == pytest.approx([0.05, 0.05], rel=0.02)
    objective, _ = fit_problem.objective(Stage(window=0.7, burn_in=0.3))
    w = objective.windows
    assert np.diff(w.start) == pytest.approx(0.4) and w.time_in_steps[w.weight > 0.0].min() * w.dt >= 0.3 - 1e-9
    assert score_windows(fit_problem, found.theta, fit_problem.train, 0.4, burn_in=0.3).scores[0].worst < 2e-4
    predictions = score_predictions(
        fit_problem, found.theta, fit_problem.train, initialization_time=0.2, horizon=0.3, burn_in=0.3
    )
    assert predictions.scores[0].worst < 2e-3


@pytest.mark.parametrize(
    "wrong", [{"window": 0.2, "burn_in": 0.3}, {"window": 0.5, "burn_in": 0.1, "continuity": (1e-3, 1e-2)}]
)
def test_stages_whose_burn_in_is_invalid_are_refused(wrong):
    with pytest.raises(HybridsimError, match="burn_in"):
        Stage(**wrong)


def test_whole_runs_need_no_burn_in():
    fit_problem = acrobot_problem(*LAG)
    found = solve(fit_problem, [Stage()])
    # the damping of the built-in acrobot
    assert list(fit_problem.space.values(found.theta).values()) == pytest.approx([0.05, 0.05], rel=1e-6)


@pytest.mark.parametrize("stages", [LAG, (AffineActuator(), SeriesElastic(50.0, 0.1, 0.02))])
def test_gradients_with_respect_to_initial_states_that_initialize_internal_states(stages):
    fit_problem = acrobot_problem(*stages)
    (run,) = fit_problem.train
    columns = {name: one.values + 0.001 for name, one in run.series.items()}
    other = Run.from_arrays("other", run.series["q0"].t, columns)
    objective, _ = replace(fit_problem, train=(run, other)).objective(Stage())
    check_gradient(objective, rtol=1e-5)

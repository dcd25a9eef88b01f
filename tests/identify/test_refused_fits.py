"""Fits that would silently give wrong results are errors that say what to do instead."""

from dataclasses import replace

import numpy as np
import pytest

from hybridsim import Simulator, simulate
from hybridsim.core.errors import HybridsimError
from hybridsim.data.recording import Recording
from hybridsim.dynamics.actuation import Actuation, AffineActuator, FirstOrderLag, SeriesElastic
from hybridsim.identify.fit import fit
from hybridsim.identify.problem import ONE_STEP, FitProblem, Stage
from hybridsim.identify.score import score_predictions, score_windows
from hybridsim.identify.solvers.adam import Adam
from hybridsim.identify.solvers.lbfgs import LBFGS
from hybridsim.identify.windows import InputSignal, Measurements
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots import acrobot
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.state import Inputs
from support.fit_problems import DT, NOISE, pendulum_problem
from support.objective_gradient import check_gradient

DAMPING = 0.1


def actuated(*stages) -> FitProblem:
    """An acrobot with a slow motor."""
    sim = Simulator(acrobot(), dt=DT, actuation=Actuation(*stages))
    u = 3.0 * np.sin(4.0 * DT * np.arange(150))[:, None]
    motion = simulate(sim, sim.initial_state([0.3, -0.2]), Inputs(u), steps=150)
    columns = {"q0": motion.q[:, 0], "q1": motion.q[:, 1], "u": np.append(u, 0.0)}
    run = Recording.from_arrays("run", np.asarray(motion.t), {name: np.asarray(x) for name, x in columns.items()})
    setup = Setup(sim, Sensors.of(sim, {"q0": "joint.q[shoulder]", "q1": "joint.q[elbow]"}))
    space = ParameterSpace(setup, [Free("joint.damping[*]", bounds=(0, 1), initial=DAMPING)])
    return FitProblem(
        setup, space, Measurements(dict.fromkeys(("q0", "q1"), NOISE), {"elbow": InputSignal("u")}), (run,)
    )


LAG = (FirstOrderLag(0.05), AffineActuator())


def test_windows_with_unknown_internal_states_of_actuators():
    of = actuated(*LAG)
    with pytest.raises(
        HybridsimError,
        match=r"the actuators \(FirstOrderLag, AffineActuator\) have internal states.* give the stage a burn_in",
    ):
        fit(of, [Stage(window=0.25)])


def test_a_burn_in_initialises_internal_states():
    of = actuated(*LAG)
    found = fit(of, [Stage(window=0.7, burn_in=0.3)])
    # the error that remains after six time constants
    assert list(of.space.values(found.theta).values()) == pytest.approx([0.05, 0.05], rel=0.02)
    objective, _ = of.objective(Stage(window=0.7, burn_in=0.3))
    w = objective.windows
    assert np.diff(w.start) == pytest.approx(0.4) and w.position[w.weight > 0.0].min() * w.dt >= 0.3 - 1e-9
    assert score_windows(of, found.theta, of.train, 0.4, burn_in=0.3).scores[0].worst < 2e-4
    assert score_predictions(of, found.theta, of.train, history=0.2, horizon=0.3, burn_in=0.3).scores[0].worst < 2e-3


@pytest.mark.parametrize(
    "wrong", [{"window": 0.2, "burn_in": 0.3}, {"window": 0.5, "burn_in": 0.1, "continuity": (1e-3, 1e-2)}]
)
def test_stages_whose_burn_in_is_invalid(wrong):
    with pytest.raises(HybridsimError, match="burn_in"):
        Stage(**wrong)


def test_whole_runs_of_actuators_with_internal_states():
    of = actuated(*LAG)
    found = fit(of, [Stage()])
    # the damping of the built-in acrobot
    assert list(of.space.values(found.theta).values()) == pytest.approx([0.05, 0.05], rel=1e-6)


@pytest.mark.parametrize("stages", [LAG, (AffineActuator(), SeriesElastic(50.0, 0.1, 0.02))])
def test_gradients_by_initial_states_that_initialise_internal_states(stages):
    of = actuated(*stages)
    twice = [of.train[0], Recording.from_arrays("again", of.train[0].series["q0"].t, _values(of.train[0]))]
    objective, _ = replace(of, train=tuple(twice)).objective(Stage())
    check_gradient(objective, rtol=1e-5)


def _values(run: Recording) -> dict[str, np.ndarray]:
    return {name: one.values + 0.001 for name, one in run.series.items()}


@pytest.mark.parametrize("stage", [ONE_STEP, Stage(window=0.3, initial_states="near")])
def test_measured_initial_states_with_free_sensor_parameters(stage):
    of = pendulum_problem((Free("joint.damping[*]", bounds=(0, 1)), Free("sensor.bias[*]")))
    with pytest.raises(
        HybridsimError, match=r"derives initial states from sensor readings, but sensor.bias\[q0\] is free"
    ):
        fit(of, [stage])


def test_delays_without_an_upper_bound():
    of = pendulum_problem((Free("sensor.delay[*]"),))
    with pytest.raises(HybridsimError, match=r"sensor.delay\[q0\] is free without an upper bound"):
        fit(of, [Stage(window=0.3)])


@pytest.mark.parametrize("solver", [LBFGS(), Adam()])
def test_nondifferentiable_penalties_with_gradient_based_solvers(solver):
    of = pendulum_problem((Free("joint.damping[*]", l1=0.1),))
    with pytest.raises(HybridsimError, match="use the solver lm, which supports them"):
        fit(of, [Stage(window=0.3, solver=solver)])


def test_runs_of_the_same_name():
    of = pendulum_problem()
    with pytest.raises(HybridsimError, match="two runs are named 'run0'"):
        replace(of, held_out=(of.train[0],))

"""Fits that would silently give wrong results are errors that say what to do instead."""

from dataclasses import replace

import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.solve import solve
from hybridsim.identify.solvers.adam import Adam
from hybridsim.identify.solvers.lbfgs import LBFGS
from hybridsim.identify.stage import ONE_STEP, Stage
from hybridsim.params.free import Free
from support.fit_problems import pendulum_problem


@pytest.mark.parametrize("stage", [ONE_STEP, Stage(window=0.3, initial_states="prior")])
def test_measured_initial_states_with_free_sensor_parameters_are_refused(stage):
    fit_problem = pendulum_problem((Free("joint.damping[*]", bounds=(0, 1)), Free("sensor.bias[*]")))
    with pytest.raises(
        HybridsimError, match=r"derives initial states from sensor readings, but sensor.bias\[q0\] is free"
    ):
        solve(fit_problem, [stage])


def test_delays_without_an_upper_bound_are_refused():
    fit_problem = pendulum_problem((Free("sensor.delay[*]"),))
    with pytest.raises(HybridsimError, match=r"sensor.delay\[q0\] is free without an upper bound"):
        solve(fit_problem, [Stage(window=0.3)])


@pytest.mark.parametrize("solver", [LBFGS(), Adam()])
def test_nondifferentiable_penalties_with_gradient_based_solvers_are_refused(solver):
    fit_problem = pendulum_problem((Free("joint.damping[*]", l1=0.1),))
    with pytest.raises(HybridsimError, match="use the solver lm, which supports them"):
        solve(fit_problem, [Stage(window=0.3, solver=solver)])


def test_runs_of_the_same_name_are_refused():
    fit_problem = pendulum_problem()
    with pytest.raises(HybridsimError, match="two runs are named 'run0'"):
        replace(fit_problem, held_out=(fit_problem.train[0],))

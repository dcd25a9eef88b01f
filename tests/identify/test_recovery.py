"""Recovery: from noise-free motions, parameters of every built-in model are estimated to 1e-6.

Initial states of windows are free, except for a sliding cube, whose objective is not differentiable where its corners
contact the floor; initial values of parameters are wrong by 5 to 20 per cent. Motors are actuated where there are any,
since only mass ratios are identifiable from free motion.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

from hybridsim import Simulator
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.stage import Stage
from hybridsim.params.free import Free
from hybridsim.robots import BUILT_IN
from support.fit_problems import build_fit_problem, objective_at_true_states, run_solver, simulate_recording

INITIAL_FACTORS = (1.1, 0.8, 1.05, 0.85, 1.2)
"""Initial values relative to the true values."""
FLIGHT = [3.0, -2.0, 4.0, 0.5, 0.2, 1.0]


@dataclass(frozen=True)
class Case:
    """Excitation of a model, and its free parameters."""

    free: tuple[str, ...]
    q: tuple[float, ...] | None = None
    qd: tuple[float, ...] | None = None
    force: float = 0.0
    """Amplitude of the command of each motor."""
    dt: float = 0.005
    steps: int = 80
    window: float = 0.2
    fixed_initial_states: bool = False
    slow: bool = False
    settings: dict = field(default_factory=dict)
    """Settings of the simulator."""


CASES = {
    "pendulum": Case(("body.mass[link0]", "body.com[link0].z"), (0.8,), force=2.0),
    "cartpole": Case(("body.mass[cart]", "body.mass[pole]", "joint.damping[slider]"), (0.0, 0.4), force=4.0),
    "double_pendulum": Case(("body.mass[link0]", "body.mass[link1]", "body.com[link1].z"), (0.6, -0.4), force=3.0),
    "arm": Case(("body.mass[link3]", "body.mass[link4]", "joint.damping[joint2]"), (0.3, 0.5, -0.4, 0.6), force=1.0),
    "ball": Case(("gravity.z",), qd=tuple(FLIGHT), slow=True),
    "acrobot": Case(("body.mass[upper]", "body.mass[lower]", "joint.damping[elbow]"), (0.5, 0.9), force=3.0, slow=True),
    "double_cartpole": Case(("body.mass[cart]", "body.mass[pole1]"), (0.0, 0.4, -0.3), force=4.0, slow=True),
    "pendulum5": Case(tuple(f"body.mass[link{k}]" for k in range(5)), (0.5, 0.3, -0.4, 0.2, 0.6), force=2.0, slow=True),
    "swimmer": Case(("body.mass[link1]", "body.com[link2].x"), (0, 0, 0.1, 0.4, -0.3), force=1e-3, slow=True),
    "quadruped": Case(("body.mass[trunk]", "body.mass[FR_calf]"), force=2.0, steps=40, window=0.1, slow=True),
    "cube": Case(
        ("contact.friction[cube_geom0|ground]",),
        (0, 0, 0.05, 1, 0, 0, 0),
        (0, 0, 0, 1.0, 0.3, 0),
        steps=50,
        window=0.25,
        fixed_initial_states=True,
        slow=True,
        settings={"contact": ImpulseContact(friction=0.5)},
    ),
    "pusher": Case(("body.mass[tip]",), force=0.5, steps=40, slow=True, settings={"contact": "impulse"}),
}


def test_every_built_in_model_is_covered():
    assert set(CASES) == set(BUILT_IN)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if c.slow else ()) for n, c in CASES.items()])
def test_parameters_are_recovered(name):
    case = CASES[name]
    sim = Simulator(BUILT_IN[name](), dt=case.dt, **case.settings)
    topology, actuators = sim.model.topology, sim.model.actuator.names
    channels = {f"q {place}": f"joint.q[{place}]" for place in topology.coordinate_names}
    t = np.arange(case.steps) * case.dt
    commands = {
        actuator: case.force * np.sin((7.0 + 3.0 * k) * t + k) for k, actuator in enumerate(actuators) if case.force
    }
    q = sim.model.home if case.q is None else case.q
    run = simulate_recording(sim, q, case.qd, steps=case.steps, channels=channels, commands=commands)
    true_problem = build_fit_problem(sim, channels, [Free(name) for name in case.free], [run], commands=list(commands))
    values = true_problem.space.values(true_problem.space.initial)
    free_parameters = [Free(name, initial=values[name] * INITIAL_FACTORS[k]) for k, name in enumerate(case.free)]
    fit_problem = build_fit_problem(sim, channels, free_parameters, [run], commands=list(commands))
    if case.fixed_initial_states:
        objective = objective_at_true_states(fit_problem, Stage(window=case.window, initial_states="measured"))
    else:
        objective, _ = fit_problem.objective(Stage(window=case.window))
    state = run_solver(LevenbergMarquardt(), objective, objective.point(fit_problem.space.initial))
    found = fit_problem.space.values(state.point.theta[0])
    assert found == pytest.approx(values, rel=1e-6)
    assert state.cost[0] < 1e-9

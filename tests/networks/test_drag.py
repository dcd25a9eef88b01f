"""Drag of rods: closed forms, passivity, agreement of both back-ends, and recovery by a fit."""

import jax
import numpy as np
import pytest

from hybridsim import Blueprint, Graft, Simulator, kinematics, simulate
from hybridsim.data.run import Run
from hybridsim.dynamics.energy import gravity_energy, kinetic_energy
from hybridsim.errors import TapError
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.solve import solve
from hybridsim.identify.stage import Stage
from hybridsim.identify.windows import ChannelRoles
from hybridsim.networks import RodDrag
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots import double_pendulum, pendulum
from hybridsim.sim.sensors import Sensors

ROD = ((0.0, 0.0, 0.0), (0.0, 0.0, -2.0))


def wrench(rod: RodDrag, omega=(0.0, 0.0, 0.0), v=(0.0, 0.0, 0.0)) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(rod(np.array([*omega, *v])))


def test_translation_normal_to_the_rod():
    drag = wrench(RodDrag(*ROD, quadratic=3.0, linear=0.5), v=(4.0, 0.0, 0.0))
    force = -2.0 * (0.5 * 4.0 + 3.0 * 16.0)
    # it acts in the middle, one metre below the origin
    np.testing.assert_allclose(drag, [0, -force, 0, force, 0, 0], atol=1e-12)


def test_rotation_about_the_end_of_the_rod():
    drag = wrench(RodDrag(*ROD, quadratic=3.0, linear=0.5), omega=(0.0, 1.5, 0.0))
    torque = -(0.5 * 1.5 * 2.0**3 / 3.0 + 3.0 * 1.5**2 * 2.0**4 / 4.0)
    np.testing.assert_allclose(drag[:3], [0.0, torque, 0.0], rtol=1e-12)


def test_rotation_about_the_middle_of_the_rod():
    rod = RodDrag((0.0, 0.0, 1.0), (0.0, 0.0, -1.0), quadratic=3.0)
    drag = wrench(rod, omega=(0.0, 1.5, 0.0))
    np.testing.assert_allclose(drag[1], -3.0 * 1.5**2 * 2.0 / 4.0, rtol=0.01)
    np.testing.assert_allclose(drag[3:], 0.0, atol=1e-12)


def test_axial_motion_has_no_drag():
    assert not wrench(RodDrag(*ROD, quadratic=3.0, linear=1.0), omega=(0.0, 0.0, 2.0), v=(0.0, 0.0, 5.0)).any()


def test_drag_is_passive():
    random = np.random.default_rng(0)
    for _ in range(50):
        rod = RodDrag(random.normal(size=3), random.normal(size=3), quadratic=random.uniform(), linear=random.uniform())
        twist = random.normal(size=6)
        assert wrench(rod, twist[:3], twist[3:]) @ twist <= 0.0


def test_derivatives_at_rest_are_finite():
    rod = RodDrag(*ROD, quadratic=3.0, linear=0.5)
    with jax.enable_x64(True):
        jacobian = np.asarray(jax.jacrev(rod)(np.zeros(6)))
    assert np.isfinite(jacobian).all() and jacobian[3, 3] == pytest.approx(-0.5 * 2.0)


@pytest.mark.parametrize("ends", [((0, 0, 0), (0, 0, 0)), ((0, 0), (1, 0)), (1.0, 2.0)])
def test_invalid_end_points_are_refused(ends):
    with pytest.raises(TapError, match="two distinct end points with 3 components each"):
        RodDrag(*ends)


def total_energy(sim: Simulator, q, qd) -> float:
    kin = kinematics(sim.model, q, qd)
    return float(kinetic_energy(sim.model, kin, qd) + gravity_energy(sim.model, kin))


def simulator_with_drag(model, body: str, quadratic: float, **options) -> Simulator:
    rod = RodDrag((0, 0, 0), (0, 0, -1.0), quadratic=quadratic)
    graft = Graft(f"body.external_wrench[{body}]", f"body.twist[{body}]", rod)
    return Simulator(model, blueprint=Blueprint(graft), dt=0.005, **options)


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_a_pendulum_in_air_loses_energy(backend):
    sim = simulator_with_drag(double_pendulum(), "link1", 0.3, integrator="rk4", backend=backend)
    trajectory = simulate(sim, sim.initial_state([1.5, 0.5]), steps=200)
    with jax.enable_x64(True):
        total = [total_energy(sim, q, qd) for q, qd in zip(trajectory.q[::20], trajectory.qd[::20], strict=True)]
    assert np.all(np.diff(total) < 1e-9) and total[-1] < total[0] - 0.5


def test_native_code_equals_xla():
    q = [
        simulate(sim, sim.initial_state([1.5, 0.5]), steps=100).q
        for sim in (
            simulator_with_drag(double_pendulum(), "link1", 0.3, backend=backend) for backend in ("native", "xla")
        )
    ]
    np.testing.assert_allclose(*q, rtol=1e-11, atol=1e-12)


def test_a_fit_recovers_the_coefficient():
    true = simulator_with_drag(pendulum(), "link0", 0.4)
    trajectory = simulate(true, true.initial_state([1.5]), steps=400)
    run = Run.from_arrays("run", np.asarray(trajectory.t), {"q": np.asarray(trajectory.q[:, 0])})
    sim = simulator_with_drag(pendulum(), "link0", 0.01)
    setup = Setup(sim, Sensors.from_addresses(sim, {"q": "joint.q[joint0]"}))
    space = ParameterSpace(setup, [Free("graft[0].quadratic", bounds=(0, None))])
    result = solve(FitProblem(setup, space, ChannelRoles({"q": 1e-3}, {}, {}), (run,)), [Stage(window=0.5)])
    assert space.values(result.theta)["graft[0].quadratic"] == pytest.approx(0.4, rel=1e-6)

"""Scales of networks from recordings."""

import numpy as np
import pytest

from hybridsim.core.errors import TapError
from hybridsim.data.run import Run
from hybridsim.identify.network_scales import scale_to_data, signal_scales
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.windows import ChannelRoles
from hybridsim.networks.friction import ConeFriction, JointFriction
from hybridsim.networks.lagrangian import Lagrangian
from hybridsim.networks.mlp import MLP
from hybridsim.networks.passive import Conservative, Dissipative, PortHamiltonian
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots import cube, double_pendulum
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.step import step
from hybridsim.taps.blueprint import Blueprint, Graft
from support.discovery_cases import DT, READS, RUNS, discovery_problem, pendulum_discovery


def test_scales_are_those_of_the_recordings():
    fit_problem = pendulum_discovery(READS, 0.0, (0.15, 0.1))
    (first, _) = signal_scales(fit_problem)
    names = fit_problem.setup.sensors.names
    q = np.concatenate([[run.series[name].values for name in names] for run in fit_problem.train], axis=1)
    rate = np.concatenate([np.gradient(q[:, k : k + 401], DT, axis=1) for k in range(0, q.shape[1], 401)], axis=1)
    expected = np.concatenate([q, rate])
    assert first.mean[:4] == pytest.approx(expected.mean(axis=1), abs=0.1)
    assert first.std[:4] == pytest.approx(expected.std(axis=1), rel=0.05)
    assert first.mean[4] == pytest.approx(1.0, abs=0.05)  # time
    assert first.output == pytest.approx([1.0])  # torques that are always zero


def test_scaled_networks_have_no_effect_before_a_fit():
    model = double_pendulum()
    grafts = [
        Graft("joint.tau", ["joint.q", "joint.qd"], MLP(2, 1, hidden=(3,)), per="element"),
        Graft("joint.qdd", ["joint.q", "body.pose[link1].p.y"], MLP(3, 2, hidden=(3,))),
        Graft("joint.tau", "joint.q", lambda q: 0.0 * q),
    ]
    rng = np.random.default_rng(0)
    initial = [(rng.normal(size=2), rng.normal(size=2)) for _ in range(RUNS)]
    fit_problem = discovery_problem(Simulator(model, dt=DT), model, grafts, initial, 0.0)
    scales = signal_scales(fit_problem)
    scaled = scale_to_data(fit_problem, inputs=[0, 1, 2], outputs=[1])
    one, other, mine = (graft.net for graft in scaled.setup.sim.blueprint.grafts)
    # one network for both joints: their signals are pooled
    assert one.input_scale.shape == (2,) and one.output_scale.tolist() == [1.0]
    # the zero standard deviation of a constant signal is replaced by one
    assert other.input_scale[2] == 1.0 and other.input_shift[2] == pytest.approx(0.0, abs=1e-12)
    assert np.array_equal(other.output_scale, scales[1].output) and np.all(other.output_scale > 0.5)
    assert mine is grafts[2].net
    with pytest.raises(TapError, match=r"joint.tau contains outputs, but function is no MLP; remove outputs"):
        scale_to_data(fit_problem, outputs=[2])
    assert scale_to_data(fit_problem).setup.sim.blueprint.grafts[1].net.output_scale.tolist() == [1.0, 1.0]
    state = fit_problem.setup.sim.initial_state([0.3, 0.2], [1.0, 0.0])
    np.testing.assert_array_equal(step(scaled.setup.sim, state).qd, step(fit_problem.setup.sim, state).qd)


def test_quantities_unknown_before_a_step_have_unit_scale():
    model = cube()
    sim = Simulator(
        model,
        blueprint=Blueprint(
            Graft("step.qd_next", ["joint.qd", "step.qd_next@1"], MLP(12, 6, hidden=(2,))),
            Graft("joint.q", "step.time", MLP(1, 6, hidden=(2,))),
            Graft("joint.tau", "joint.qd", MLP(6, 6, hidden=(2,)), mode="scale"),
        ),
    )
    t = np.arange(60) * float(sim.dt)
    names = model.topology.coordinate_names
    columns = {f"q{k}": np.full(len(t), float(value)) for k, value in enumerate(np.asarray(model.home))}
    columns["q0"] = np.sin(9.0 * t)
    setup = Setup(sim, Sensors.from_addresses(sim, {f"q{k}": f"joint.q[{name}]" for k, name in enumerate(names)}))
    channel_roles = ChannelRoles(dict.fromkeys(columns, 1e-3))
    run = Run.from_arrays("run", t, columns)
    scales = signal_scales(FitProblem(setup, ParameterSpace(setup, [Free("graft[*]")]), channel_roles, (run,)))
    assert scales[0].output.tolist() == [1.0] * 6 and scales[0].std[6:].tolist() == [1.0] * 6
    assert scales[1].output.tolist() == [1.0] * 6
    assert scales[2].output.tolist() == [1.0] * 6
    # constant signals are not amplified
    assert scales[0].std[:6].min() > 0.1


def test_every_network_kind_normalizes_its_inputs():
    mean, std = np.arange(1.0, 11.0), np.arange(11.0, 21.0)

    def normalize(net, n):
        return net.normalize_inputs(mean[:n], std[:n])

    assert normalize(Dissipative(2, 2), 4).net.input_shift.tolist() == [1.0, 2.0]
    assert normalize(Dissipative(0, 2), 2).net.values.tolist() == [0.0] * 3
    assert normalize(Conservative(2), 2).net.input_scale.tolist() == [11.0, 12.0]
    port = normalize(PortHamiltonian(2, ports=1), 5)
    for net in (port.dissipative.net, port.conservative.net, port.gyroscopic, port.port):
        assert net.input_shift.tolist() == [1.0, 2.0]
    lagrangian = normalize(Lagrangian(2), 10)
    assert lagrangian.inertia.input_scale.tolist() == lagrangian.conservative.net.input_scale.tolist() == [11.0, 12.0]
    friction = normalize(JointFriction(1), 2)
    assert friction.net.input_shift.tolist() == [1.0, 0.0] and friction.net.input_scale.tolist() == [11.0, 1.0]
    assert float(friction.speed_scale) == pytest.approx(np.hypot(2.0, 12.0))
    cone = normalize(ConeFriction(1), 4)
    assert cone.net.input_shift.tolist() == [0.0, 4.0] and cone.net.input_scale.tolist() == [1.0, 14.0]
    assert float(cone.speed_scale) == pytest.approx(np.sqrt(4.0 + 9.0 + 144.0 + 169.0))

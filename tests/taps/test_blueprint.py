"""Blueprints: effects of grafts, unchanged programs without grafts, and error messages."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.errors import TapError
from hybridsim.model.builder import ModelBuilder
from hybridsim.networks.mlp import MLP
from hybridsim.robots import double_pendulum
from hybridsim.sim.choices import INTEGRATORS
from hybridsim.sim.integrate import next_state
from hybridsim.sim.rollout import rollout
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State, as_inputs
from hybridsim.sim.step import observe, step
from hybridsim.taps.blueprint import Blueprint, Graft
from hybridsim.taps.catalogue import CATALOGUE, Form
from support.networks import constant_network
from support.slow import slow


@pytest.fixture(scope="module")
def model():
    return double_pendulum(damping=0.1)


@pytest.fixture(scope="module")
def floating_arm():
    """A free body with an actuated arm, which has every axis and every form of the catalogue."""
    robot = ModelBuilder("floating")
    robot.add_body(
        "base", joint="root", kind="free", mass=2.0, com=(0.1, 0, 0), inertia=(0.1, 0.2, 0.25, 0.01, 0.02, 0.03)
    )
    robot.add_body(
        "arm", parent="base", joint="hinge", at=(0.3, 0, 0), mass=0.5, com=(0.2, 0, 0), inertia=(0.1, 0.1, 0.1)
    )
    robot.add_geom("base", "sphere", (0.1,))
    robot.add_geom("arm", "capsule", (0.1, 0.2))
    robot.add_geom("world", "plane", (), at=(0.0, 0.0, -0.15), name="floor")
    return robot.build()


def _initial_state(sim):
    return sim.initial_state([1.0, 0.5], [0.3, -0.2])


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_an_empty_blueprint_does_not_change_the_program(model, monkeypatch, integrator):
    """The traced program equals that of an engine without taps."""
    sim = Simulator(model, integrator=integrator)
    traced = jax.make_jaxpr(next_state)(sim, _initial_state(sim), as_inputs(None, sim.model.nu))

    class NoTaps:
        def __call__(self, name, value, retract=None):
            return value

        def publish_user_inputs(self, inputs):
            pass

        def has_reader(self, name):
            return False

    monkeypatch.setattr(Simulator, "open_taps", lambda self, state: NoTaps())
    untapped = jax.make_jaxpr(next_state)(sim, _initial_state(sim), as_inputs(None, sim.model.nu))
    assert str(traced) == str(untapped)


@pytest.mark.parametrize(
    ("integrator", "contact"),
    [
        ("euler", "compliant"),
        slow("euler", "impulse"),
        slow("rk4", "compliant"),
        slow("implicit", "compliant"),
    ],
)
def test_initial_grafts_on_all_quantities_change_nothing(floating_arm, integrator, contact):
    """Bit for bit, or to rounding if stages are compiled: XLA fuses two programs differently."""
    model = floating_arm
    plain = Simulator(model, integrator=integrator, contact=contact)
    sizes = {"dof": model.nv, "body": model.nb, "actuator": model.nu, "contact": plain.contact.candidates.nc}
    assert sizes["contact"] == 3
    grafts = []
    for quantity in CATALOGUE:
        if quantity.form is Form.READ_ONLY:
            continue
        outputs = sizes[quantity.write_axis] * max(len(quantity.components), 1)
        grafts.append(Graft(quantity.name, ["step.time"], MLP(1, outputs, hidden=(3,))))
    grafted = Simulator(model, integrator=integrator, contact=contact, blueprint=Blueprint(*grafts))
    rng = np.random.default_rng(0)
    state = plain.initial_state(model.home, rng.normal(size=model.nv))
    u = rng.normal(size=model.nu)
    one, other = step(plain, state, u), step(grafted, state, u)
    rounding = 1e-14 if integrator == "rk4" else 0.0
    np.testing.assert_allclose(one.q, other.q, rtol=rounding, atol=rounding)
    np.testing.assert_allclose(one.qd, other.qd, rtol=rounding, atol=rounding)


def test_an_added_torque_equals_the_same_command(model):
    """A constant added to joint.tau acts like the same constant as command."""
    sim = Simulator(model, blueprint=Blueprint(Graft("joint.tau", ["joint.qd"], constant_network(0.7, -0.4))))
    commanded = step(Simulator(model), _initial_state(sim), np.array([0.7, -0.4]))
    np.testing.assert_allclose(step(sim, _initial_state(sim)).qd, commanded.qd, rtol=1e-14)


def test_a_graft_on_one_scalar(model):
    sim = Simulator(model, blueprint=Blueprint(Graft("joint.tau[joint1]", ["joint.qd"], constant_network(0.5))))
    commanded = step(Simulator(model), _initial_state(sim), np.array([0.0, 0.5]))
    np.testing.assert_allclose(step(sim, _initial_state(sim)).qd, commanded.qd, rtol=1e-14)


@pytest.mark.parametrize(("mode", "expected"), [("add", [1.5, 2.5]), ("replace", [0.5, 0.5]), ("scale", [1.5, 3.0])])
def test_modes(model, mode, expected):
    sim = Simulator(
        model, blueprint=Blueprint(Graft("actuator.command", ["step.time"], constant_network(0.5, 0.5), mode=mode))
    )
    record = observe(sim, _initial_state(sim), np.array([1.0, 2.0]))
    np.testing.assert_allclose(record["actuator.command"], expected)


def test_per_element_shares_one_network_along_the_axis(model):
    law = eqx.Partial(lambda c, x: c * x[:1] * x[1:2], jnp.asarray(2.0))
    per_element = Graft("joint.tau", ["joint.qd", "step.time"], law, per="element")
    sim = Simulator(model, blueprint=Blueprint(per_element))
    state = sim.initial_state([1.0, 0.5], [0.3, -0.2], t=3.0)
    change = observe(sim, state)["joint.tau"] - observe(Simulator(model), state)["joint.tau"]
    np.testing.assert_allclose(change, 2.0 * np.array([0.3, -0.2]) * 3.0, rtol=1e-12)


def test_a_single_row_is_shared_by_all_elements(model):
    graft = Graft("joint.tau", ["joint.q", "joint.qd[joint0]"], lambda x: 2.0 * x[1:], per="element")
    sim = Simulator(model, blueprint=Blueprint(graft))
    change = (
        observe(sim, _initial_state(sim))["joint.tau"] - observe(Simulator(model), _initial_state(sim))["joint.tau"]
    )
    np.testing.assert_allclose(change, [0.6, 0.6], rtol=1e-12)


def test_rows_that_do_not_belong_to_elements_are_refused(model):
    """Otherwise a network of one link would silently read all of them."""
    for output, read in (("joint.tau[joint0]", "joint.q"), ("joint.tau", "joint.q[joint1,joint0]")):
        graft = Graft(output, [read], lambda x: x[:1], per="element")
        with pytest.raises(TapError, match="differ from those of its outputs, 'joint0'"):
            Simulator(model, blueprint=Blueprint(graft))
    # rows of another axis are shared, even if their names coincide
    shared = ModelBuilder("alike")
    shared.add_body("a", joint="a", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    shared.add_body("c", parent="a", joint="b", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    Simulator(shared.build(), blueprint=Blueprint(Graft("joint.tau", ["body.twist"], lambda x: x[:1], per="element")))
    graft = Graft(["joint.tau", "joint.passive[joint0]"], ["joint.q"], lambda x: x[:1], per="element")
    with pytest.raises(TapError, match="must have the same rows"):
        Simulator(model, blueprint=Blueprint(graft))


def test_one_network_with_several_outputs(model):
    graft = Graft(["joint.passive[joint0]", "joint.actuation[joint1]"], ["joint.q"], constant_network(1.0, 2.0))
    sim, plain = Simulator(model, blueprint=Blueprint(graft)), Simulator(model)
    after, before = observe(sim, _initial_state(sim)), observe(plain, _initial_state(sim))
    np.testing.assert_allclose(after["joint.passive"] - before["joint.passive"], [1.0, 0.0])
    np.testing.assert_allclose(after["joint.actuation"] - before["joint.actuation"], [0.0, 2.0])


def test_user_inputs(model):
    wind = eqx.Partial(lambda c, x: c * x, jnp.asarray(3.0))
    blueprint = Blueprint(Graft("joint.tau[joint0]", ["input.wind"], wind), inputs={"wind": 1})
    sim = Simulator(model, blueprint=blueprint)
    after = observe(sim, _initial_state(sim), Inputs(np.zeros(2), user={"wind": np.array([0.5])}))
    before = observe(Simulator(model), _initial_state(sim))
    np.testing.assert_allclose(after["joint.tau"] - before["joint.tau"], [1.5, 0.0], atol=1e-14)
    with pytest.raises(TapError, match=r"no user input for 'input\.wind'"):
        observe(sim, _initial_state(sim))
    with pytest.raises(TapError, match=r"'input\.wind' has 2 elements, but the blueprint expects 1"):
        observe(sim, _initial_state(sim), Inputs(np.zeros(2), user={"wind": np.zeros(2)}))


@pytest.mark.parametrize("per", ["graft", "element"])
def test_a_network_with_one_output_may_return_a_scalar(model, per):
    where = "joint.tau[joint1]" if per == "graft" else "joint.tau"
    drag = eqx.Partial(lambda c, x: -c * x[0], jnp.asarray(0.5))
    sim = Simulator(model, blueprint=Blueprint(Graft(where, [where.replace("tau", "qd")], drag, per=per)))
    change = (
        observe(sim, _initial_state(sim))["joint.tau"] - observe(Simulator(model), _initial_state(sim))["joint.tau"]
    )
    np.testing.assert_allclose(change, [0.0 if per == "graft" else -0.15, 0.1], atol=1e-15)


def test_configurations_stay_on_their_manifold(floating_arm):
    """Adding to the degrees of freedom of a quaternion preserves unit length."""
    model = floating_arm
    graft = Graft("step.q_next[root]", ["step.time"], constant_network(0.3, -0.2, 0.1, 1.0, 2.0, 3.0))
    sim = Simulator(model, blueprint=Blueprint(graft))
    q = step(sim, sim.initial_state()).q
    assert np.linalg.norm(q[3:7]) == pytest.approx(1.0, abs=1e-14)
    assert np.linalg.norm(q[:3] - model.home[:3]) > 3.0


def test_pose_and_inertia_by_component(model):
    heavier = Graft("body.inertia[link1].mass", ["step.time"], constant_network(0.25))
    higher = Graft("body.pose[link0].p.z", ["step.time"], constant_network(0.125), mode="replace")
    sim = Simulator(model, blueprint=Blueprint(heavier, higher))
    after = observe(sim, _initial_state(sim))
    before = observe(Simulator(model), _initial_state(sim))
    change = np.asarray(after["body.inertia"] - before["body.inertia"])
    assert change[1, 0] == pytest.approx(0.25) and np.count_nonzero(change) == 1
    assert after["body.pose"][0, 2] == 0.125
    np.testing.assert_allclose(after["body.pose"][1], before["body.pose"][1], rtol=0, atol=0)


def test_gradients_of_a_rollout_with_respect_to_weights(model):
    """Gradients reach the weights of a network inside the engine and agree with finite differences."""
    net = MLP(2, 2, hidden=(4,), seed=1)
    net = eqx.tree_at(lambda n: n.weights[-1], net, 0.1 * np.ones((2, 4)))
    sim = Simulator(model, blueprint=Blueprint(Graft("joint.tau", ["joint.qd"], net)), dt=0.01)

    @eqx.filter_jit
    def loss(sim):
        return jnp.sum(rollout(sim, _initial_state(sim), steps=20).q ** 2)

    gradient = eqx.filter_grad(loss)(sim).blueprint.grafts[0].net.weights[0]

    def shifted_loss(h):
        return loss(eqx.tree_at(lambda s: s.blueprint.grafts[0].net.weights[0], sim, net.weights[0] + h * E))

    E = np.zeros((4, 2))
    E[2, 1] = 1.0
    assert float(gradient[2, 1]) == pytest.approx(float(shifted_loss(1e-5) - shifted_loss(-1e-5)) / 2e-5, rel=1e-6)
    assert abs(gradient[2, 1]) > 1e-8


def test_other_weights_do_not_recompile(model):
    traces = 0

    @eqx.filter_jit
    def count_traces(sim, state):
        nonlocal traces
        traces += 1
        return next_state(sim, state, as_inputs(None, 2))

    for seed in range(3):
        blueprint = Blueprint(Graft("joint.tau", ["joint.qd"], MLP(2, 2, seed=seed)))
        sim = Simulator(model, blueprint=blueprint, dt=0.001 * (seed + 1))
        count_traces(sim, _initial_state(sim))
    assert traces == 1


def test_simulators_with_different_blueprints_are_independent(model):
    grafted = Simulator(model, blueprint=Blueprint(Graft("joint.tau", ["joint.qd"], constant_network(5.0, 0.0))))
    plain = Simulator(model)
    state = _initial_state(plain)
    first = step(plain, state).qd
    step(grafted, state)
    assert np.array_equal(step(plain, state).qd, first)


WRONG = {
    "unknown quantity": (("joint.tua", ["joint.q"], 2, 2), "did you mean 'joint.tau'"),
    "unknown row": (
        ("joint.tau[joint7]", ["joint.q"], 2, 1),
        "nothing is named 'joint7'; did you mean 'joint0' or 'joint1'",
    ),
    "unknown component": (("body.twist[link0].omga", ["joint.q"], 2, 3), "did you mean 'omega'"),
    "unreadable address": (("tau", ["joint.q"], 2, 2), "group.quantity"),
    "input only": (("step.time", ["joint.q"], 2, 1), "is read-only"),
    "input too late": (
        ("joint.tau", ["joint.qdd"], 2, 2),
        "'joint.qdd' is computed after output 'joint.tau'",
    ),
    "wrong output size": (("joint.tau", ["joint.q"], 2, 3), "must return 2 outputs for 2 inputs"),
    "wrong input size": (("joint.tau", ["joint.q"], 5, 2), "cannot be evaluated on its 2 inputs"),
    "unknown user input": (("joint.tau", ["input.wind"], 1, 2), "no user input named 'wind'"),
    "configuration replaced": (("joint.q", ["step.time"], 1, 2), "supports only mode 'add', not 'replace'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_are_explained(model, case):
    (output, inputs, n_in, n_out), message = WRONG[case]
    mode = "replace" if case == "configuration replaced" else "add"
    graft = Graft(output, inputs, MLP(n_in, n_out, hidden=(2,)), mode=mode)
    with pytest.raises(TapError) as error:
        Simulator(model, blueprint=Blueprint(graft))
    assert message in str(error.value)


def test_unknown_values_of_mode_and_per_are_refused():
    with pytest.raises(TapError, match="unknown `mode` 'multiply'"):
        Graft("joint.tau", ["joint.q"], MLP(2, 2), mode="multiply")
    with pytest.raises(TapError, match="`per` of a graft must be 'graft' or 'element'"):
        Graft("joint.tau", ["joint.q"], MLP(2, 2), per="joint")


def test_tap_inside_a_transformation_is_caught(model):
    sim = Simulator(model, blueprint=Blueprint(Graft("joint.tau", ["joint.q"], constant_network(1.0, 1.0))))
    taps = sim.open_taps(_initial_state(sim))
    with pytest.raises(TapError, match="is used inside a vmap"):
        jax.vmap(lambda q: taps("joint.q", q))(jnp.zeros((3, 2)))


def test_simulator_works_inside_vmap_and_grad(model):
    """A batch over weights: each row with its own network."""
    blueprint = Blueprint(Graft("joint.tau", ["joint.qd"], constant_network(0.0, 0.0)))
    sim = Simulator(model, blueprint=blueprint)

    def final(c):
        changed = eqx.tree_at(lambda s: s.blueprint.grafts[0].net.args[0], sim, c)
        return rollout(changed, _initial_state(sim), steps=3).qd[-1]

    batch = jax.jit(jax.vmap(final))(jnp.array([[0.0, 0.0], [1.0, 0.0]]))
    one = final(jnp.array([1.0, 0.0]))
    np.testing.assert_allclose(batch[1], one, rtol=1e-12)
    assert isinstance(rollout(sim, _initial_state(sim), steps=1).final, State)

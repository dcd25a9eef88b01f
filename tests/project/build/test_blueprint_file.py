"""Blueprint files: exact round trip, and clear errors for files that do not match."""

import equinox as eqx
import jax
import numpy as np
import pytest
import safetensors.numpy

from hybridsim.core.errors import HybridsimError
from hybridsim.model.builder import ModelBuilder
from hybridsim.networks.drag import RodDrag
from hybridsim.networks.friction import ConeFriction, JointFriction
from hybridsim.networks.internal_force import InternalForce
from hybridsim.networks.lagrangian import Lagrangian
from hybridsim.networks.mlp import MLP
from hybridsim.networks.passive import Conservative, Dissipative, PortHamiltonian
from hybridsim.project.build.blueprint_file import load_blueprint, save_blueprint
from hybridsim.project.schema.project_error import ProjectError
from hybridsim.robots import cartpole, cube, double_pendulum, n_link_pendulum
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.step import step
from hybridsim.taps.blueprint import Blueprint, Graft
from support.networks import randomize_weights

HIDDEN = {"hidden": (3,), "activation": "elu"}
JOINTS = ["joint.q", "joint.qd"]
GRAFTS = {
    "mlp": Graft("joint.tau[joint1]", [*JOINTS, "step.time"], MLP(5, 1, input_scale=[1, 2, 3, 4, 5], **HIDDEN)),
    "biased mlp": Graft("joint.tau", ["joint.qd"], MLP(1, 1, input_bias=True, **HIDDEN), per="element", mode="scale"),
    "dissipative": Graft("joint.tau", JOINTS, Dissipative(2, 2, damping_scale=0.3, **HIDDEN)),
    "constant": Graft("joint.tau", "joint.qd", Dissipative(0, 2)),
    "conservative": Graft("joint.tau", "joint.q", Conservative(2, potential_scale=2.0, **HIDDEN)),
    "port": Graft("joint.tau", [*JOINTS, "actuator.command"], PortHamiltonian(2, ports=2, **HIDDEN)),
    "lagrangian": Graft(
        "joint.qdd", [*JOINTS, "joint.qdd", "joint.mass_matrix"], Lagrangian(2, **HIDDEN), mode="replace"
    ),
    "friction": Graft("joint.tau", JOINTS, JointFriction(1, width=0.3, **HIDDEN), per="element"),
    "drag": Graft("body.external_wrench[link1]", "body.twist[link1]", RodDrag((0, 0, 0), (0, 0, -1), quadratic=0.2)),
    "internal": Graft(
        "body.external_wrench[link0,link1]",
        ["body.pose[link0,link1]", "body.twist[link0,link1]"],
        InternalForce((0, 0, -0.1), damping_scale=0.5, **HIDDEN),
    ),
}


def are_equal(one: Blueprint, other: Blueprint) -> bool:
    a, b = jax.tree.leaves(one), jax.tree.leaves(other)
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("kind", GRAFTS)
def test_a_blueprint_is_unchanged_by_saving_and_loading(kind, tmp_path):
    model, graft = double_pendulum(), GRAFTS[kind]
    blueprint = Blueprint(eqx.tree_at(lambda g: g.net, graft, randomize_weights(graft.net, (1, 0.5))))
    save_blueprint(blueprint, tmp_path / "b.toml", model)
    again = load_blueprint(tmp_path / "b.toml", model)
    assert jax.tree.structure(again) == jax.tree.structure(blueprint)
    assert are_equal(again, blueprint)
    one, other = (Simulator(model, blueprint=b) for b in (blueprint, again))
    state = one.initial_state([0.5, -0.3], [1.0, 0.2])
    assert np.array_equal(step(one, state).qd, step(other, state).qd)


def test_contacts_and_user_inputs_are_unchanged_by_saving_and_loading(tmp_path):
    sim = Simulator(cube(), contact="compliant")
    cone = Graft(
        "contact.friction_force",
        ["contact.normal_force", "contact.slip_velocity"],
        ConeFriction(friction=0.4, **HIDDEN),
        mode="replace",
        per="element",
    )
    wind = Graft("body.external_wrench[cube].force", "input.wind", MLP(2, 3, **HIDDEN))
    blueprint = Blueprint(cone, wind, inputs={"wind": 2})
    save_blueprint(blueprint, tmp_path / "b.toml", sim)
    again = load_blueprint(tmp_path / "b.toml", sim)
    assert are_equal(again, blueprint) and again.inputs == (("wind", 2),)


def test_without_weights_networks_have_initial_weights(tmp_path):
    text = 'format = 1\n[[graft]]\noutputs = "joint.tau"\ninputs = "joint.qd"\n[graft.network]\nhidden = [4]\n'
    (tmp_path / "b.toml").write_text(text)
    one, other = (load_blueprint(tmp_path / "b.toml", double_pendulum(), seed=seed) for seed in (0, 1))
    assert not np.any(one.grafts[0].net.weights[-1]) and not are_equal(one, other)


def test_user_defined_networks_cannot_be_saved(tmp_path):
    blueprint = Blueprint(Graft("joint.tau", "joint.qd", eqx.nn.Linear(2, 2, key=jax.random.key(0))))
    with pytest.raises(
        HybridsimError, match="is a Linear, which is not among the kinds that a file supports; use it from Python"
    ):
        save_blueprint(blueprint, tmp_path / "b.toml", double_pendulum())
    assert not list(tmp_path.iterdir())


def test_weights_of_another_model_are_explained(tmp_path):
    blueprint = Blueprint(Graft("joint.tau[joint0]", ["joint.q", "joint.qd"], MLP(4, 1, **HIDDEN)))
    save_blueprint(blueprint, tmp_path / "b.toml", double_pendulum())
    with pytest.raises(HybridsimError) as caught:
        load_blueprint(tmp_path / "b.toml", n_link_pendulum(3))
    message = str(caught.value)
    assert "graft[0].weights[0] has the shape 3×4, not 3×6" in message
    assert "saved for the model 'double_pendulum'" in message
    assert "network 0 now also reads 'joint.q[joint2]', 'joint.qd[joint2]'" in message


def overwrite_weights(tmp_path, **arrays):
    file = tmp_path / "b.safetensors"
    file.write_bytes(safetensors.numpy.save(safetensors.numpy.load(file.read_bytes()) | arrays, {"format": "1"}))


def test_mismatched_weights_are_reported(tmp_path):
    model = double_pendulum()
    save_blueprint(Blueprint(GRAFTS["mlp"]), tmp_path / "b.toml", model)
    overwrite_weights(tmp_path, **{"graft[0].biases[0]": np.full(3, np.nan), "graft[7].weights[0]": np.zeros((1, 1))})
    with pytest.raises(
        HybridsimError, match=r"biases\[0\] is not an array of finite floating-point values; graft\[7\].*no network"
    ):
        load_blueprint(tmp_path / "b.toml", model)
    (tmp_path / "b.safetensors").write_bytes(b"nonsense")
    with pytest.raises(HybridsimError, match="not a weights file"):
        load_blueprint(tmp_path / "b.toml", model)
    (tmp_path / "b.safetensors").unlink()
    with pytest.raises(HybridsimError, match="the file does not exist; the weights must be next to the blueprint"):
        load_blueprint(tmp_path / "b.toml", model)


WRONG = {
    "version": ("format = 2\ngraft = []\n", 1, "format"),
    "name": ('format = 1\n[[graft]]\noutputs = "joint.tua"\ninputs = "joint.qd"\n', 3, "did you mean 'joint.tau'?"),
    "joint": (
        'format = 1\n[[graft]]\noutputs = "joint.tau"\ninputs = "joint.qd[elbow]"\n',
        4,
        "nothing is named 'elbow'",
    ),
    "key": ('format = 1\n[[graft]]\noutputs = "joint.tau"\ninputs = "joint.qd"\nfit = true\n', 5, "has no key 'fit'"),
    "order": ('format = 1\n[[graft]]\noutputs = "joint.tau"\ninputs = "joint.qdd"\n', 4, "is computed after output"),
    "sizes": (
        'format = 1\n[[graft]]\noutputs = "joint.tau"\ninputs = "joint.qd"\nnetwork.kind = "port_hamiltonian"\n',
        2,
        "reads as many coordinates and velocities as it returns torques",
    ),
    "user input": (
        'format = 1\n[[graft]]\noutputs = "joint.tau"\ninputs = "input.wind"\n',
        4,
        "no user input named 'wind'",
    ),
    "nothing": ("format = 1\n", 1, "graft"),
    "no TOML": ("format = \n", 1, "invalid TOML"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_file_that_cannot_be_used_is_explained(kind, tmp_path):
    text, line, words = WRONG[kind]
    (tmp_path / "b.toml").write_text(text)
    with pytest.raises(ProjectError) as caught:
        load_blueprint(tmp_path / "b.toml", double_pendulum())
    (problem,) = caught.value.problems
    assert words in f"{problem.message} {problem.fix}"
    assert (problem.file, problem.line) == (str(tmp_path / "b.toml"), line)


def test_names_with_special_characters_are_escaped(tmp_path):
    odd = ModelBuilder("odd")
    odd.add_body('a "quoted" link', joint="left-knee.1", mass=1.0, inertia=(1, 1, 1))
    model = odd.build()
    blueprint = Blueprint(Graft("joint.tau[left-knee.1]", "joint.qd[left-knee.1]", MLP(1, 1, **HIDDEN)))
    save_blueprint(blueprint, tmp_path / "b.toml", model)
    assert are_equal(load_blueprint(tmp_path / "b.toml", model), blueprint)


def test_weights_of_another_model_are_refused_even_if_their_shapes_fit(tmp_path):
    graft = Graft("joint.tau", ["joint.q", "joint.qd"], MLP(4, 2, hidden=(3,)))
    save_blueprint(Blueprint(graft), tmp_path / "b.toml", double_pendulum())
    with pytest.raises(HybridsimError, match="the weights belong to networks with different inputs"):
        load_blueprint(tmp_path / "b.toml", cartpole())
    # networks per joint can be transferred
    save_blueprint(Blueprint(Graft("joint.tau", "joint.qd", MLP(1, 1), per="element")), tmp_path / "c.toml", cartpole())
    assert load_blueprint(tmp_path / "c.toml", double_pendulum()).grafts
    # the order of inputs matters
    text = (tmp_path / "b.toml").read_text().replace('["joint.q", "joint.qd"]', '["joint.qd", "joint.q"]')
    (tmp_path / "b.toml").write_text(text)
    with pytest.raises(HybridsimError, match="in a different order"):
        load_blueprint(tmp_path / "b.toml", double_pendulum())

"""Networks of a project: scales from recordings, limits of weights, and blueprint files."""

import numpy as np
import pytest

from hybridsim.networks.mlp import MLP
from hybridsim.project.build.blueprint_file import load_blueprint, save_blueprint
from hybridsim.project.build.build import build
from hybridsim.project.schema.load import load_project
from hybridsim.project.schema.project_error import ProjectError
from hybridsim.robots import pendulum
from hybridsim.taps.blueprint import Blueprint, Graft
from support.networks import randomize_weights
from support.small_projects import PROJECT, problems_of, write_project

GRAFT = """
[[graft]]
outputs = "joint.tau[*]"
inputs = ["joint.q", "joint.qd"]
network = { hidden = [3]NETWORK }
"""
FILE = """
[blueprint]
file = "friction.toml"
"""


def fit_problem_of_project(folder, text):
    return build(load_project(write_project(folder, text))).problem


def problems_of_project(folder, text):
    with pytest.raises(ProjectError) as caught:
        fit_problem_of_project(folder, text)
    return caught.value.problems


def save_friction_blueprint(folder, graft=None, **more):
    """Save a blueprint of the pendulum; returns it."""
    graft = graft or Graft("joint.tau", "joint.qd", randomize_weights(MLP(1, 1, hidden=(2,)), (0, 0.5)))
    blueprint = Blueprint(graft, **more)
    save_blueprint(blueprint, folder / "friction.toml", pendulum())
    return blueprint


def test_scales_are_taken_from_the_recordings(tmp_path):
    text = PROJECT + GRAFT.replace("NETWORK", "") + 'normalize = ["inputs", "outputs"]\n'
    fit_problem = fit_problem_of_project(tmp_path, text)
    net = fit_problem.setup.sim.blueprint.grafts[0].net
    t = np.arange(100) * 0.01
    assert net.input_shift == pytest.approx([np.cos(3 * t).mean(), -3 * np.sin(3 * t).mean()], abs=0.2)
    assert net.input_scale == pytest.approx([np.cos(3 * t).std(), 3 * np.sin(3 * t).std()], rel=0.15)
    fitted = fit_problem.space.put(fit_problem.setup, fit_problem.space.initial)
    assert fitted.sim.blueprint.grafts[0].net.input_scale is net.input_scale
    fixed = fit_problem_of_project(tmp_path, text.replace('["inputs", "outputs"]', '"outputs"'))
    other = fixed.setup.sim.blueprint.grafts[0].net
    assert np.all(other.input_scale == 1.0) and other.output_scale == pytest.approx(net.output_scale)


def test_normalization_needs_recordings_and_a_valid_choice(tmp_path):
    (tmp_path / "b.toml").write_text("format = 1\n" + GRAFT.replace("NETWORK", "") + "normalize = 'inputs'\n")
    with pytest.raises(ProjectError, match="needs recordings, which a blueprint lacks"):
        load_blueprint(tmp_path / "b.toml", pendulum())
    (problem,) = problems_of_project(tmp_path, PROJECT + GRAFT.replace("NETWORK", "") + "normalize = 'input'\n")
    assert "`normalize` of a graft can contain inputs and outputs, not 'input'" in problem.message


def test_weights_are_free_with_bounds_if_they_are_named(tmp_path):
    graft = GRAFT.replace("NETWORK", "")
    text = f"{PROJECT}[[free]]\nname = 'graft[0]'\nbounds = [-2.5, 2.5]\n{graft}"
    space = fit_problem_of_project(tmp_path, text).space
    weights = space.is_weight
    assert np.all(space.lower[weights] == -2.5) and np.all(space.upper[weights] == 2.5) and weights.sum() == 13
    built = build(load_project(write_project(tmp_path, PROJECT + graft)))
    assert not built.problem.space.is_weight.any()
    (warning,) = built.warnings
    assert "the weights of graft[0] are fixed, and the output of this network is zero" in warning.message
    for key in ("l2 = 0.5", "limit = 2.5", "fit = true"):
        (problem,) = problems_of(lambda key=key: load_project(write_project(tmp_path, f"{PROJECT}{graft}{key}\n")))
        assert "[[free]] names them" in problem.fix


def test_networks_of_a_blueprint_file_follow_those_of_the_project(tmp_path):
    blueprint = save_friction_blueprint(tmp_path)
    free = "[[free]]\nname = 'graft[1]'\nbounds = [-9.0, 9.0]\n"
    text = PROJECT + free + GRAFT.replace("NETWORK", "") + FILE
    built = build(load_project(write_project(tmp_path, text)))
    project_graft, file_graft = built.problem.setup.sim.blueprint.grafts
    assert project_graft.inputs == ("joint.q", "joint.qd") and file_graft.inputs == ("joint.qd",)
    assert np.array_equal(file_graft.net.weights[0], blueprint.grafts[0].net.weights[0])
    space = built.problem.space
    is_from_file = [name.startswith("graft[1]") for name in space.names]
    assert sum(is_from_file) == 7 and np.all(space.upper[is_from_file] == 9.0)
    # the initial values are the weights of the file
    np.testing.assert_array_equal(space.initial[is_from_file][:2], np.ravel(blueprint.grafts[0].net.weights[0]))
    files = {name.rpartition("/")[2] for name, _ in built.sources}
    assert {"friction.toml", "friction.safetensors"} <= files


def test_a_blueprint_can_be_fixed(tmp_path):
    save_friction_blueprint(tmp_path)
    fit_problem = fit_problem_of_project(tmp_path, PROJECT + FILE)
    assert fit_problem.space.names == ("joint.damping[joint0]",) and len(fit_problem.setup.sim.blueprint.grafts) == 1


def test_mismatched_blueprints_are_explained(tmp_path):
    text = PROJECT + FILE
    (problem,) = problems_of_project(tmp_path, text)
    assert "friction.toml" in str(problem) and "the file does not exist" in str(problem)
    save_friction_blueprint(tmp_path)
    (tmp_path / "friction.safetensors").unlink()
    (problem,) = problems_of_project(tmp_path, text)
    assert "friction.safetensors: the file does not exist" in str(problem)
    assert "project.toml:20" in str(problem)
    (tmp_path / "friction.toml").write_text("format = 1\n" + GRAFT.replace("NETWORK", "").replace("[*]", "[elbow]"))
    (problem,) = problems_of_project(tmp_path, text)
    assert "friction.toml:4" in str(problem) and "elbow" in str(problem)
    graft = Graft("joint.tau", ["joint.qd", "input.wind"], MLP(2, 1, hidden=(2,)))
    save_friction_blueprint(tmp_path, graft, inputs={"wind": 1})
    (problem,) = problems_of_project(tmp_path, text)
    assert "needs the input 'wind'" in str(problem)
    command = '[[command]]\ncolumn = "u"\ninput = "wind"\n'
    assert len(fit_problem_of_project(tmp_path, text + command).setup.sim.blueprint.grafts) == 1

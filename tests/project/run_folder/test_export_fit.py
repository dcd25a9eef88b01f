"""Export of the identified model and of the weights of networks."""

from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy

from hybridsim.identify.task import Task
from hybridsim.io.load import load_model
from hybridsim.model.floor import with_floor
from hybridsim.networks.mlp import MLP
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.project.run_folder.export_fit import write_model, write_weights
from hybridsim.project.run_folder.folder import RunFolder
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft
from support.fit_tasks import arm_task


def task_with(task: Task, sim: Simulator, free_parameters: list[Free]) -> Task:
    setup = Setup(sim, Sensors.from_addresses(sim, {"angle": "joint.q[shoulder]"}))
    return replace(task, problem=replace(task.problem, setup=setup, space=ParameterSpace(setup, free_parameters)))


def test_a_model_is_written_without_the_floor_of_the_project(tmp_path):
    task = arm_task(tmp_path)
    sim = Simulator(with_floor(load_model(tmp_path / "arm.urdf"), -1.0))
    task = task_with(task, sim, [Free("body.mass[upper]"), Free("sensor.bias[angle]")])
    written = write_model(task, task.problem.space.initial * 2.0, RunFolder(tmp_path))
    assert written is not None and written["file"] == "identified.urdf"
    assert [(row["parameter"], row["after"]) for row in written["changes"]] == [("mass [kg]", 3.0)]
    assert written["remarks"] == [
        "identified.urdf does not contain sensor.bias[angle], which are not written to model files; see result.json."
    ]
    assert load_model(tmp_path / "identified.urdf").body.mass == pytest.approx([3.0])


def test_a_model_that_cannot_be_written_causes_a_warning_only(tmp_path):
    task = arm_task(tmp_path)
    theta = np.array(task.problem.space.initial)
    (tmp_path / "arm.urdf").write_text("<robot name='other'><link name='base'/></robot>")
    written = write_model(task, theta, RunFolder(tmp_path))
    assert written is not None and written["file"] is None
    assert "could not be written to a model file" in written["remarks"][0]


def test_weights_of_networks_are_written_by_name(tmp_path):
    task = arm_task(tmp_path)
    blueprint = Blueprint(Graft("joint.tau[shoulder]", ["joint.qd[shoulder]"], MLP(1, 1, hidden=(3,))))
    sim = Simulator(load_model(tmp_path / "arm.urdf"), blueprint=blueprint)
    task = task_with(task, sim, [Free("graft[0]")])
    run_folder, theta = RunFolder(tmp_path), np.random.default_rng(0).normal(size=task.problem.space.size)
    write_weights(task, theta, run_folder)
    written = write_model(task, theta, run_folder)
    assert written is not None and written["remarks"] == [
        "identified.urdf does not contain the networks on joint.tau[shoulder]; their weights are in "
        "weights.safetensors."
    ]
    found = safetensors.numpy.load_file(run_folder.weights_file)
    net = task.problem.space.put(task.problem.setup, theta).sim.blueprint.grafts[0].net
    np.testing.assert_array_equal(found["graft[0].weights[0]"], net.weights[0])
    np.testing.assert_array_equal(found["graft[0].biases[1]"], net.biases[1])
    assert found["graft[0].weights[1]"].any()


def test_without_networks_no_weights_file_is_written(tmp_path):
    task, run_folder = arm_task(tmp_path), RunFolder(tmp_path)
    write_weights(task, np.array(task.problem.space.initial), run_folder)
    assert not run_folder.weights_file.exists()

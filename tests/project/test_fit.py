"""A fit in Python: the example of the README, the same fit from TOML, saved and loaded results, and errors."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import hybridsim as hs
from hybridsim.errors import DataError, HybridsimError, SpecificationError
from hybridsim.project.build.build import build
from hybridsim.project.fit import fit_task
from hybridsim.project.fit_run import run_fit
from hybridsim.project.run_folder.folder import RunFolder
from hybridsim.project.schema.load import load_project
from support.arm_recordings import DAMPING, small_experiment

README = Path(__file__).parents[2] / "README.md"
EXAMPLE = next(
    block for block in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL) if "hs.fit(" in block
)

PROJECT = """
[model]
file = "arm.urdf"
dt = 0.002

[data]
files = "runs/*.csv"
held_out = ["run3"]

[[channel]]
measures = "joint.q[shoulder]"
column = "q1_deg"
unit = "deg"
noise = 0.05

[[channel]]
measures = "joint.q[elbow]"
column = "q2_deg"
unit = "deg"
noise = 0.05

[[command]]
actuator = "shoulder"
column = "tau1"

[[free]]
name = "joint.damping[*]"

[[free]]
name = "inertial[*]"
"""


@pytest.fixture(scope="module")
def example(folder) -> dict:
    """Variables of the example, which is run in the folder of the files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        names: dict = {}
        exec(compile(EXAMPLE, str(README), "exec"), names)
    return names


def test_the_example_of_the_readme_estimates_the_true_damping(example, folder):
    result = example["result"]
    assert result.has_converged
    for name in ("joint.damping[shoulder]", "joint.damping[elbow]"):
        error = abs(result.parameters[name] - DAMPING)
        assert error < 4.0 * result.standard_errors[name] and result.standard_errors[name] < 0.01 * DAMPING
    # shifting mass between the links changes no torque of this planar arm
    assert np.isinf(result.standard_errors["body.mass[upper]"])
    rows = {(row["run_kind"], row["score_kind"]): row["normalized"]["after"]["rms"] for row in result.record["scores"]}
    assert rows["held-out", "reconstructed"] < 1.2 and rows["training", "reconstructed"] < 1.2
    text = str(result)
    assert re.search(r"parameter +before +after +± +unit", text) and "held-out runs" in text and "training runs" in text
    assert imread(folder / "fit.png").std() > 0.05
    exported = hs.load_model(folder / "arm_fitted.urdf")
    np.testing.assert_allclose(exported.joint.damping, DAMPING, rtol=0.01)
    assert result.simulator.model.joint.damping[0] == pytest.approx(exported.joint.damping[0], rel=1e-9)
    assert (folder / "arm.urdf").read_text().count("0.05") == 2
    with pytest.raises(HybridsimError, match="is the file that the model was loaded from"):
        result.export(folder / "arm.urdf")
    with pytest.raises(HybridsimError, match="does not have the format of"):
        result.export(folder / "arm.xml")


def test_the_same_fit_from_toml_gives_the_same_bits(example, folder):
    (folder / "arm.toml").write_text(PROJECT)
    task = build(load_project(folder / "arm.toml")).task
    outcome = run_fit(task, RunFolder(folder / "runs_of_fits"))
    np.testing.assert_array_equal(outcome.solution.theta, example["result"].theta)
    loaded = hs.load_result(folder / "runs_of_fits")
    assert loaded.parameters == example["result"].parameters
    assert loaded.standard_errors == example["result"].standard_errors


def test_a_saved_result_is_loaded_with_the_same_bits(example, folder):
    result = example["result"]
    result.save(folder / "saved")
    loaded = hs.load_result(folder / "saved")
    np.testing.assert_array_equal(loaded.theta, result.theta)
    assert loaded.record | {"model": None, "remarks": []} == result.record | {"model": None, "remarks": []}
    assert loaded.history == result.history and (folder / "saved" / "summary.html").exists()
    new, old = (one.predict(example["runs"][3:]).windows.sampled_readings for one in (loaded, result))
    np.testing.assert_array_equal(new, old)
    with pytest.raises(HybridsimError, match="already contains a fit: choose another folder"):
        result.save(folder / "saved")
    (folder / "runs" / "run0.csv").rename(folder / "run0.csv")
    try:
        with pytest.raises(HybridsimError):
            hs.load_result(folder / "saved")
    finally:
        (folder / "run0.csv").rename(folder / "runs" / "run0.csv")


def test_actuators_with_internal_states_are_fitted_and_scored(folder, monkeypatch):
    monkeypatch.chdir(folder)
    lag = [hs.actuators.FirstOrderLag(0.02), hs.actuators.AffineActuator()]
    runs = hs.load_recordings("runs/*.csv")
    solver = hs.LevenbergMarquardt(max_steps=2)
    for stages in (hs.Stage(window=0.6, burn_in=0.15, solver=solver), hs.Stage(solver=solver)):
        result = hs.fit(small_experiment(actuation=lag), "joint.damping[*]", runs[:2], runs[2:3], stages=stages)
        assert result.record["scores"] and "could not be scored" not in str(result)
    assert [stage.window for stage in fit_task(small_experiment(actuation=lag), "joint.damping[*]", runs).stages] == [
        None
    ]


def test_held_out_runs_are_selected_by_recording_fraction_and_name(folder, monkeypatch):
    monkeypatch.chdir(folder)
    runs = hs.load_recordings("runs/*.csv")
    stage = hs.Stage(window=0.5, solver=hs.LevenbergMarquardt(max_steps=1))

    def held_out(train, *selection) -> list[str]:
        result = hs.fit(small_experiment(), "joint.damping[*]", train, *selection, stages=stage)
        return [run.name for run in result.task.problem.held_out]

    assert held_out(runs) == ["run2"] and held_out(runs, 0) == [] and held_out(runs, ["run0", "*3"]) == ["run0", "run3"]
    assert held_out(runs[0], runs[1]) == ["run1"] and held_out(runs[0], 0.5) == ["run0 (last part)"]
    assert held_out(runs[0], []) == []


def test_all_errors_of_a_specification_are_reported_together(folder, monkeypatch):
    monkeypatch.chdir(folder)
    runs = hs.load_recordings("runs/*.csv")
    channels = [hs.Channel("q1", "joint.q[sholder]", unit="deg"), hs.Channel("q2_deg", "joint.q[elbow]", name="e")]
    with pytest.raises(SpecificationError) as error:
        small_experiment(channels=channels, commands={"wrist": "tau1"})
    text = str(error.value)
    assert "channels[0].measures: 'joint.q[sholder]': nothing is named 'sholder'; did you mean 'shoulder'" in text
    assert "commands[0].joint: no joint that can be actuated is named 'wrist'" in text
    places = [problem.path for problem in error.value.problems]
    assert places == [("command", 0, "joint"), ("channel", 0, "measures")]
    with pytest.raises(DataError, match="there is no column 'q1'"):
        hs.fit(small_experiment(channels=[hs.Channel("q1", "joint.q[elbow]", noise=0.1)]), "dt", runs)
    with pytest.raises(SpecificationError) as error:
        hs.fit(small_experiment(), ["joint.damp[*]", hs.Free("body.mass[upper]", initial=-1.0)], runs, ["rum*"])
    text = str(error.value)
    assert "free[0]: there is no parameter 'joint.damp'" in text and "did you mean 'joint.damping'" in text
    assert "free[1]: 'body.mass[upper]' has the initial value -1, outside its bounds" in text
    assert "held_out[0]: no run is named 'rum*'" in text
    with pytest.raises(SpecificationError, match="there are no free parameters"):
        hs.fit(small_experiment(), [], runs)


def test_wrong_types_of_arguments_are_refused(folder, monkeypatch):
    monkeypatch.chdir(folder)
    runs = hs.load_recordings("runs/*.csv")
    with pytest.raises(SpecificationError, match=r"Stage has no argument 'windw'(.|\n)*did you mean 'window'"):
        hs.Stage(windw=0.5)
    with pytest.raises(SpecificationError, match=r"unit of Channel.* must be text, not 3"):
        hs.Channel("q", "joint.q[elbow]", unit=3)
    with pytest.raises(SpecificationError, match=r"seed of fit must be at least 0"):
        hs.fit(small_experiment(), "joint.damping[*]", runs, seed=-1)
    with pytest.raises(TypeError, match="stages must be Stage"):
        hs.fit(small_experiment(), "joint.damping[*]", runs, stages="lm")
    with pytest.raises(SpecificationError, match=r"the fraction of held-out runs is 1\.5"):
        hs.fit(small_experiment(), "joint.damping[*]", runs[0], 1.5)
    with pytest.raises(TypeError, match="fit needs an Experiment, not Model"):
        hs.fit(hs.load_model("arm.urdf"), "dt", runs)
    with pytest.raises(TypeError, match="train: expected recordings, as load_recordings returns them, not str"):
        hs.fit(small_experiment(), "dt", ["run0.csv"])
    with pytest.raises(ValueError, match="train is empty"):
        hs.fit(small_experiment(), "dt", [])
    with pytest.raises(SpecificationError, match=r"model of Experiment must be an instance of Model, not 'arm\.urdf'"):
        hs.Experiment("arm.urdf", channels=[hs.Channel("q1_deg", "joint.q[shoulder]")])
    with pytest.raises(HybridsimError, match="resume needs the folder"):
        hs.fit(small_experiment(), "joint.damping[*]", runs, resume=True)


def test_plots_of_every_kind(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    stage = hs.Stage(window=0.5, solver=hs.LevenbergMarquardt(max_steps=2))
    result = hs.fit(small_experiment(), "joint.damping[*]", hs.load_recordings("runs/*.csv"), stages=stage)
    for kind in ("typical", "worst", "windows", "progress"):
        result.plot(tmp_path / f"{kind}.png", kind=kind)
        assert imread(tmp_path / f"{kind}.png").std() > 0.03
    with pytest.raises(ValueError, match="choose one of typical"):
        result.plot(kind="best")


def test_a_model_from_python_has_no_file_to_export_to(tmp_path):
    from hybridsim.robots import pendulum

    t = 0.01 * np.arange(200)
    run = hs.Recording.from_arrays("run", t, {"q": np.cos(3.0 * t)})
    experiment = hs.Experiment(pendulum(), dt=0.01, channels=[hs.Channel("q", "joint.q[joint0]", noise=0.01)])
    result = hs.fit(experiment, "joint.damping[*]", run, stages=hs.Stage(solver=hs.LevenbergMarquardt(max_steps=1)))
    with pytest.raises(HybridsimError, match=r"was not loaded from a file; hybridsim\.convert"):
        result.export(tmp_path / "pendulum.xml")
    result.save(tmp_path / "run")
    assert hs.load_result(tmp_path / "run").experiment.model.name == "pendulum"

"""Fits with a run folder: saved, loaded, continued, moved, and refused where they would lose something."""

import shutil

import numpy as np
import pytest

import hybridsim as hs
from hybridsim.errors import HybridsimError, ModelWarning
from hybridsim.project.build.build import build
from hybridsim.project.fit import fit_task
from hybridsim.project.schema.load import load_project
from hybridsim.project.write_project import recorded_task
from support.arm_recordings import DAMPING, small_experiment


def test_a_fit_from_memory_is_saved_with_its_recordings_and_networks(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    table = np.genfromtxt("runs/run0.csv", delimiter=",", names=True)
    columns = {name: table[name] for name in ("q1_deg", "tau1")}
    runs = [hs.Recording.from_arrays(f"swing {k}", table["time"], columns) for k in range(2)]
    graft = hs.Graft("joint.tau", "joint.qd", hs.MLP(2, 2, hidden=(3,)), normalize="inputs")
    stages = [hs.actuators.AffineActuator(), hs.actuators.Saturation(1.5)]
    experiment = small_experiment(grafts=[graft], actuation=stages)
    stage = hs.Stage(window=0.5, solver=hs.LevenbergMarquardt(max_steps=1))
    result = hs.fit(
        experiment, ["joint.damping[*]", "graft[0]"], runs[:1], runs[1:], stages=stage, folder=tmp_path / "run"
    )
    assert not result.has_converged and (tmp_path / "run" / "recordings" / "swing 0.npz").exists()
    loaded = hs.load_result(tmp_path / "run")
    np.testing.assert_array_equal(loaded.theta, result.theta)
    assert loaded.experiment.actuation[1].limit == 1.5
    again = hs.fit(
        experiment,
        ["joint.damping[*]", "graft[0]"],
        runs[:1],
        runs[1:],
        stages=stage,
        folder=tmp_path / "run",
        resume=True,
    )
    np.testing.assert_array_equal(again.theta, result.theta)


def test_an_interrupted_fit_is_continued_with_the_same_bits(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    runs = hs.load_recordings("runs/*.csv")
    arguments = (small_experiment(), "joint.damping[*]", runs[:2], 0)
    stage = hs.Stage(window=0.5)
    whole = hs.fit(*arguments, stages=stage)

    def interrupt(self, progress, held_out_rms):
        if progress.step == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("hybridsim.project.fit_progress.FitProgress.show", interrupt)
        with pytest.raises(KeyboardInterrupt):
            hs.fit(*arguments, stages=stage, folder=tmp_path / "run")
    with pytest.raises(HybridsimError, match="contains a fit"):
        hs.fit(*arguments, stages=stage, folder=tmp_path / "run")
    with pytest.raises(HybridsimError, match="no result"):
        hs.load_result(tmp_path / "run")
    result = hs.fit(*arguments, stages=stage, folder=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(result.theta, whole.theta)


def test_code_is_not_saved_and_says_so(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    channels = [hs.Channel("q1_deg", lambda sim, state, inputs: state.q[0], name="angle", unit="deg", noise=0.05)]
    stage = hs.Stage(window=0.5, solver=hs.LevenbergMarquardt(max_steps=2))
    arguments = (small_experiment(channels=channels), "joint.damping[shoulder]", hs.load_recordings("runs/run0.csv"))
    result = hs.fit(*arguments, stages=stage)
    assert result.parameters["joint.damping[shoulder]"] != DAMPING / 3
    with pytest.warns(ModelWarning, match="the specification of the fit is not saved: .* is code"):
        result.save(tmp_path / "run")
    with pytest.raises(HybridsimError, match=r"is code.*resume=True"):
        hs.load_result(tmp_path / "run")
    with pytest.warns(ModelWarning, match="is not saved"):
        again = hs.fit(*arguments, stages=stage, folder=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(again.theta, result.theta)
    # another function, another prior and another integrator are other fits
    others = [hs.Channel("q1_deg", lambda sim, state, inputs: 2 * state.q[0], name="angle", unit="deg", noise=0.05)]
    changes = [
        (small_experiment(channels=others), *arguments[1:]),
        (arguments[0], hs.Free("joint.damping[shoulder]", prior=(0.3, 1e-3)), arguments[2]),
        (small_experiment(channels=channels, integrator="rk4"), *arguments[1:]),
    ]
    for change in changes:
        with pytest.warns(ModelWarning), pytest.raises(HybridsimError, match="inputs have changed"):
            hs.fit(*change, stages=stage, folder=tmp_path / "run", resume=True)


def test_a_saved_folder_can_be_moved_and_a_refused_fit_changes_nothing(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    table = np.genfromtxt("runs/run0.csv", delimiter=",", names=True)
    first, second = ({name: sign * table[name] for name in ("q1_deg", "tau1")} for sign in (1.0, -1.0))
    stage = hs.Stage(window=0.5, solver=hs.LevenbergMarquardt(max_steps=1))

    def fit_to(columns) -> hs.FitResult:
        run = hs.Recording.from_arrays("run", table["time"], columns)
        return hs.fit(small_experiment(), "joint.damping[*]", run, 0, stages=stage, folder=tmp_path / "a")

    result = fit_to(first)
    result.save(tmp_path / "copy")
    np.testing.assert_array_equal(hs.load_result(tmp_path / "copy").theta, result.theta)
    with pytest.raises(HybridsimError, match="already contains a fit"):
        fit_to(second)
    np.testing.assert_array_equal(hs.load_result(tmp_path / "a").theta, result.theta)
    (tmp_path / "a").rename(tmp_path / "b")
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(hs.load_result("b").theta, result.theta)
    with pytest.raises(HybridsimError, match="there is no folder a"):
        hs.load_result("a")
    # a result of a folder, and a loaded one, are saved with all that their specification needs
    result.task.files.clear()
    hs.load_result("b").save("c")
    shutil.rmtree("b")
    np.testing.assert_array_equal(hs.load_result("c").theta, result.theta)
    with pytest.raises(HybridsimError, match="is not a run folder"):
        hs.load_result(folder / "runs")


def test_runs_of_the_same_name_in_several_folders_are_told_apart(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    for name in ("train", "test"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "run0.csv").write_text((folder / "runs" / "run0.csv").read_text())
    train, test = (hs.load_recordings(str(tmp_path / name / "*.csv")) for name in ("train", "test"))
    stage = hs.Stage(window=0.5, solver=hs.LevenbergMarquardt(max_steps=1))
    hs.fit(small_experiment(), "joint.damping[*]", train, test, stages=stage, folder=tmp_path / "run")
    problem = hs.load_result(tmp_path / "run").task.problem
    assert [run.name for run in (*problem.train, *problem.held_out)] == ["train/run0.csv", "test/run0.csv"]


def test_a_recording_with_a_name_of_its_own_is_not_saved_and_says_so(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    run = hs.Recording("trial 1", ("runs/run0.csv",))
    task = recorded_task(fit_task(small_experiment(), "joint.damping[*]", run, 0))
    assert "'trial 1' has another name than its file, 'run0'" in task.unrecorded


def test_a_failed_save_leaves_an_empty_folder(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    stage = hs.Stage(window=0.5, solver=hs.LevenbergMarquardt(max_steps=1))
    result = hs.fit(small_experiment(), "joint.damping[*]", hs.load_recordings("runs/run0.csv"), 0, stages=stage)

    def fail(*arguments):
        raise HybridsimError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("hybridsim.project.fit_run.write_weights", fail)
        with pytest.raises(HybridsimError, match="No space left"):
            result.save(tmp_path / "run")
    result.save(tmp_path / "run")
    np.testing.assert_array_equal(hs.load_result(tmp_path / "run").theta, result.theta)


def test_a_fit_overwrites_no_recordings_that_it_did_not_write(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings" / "run.npz").write_text("mine")
    t = np.arange(0.0, 2.0, 0.01)
    run = hs.Recording.from_arrays("run", t, {"q1_deg": np.cos(t), "tau1": np.sin(t)})
    with pytest.raises(HybridsimError, match="contains no fit, but other files such as recordings"):
        hs.fit(small_experiment(), "joint.damping[*]", run, 0, folder=tmp_path)
    assert (tmp_path / "recordings" / "run.npz").read_text() == "mine"


def test_the_model_file_is_not_overwritten_under_another_name(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    (tmp_path / "arm.urdf").write_text((folder / "arm.urdf").read_text())
    (tmp_path / "link.urdf").symlink_to(tmp_path / "arm.urdf")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    runs = hs.load_recordings(str(folder / "runs" / "run0.csv"))
    experiment = hs.Experiment(
        hs.load_model("sub/../arm.urdf"),
        dt=0.002,
        channels=[hs.Channel("q1_deg", "joint.q[shoulder]", unit="deg", noise=0.05)],
    )
    stage = hs.Stage(window=0.5, solver=hs.LevenbergMarquardt(max_steps=1))
    result = hs.fit(experiment, "joint.damping[*]", runs, 0, stages=stage)
    for name in ("arm.urdf", "sub/../arm.urdf", "link.urdf", tmp_path / "arm.urdf"):
        with pytest.raises(HybridsimError, match="is the file that the model was loaded from"):
            result.export(name)


def test_contact_is_part_of_the_saved_specification(tmp_path):
    """All settings of an experiment survive the way to a project file and back."""
    from hybridsim.robots import cube

    contact = hs.CompliantContact(friction={"*": 0.4}, law=hs.contact.Andersson(transition_velocity=0.02), exponent=1.2)
    channels = [hs.Channel("z", "joint.q[root.z]", noise=1e-3, gain=2.0, delay=0.01)]
    settings = {"dt": 0.002, "backend": "xla", "contact": contact}
    t = 0.002 * np.arange(60)
    run = hs.Recording.from_arrays("drop", t, {"z": 2.0 * (0.3 - 4.9 * t**2)}, on_nan="drop")
    experiment = hs.Experiment(cube(), channels=channels, **settings)
    free = hs.Free("contact.friction[*]", bounds=(0.0, np.inf), prior=(0.4, 0.1))
    stages = [hs.Stage(loss="huber", solver="adam"), hs.Stage(sparsity=hs.Sparsity(l2=0.1), burn_in=0.01)]
    task = recorded_task(fit_task(experiment, free, run, 0, stages=stages, seed=3, name="cube"))
    (tmp_path / "project.toml").write_text(task.project_text)
    (tmp_path / "recordings").mkdir()
    ((name, content),) = task.files.items()
    assert isinstance(content, bytes)
    (tmp_path / name).write_bytes(content)
    again = build(load_project(tmp_path / "project.toml")).task
    assert (again.name, again.seed, again.free, again.stages) == (task.name, task.seed, task.free, task.stages)
    assert again.stages[0].solver.seed == 3
    assert tuple(again.experiment.channels) == tuple(experiment.channels)
    assert str(again.experiment.contact) == str(contact) and again.experiment.backend == "xla"
    assert again.recordings == () and again.problem.train[0].name == "drop"


def test_the_format_of_an_export_is_that_of_the_content(folder, monkeypatch, tmp_path):
    (tmp_path / "arm.xml").write_text((folder / "arm.urdf").read_text())
    monkeypatch.chdir(tmp_path)
    runs = hs.load_recordings(str(folder / "runs" / "run0.csv"))
    channels = [hs.Channel("q1_deg", "joint.q[shoulder]", unit="deg", noise=0.05)]
    experiment = hs.Experiment(hs.load_model("arm.xml"), dt=0.002, channels=channels)
    stage = hs.Stage(window=0.5, solver=hs.LevenbergMarquardt(max_steps=1))
    result = hs.fit(experiment, "joint.damping[*]", runs, 0, stages=stage)
    for name in ("fitted.urdf", "fitted.xml"):
        result.export(name)
        assert hs.load_model(name).joint.damping[0] == result.model.joint.damping[0]
    with pytest.raises(HybridsimError, match=r"does not have the format of .*arm\.xml"):
        result.export("fitted.mjcf")

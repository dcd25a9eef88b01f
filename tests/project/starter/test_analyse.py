"""`hybridsim init`: from a model and recordings to a project that fits without being edited."""

import json
from pathlib import Path

import numpy as np
import pytest

from hybridsim.cli.init import init
from hybridsim.cli.main import run
from hybridsim.core.errors import DataError, HybridsimError
from hybridsim.experiments.recordings import MissingRecordingsError, recordings_folder
from hybridsim.identify.solve import solve
from hybridsim.io.load import load_model
from hybridsim.project.build.build import BuiltProject, build
from hybridsim.project.schema.load import load_project
from hybridsim.sim.rollout import simulate
from hybridsim.sim.simulator import Simulator
from support.small_projects import TWO_LINK_URDF, write_columns

DAMPING = 0.07


@pytest.fixture
def arm(tmp_path) -> Path:
    """The model that is fitted; the true one has more damping."""
    (tmp_path / "true.urdf").write_text(TWO_LINK_URDF.format(damping=DAMPING))
    path = tmp_path / "arm.urdf"
    path.write_text(TWO_LINK_URDF.format(damping=0.0))
    return path


def fit_project(project: Path) -> tuple[BuiltProject, dict[str, float]]:
    built = build(load_project(project))
    found = solve(built.problem, built.stages)
    assert found.has_converged
    return built, built.problem.space.values(found.theta)


def test_recordings_of_simulate_are_fitted_without_editing(arm, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for k, angle in enumerate(("0.5", "1.2")):
        code = run(["simulate", "true.urdf", "--time", "1", "--position", "shoulder", angle, "--out", f"run{k}.csv"])
        assert code == 0
    assert init("arm.urdf", (Path("run0.csv"), Path("run1.csv"))) == 0
    shown = capsys.readouterr().out
    assert "velocity of elbow" in shown and "wrote project.toml: 4 channels, 0 commands" in shown
    assert "hybridsim fit project.toml" in shown
    built, values = fit_project(tmp_path / "project.toml")
    assert len(built.problem.train) == len(built.problem.held_out) == 1
    for name, true in (("joint.damping[shoulder]", DAMPING), ("joint.damping[elbow]", DAMPING)):
        assert values[name] == pytest.approx(true, rel=1e-4)
    assert values["body.mass[lower]"] == pytest.approx(0.8, rel=1e-4)
    assert values["joint.friction[elbow]"] == pytest.approx(0.0, abs=1e-5)


def test_a_log_with_other_names_and_units_is_fitted_without_editing(arm, tmp_path, capsys):
    sim = Simulator(load_model(tmp_path / "true.urdf"))
    t = np.arange(1500) * 0.002
    torque = np.stack([2.0 * np.sin(5.0 * t), 0.5 * np.cos(7.0 * t)], axis=1)
    # two steps to a sample
    trajectory = simulate(sim, sim.initial_state([0.6, 0.3]), np.repeat(torque, 2, axis=0))
    angle = trajectory.q[:-1:2] + 1e-4 * np.random.default_rng(0).normal(size=(1500, 2))
    wrapped = np.rad2deg(angle) % 360.0
    columns = {"Timestamp": 1e3 * t, "theta1": wrapped[:, 0], "theta2": wrapped[:, 1], "motor_temp": 20.0 + t}
    columns |= {"tau_1 [mNm]": 1e3 * torque[:, 0], "tau_2 [mNm]": 1e3 * torque[:, 1]}
    write_columns(tmp_path / "log.csv", columns)
    out = tmp_path / "deep" / "fit.toml"
    out.parent.mkdir()
    assert init(str(arm), (tmp_path / "log.csv",), out=out, json=True) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["time_unit"] == "ms" and report["unrecognized"] == ["motor_temp"]
    assert {one["column"]: one["unit"] for one in report["matched"]} == {
        "theta1": "deg",
        "theta2": "deg",
        "tau_1 [mNm]": "mNm",
        "tau_2 [mNm]": "mNm",
    }
    text = out.read_text()
    assert '"../arm.urdf"' in text and '"../log.csv"' in text and "motor_temp" in text
    built, values = fit_project(out)
    assert tuple(built.problem.channel_roles.commands) == ("shoulder", "elbow")
    assert list(built.problem.channel_roles.noise.values()) == pytest.approx([1e-4, 1e-4], rel=0.2)
    assert values["joint.damping[shoulder]"] == pytest.approx(DAMPING, rel=0.02)
    # of a planar mechanism, only the product of a mass and its lever arm is identifiable
    assert values["body.mass[lower]"] * values["body.com[lower].z"] == pytest.approx(-0.8 * 0.2, rel=0.01)
    assert values["joint.armature[elbow]"] == pytest.approx(0.0, abs=2e-3)


def test_files_are_overwritten_only_with_force(arm, tmp_path, capsys):
    t = np.arange(50) * 0.01
    write_columns(tmp_path / "run.csv", {"time": t, "shoulder": np.sin(t)})
    out = tmp_path / "project.toml"
    out.write_text("mine")
    with pytest.raises(HybridsimError, match="--force"):
        init(str(arm), (tmp_path / "run.csv",), out=out)
    assert out.read_text() == "mine"
    assert init(str(arm), (tmp_path / "run.csv",), out=out, force=True) == 0
    assert load_project(out).content.channel[0].measures == "joint.q[shoulder]"
    assert "not measured: elbow" in capsys.readouterr().out
    for path in (arm, tmp_path / "run.csv"):
        with pytest.raises(HybridsimError, match="is an input of this command and would be overwritten"):
            init(str(arm), (tmp_path / "run.csv",), out=path, force=True)


def test_missing_information_is_requested(arm, tmp_path):
    write_columns(tmp_path / "run.csv", {"shoulder": np.sin(np.arange(50.0)), "x": np.arange(50.0)})
    out = tmp_path / "project.toml"
    with pytest.raises(HybridsimError, match="--sample-interval"):
        init(str(arm), (tmp_path / "run.csv",), out=out)
    assert init(str(arm), (tmp_path / "run.csv",), out=out, sample_interval=0.01) == 0
    assert load_project(out).content.data.sample_interval == 0.01
    with pytest.raises(HybridsimError, match="joints are 'joint0', 'joint1'"):
        init("double_pendulum", (tmp_path / "run.csv",), out=out, sample_interval=0.01, force=True)
    with pytest.raises(HybridsimError, match="positive"):
        init(str(arm), (tmp_path / "run.csv",), out=tmp_path / "other.toml", sample_interval=-1.0)
    with pytest.raises(DataError, match=r"missing\.csv"):
        init(str(arm), (tmp_path / "missing.csv",), out=tmp_path / "other.toml")
    assert not (tmp_path / "other.toml").exists()


def test_files_with_several_runs_and_odd_names_give_a_project_that_builds(tmp_path, capsys):
    t = np.arange(200) * 0.01
    q = np.stack([np.stack([np.sin(w * t), np.cos(w * t)], axis=1) for w in (1.0, 2.0, 3.0)])
    folder = tmp_path / 'od"d [1]'
    folder.mkdir()
    np.savez(folder / "all.npz", q=q, time=t)
    out = folder / "project.toml"
    assert init("double_pendulum", (folder / "all.npz",), out=out) == 0
    built = build(load_project(out))
    assert len(built.problem.train) == 2 and len(built.problem.held_out) == 1
    assert capsys.readouterr().out.count("position of") == 2


def test_every_joint_type_gives_a_project_that_builds(tmp_path):
    for model in ("cube", "cartpole", "swimmer"):
        csv, out = tmp_path / f"{model}.csv", tmp_path / f"{model}.toml"
        assert run(["simulate", model, "--time", "0.1", "--out", str(csv)]) == 0
        rng = np.random.default_rng(0)
        names = csv.read_text().splitlines()[0].split(",")
        rows = {name: np.arange(50) * 0.01 if name == "time" else rng.normal(size=50) for name in names}
        write_columns(csv, rows)
        assert init(model, (csv,), out=out) == 0
        built = build(load_project(out))
        assert len(built.problem.channel_roles.noise) == len(names) - 1 and built.problem.space.size


def test_logs_with_gaps_can_be_fitted(arm, tmp_path, capsys):
    t = np.arange(100) * 0.01
    angle, still = np.sin(t), np.full(100, 0.3)
    angle[17] = np.nan
    t[40] = t[39]
    write_columns(tmp_path / "run.csv", {"time": t, "shoulder": angle, "shoulder_vel": np.cos(t), "elbow": still})
    assert init(str(arm), (tmp_path / "run.csv",), out=tmp_path / "project.toml") == 0
    assert "'elbow' is constant and not used" in capsys.readouterr().out
    built = build(load_project(tmp_path / "project.toml"))
    assert built.project.content.data.on_nan == built.project.content.data.on_out_of_order == "drop"
    assert set(built.problem.channel_roles.noise) == {"joint.q[shoulder]", "joint.qd[shoulder]"}


@pytest.mark.slow
def test_wrong_published_inertias_of_a_real_mechanism_are_corrected(tmp_path, monkeypatch):
    """The URDF has moments of inertia about the joints instead of the centres of mass."""
    monkeypatch.chdir(tmp_path)
    try:
        folder = recordings_folder("driven_double_pendulum")
    except MissingRecordingsError as missing:
        pytest.skip(str(missing))
    assert run(["init", str(folder / "acrobot.urdf"), *map(str, sorted(folder.glob("*.csv")))]) == 0
    run(["fit", "project.toml"])
    scores = json.loads(Path("runs/project/result.json").read_text())["scores"]
    for row in scores:
        assert row["normalized"]["after"]["rms"] < 0.25 * row["normalized"]["before"]["rms"]

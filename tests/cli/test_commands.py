"""The command line as a user meets it: output, exit codes, and no traceback whatever happens."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

from hybridsim.cli.main import run

ARM = """<robot name="arm">
  <link name="world"/>
  <link name="upper">
    <inertial>
      <origin xyz="0 0 -0.25"/>
      <mass value="{mass}"/>
      <inertia ixx="0.02" iyy="0.02" izz="0.002" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="world"/>
    <child link="upper"/>
    <axis xyz="0 1 0"/>
    <limit lower="{lower}" upper="1.5" effort="20" velocity="5"/>
  </joint>
</robot>
"""


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.format(mass="1.5", lower="-1.5"))
    return str(path)


@pytest.fixture
def broken(tmp_path):
    path = tmp_path / "broken.urdf"
    path.write_text(ARM.format(mass="-1", lower="9"))
    return str(path)


def test_check_shows_the_model(arm, capsys):
    assert run(["check", arm]) == 0
    out = capsys.readouterr().out
    assert "arm: 1 body, 1 degree of freedom, 1 actuator, 0 shapes, 1.5 kg, fixed base" in out
    assert "shoulder" in out and "revolute" in out and "can be used: 0 errors" in out


def test_check_names_every_problem_with_its_line(broken, capsys):
    assert run(["check", broken]) == 1
    out = capsys.readouterr().out
    assert f"{broken}:4: error: mass of body 'upper' is -1 kg" in out
    assert f"{broken}:10: error: limits of joint 'shoulder' are swapped" in out
    assert out.count("fix:") == 2 and "cannot be used: 2 errors" in out


def test_check_as_json(arm, broken, capsys):
    assert run(["check", arm, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["usable"] and report["summary"]["mass_kg"] == 1.5
    assert report["bodies"][0]["upper"] == 1.5
    assert run(["check", broken, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert {"mass.negative", "limit.order"} <= {problem["code"] for problem in report["problems"]}
    assert all(problem["line"] > 0 for problem in report["problems"])


def test_check_with_options(arm, capsys):
    assert run(["check", "quadruped", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["degrees_of_freedom"] == 18
    assert run(["check", "no_such_model"]) == 1
    assert "built-in mechanism" in capsys.readouterr().out


def test_taps_lists_the_models_own_names(arm, capsys):
    assert run(["taps", arm]) == 0
    out = capsys.readouterr().out
    assert "joint.tau" in out and "dof names: shoulder" in out
    assert run(["taps", arm, "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["body.twist"]["shape"] == [1, 6] and rows["body.twist"]["rows"] == ["upper"]
    assert rows["step.time"]["writable"] is False and rows["step.time"]["shape"] == []


def test_simulate_writes_the_motion(arm, tmp_path, capsys):
    out, plot = tmp_path / "run.csv", tmp_path / "run.png"
    code = run(["simulate", arm, "--time", "0.1", "--dt", "0.01", "--out", str(out), "--plot", str(plot),
                "--start", "shoulder", "0.5", "--command", "shoulder", "0.2"])  # fmt: skip
    assert code == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["time", "q:shoulder", "qd:shoulder"]
    assert len(rows) == 11 and float(rows[0]["q:shoulder"]) == 0.5
    np.testing.assert_allclose(float(rows[-1]["time"]), 0.1)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "10 steps" in capsys.readouterr().out


def test_simulate_in_blocks_is_one_simulation(tmp_path, monkeypatch, capsys):
    from hybridsim.cli import simulate as module

    results = []
    for block in (7, 1000):
        monkeypatch.setattr(module, "BLOCK", block)
        out = tmp_path / f"{block}.csv"
        assert run(["simulate", "pendulum", "--time", "0.02", "--start", "joint0", "1.0", "--out", str(out)]) == 0
        results.append(np.loadtxt(out, delimiter=",", skiprows=1))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)
    capsys.readouterr()


def test_simulate_reports_divergence(tmp_path, capsys):
    from hybridsim.io.convert import convert
    from hybridsim.models import pendulum

    model = tmp_path / "stiff.xml"
    convert(pendulum(damping=1e4), model)
    out = tmp_path / "run.csv"
    code = run(["simulate", str(model), "--dt", "0.01", "--velocity", "joint0", "1", "--out", str(out), "--json"])
    assert code == 3
    report = json.loads(capsys.readouterr().out)
    assert "diverged in step" in report["problem"] and "joint0" in report["problem"]
    table = np.loadtxt(out, delimiter=",", skiprows=1)
    assert np.isfinite(table).all() and len(table) < 200
    assert run(["simulate", str(model), "--dt", "0.01", "--integrator", "implicit", "--out", str(out)]) == 0


def test_convert_writes_the_other_format(arm, tmp_path, capsys):
    out = tmp_path / "arm.xml"
    assert run(["convert", arm, str(out)]) == 0
    assert "wrote" in capsys.readouterr().out
    assert run(["check", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["mass_kg"] == 1.5
    assert run(["convert", arm, str(tmp_path / "arm.docx")]) == 1
    assert ".urdf" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "pendulum", "--start", "elbow", "1"], "no coordinate is named 'elbow'; the names are joint0"),
        (["simulate", "pendulum", "--command", "motor", "1"], "no actuator is named 'motor'"),
        (["simulate", "pendulum", "--time", "-1"], "must be positive"),
        (["simulate", "pendulum", "--dt", "nan"], "must be positive"),
        (["taps", "/no/such/file.urdf"], "there is no file"),
        (["simulate", "pendulum", "--time", "0.01", "--out", "/no/such/folder/run.csv"], "/no/such/folder"),
        (["simulate", "pendulum", "--time", "0.01", "--out", "{tmp}/a.csv", "--plot", "{tmp}/run.xyz"], "xyz"),
    ],
)
def test_mistakes_get_one_clear_line(arguments, message, tmp_path, capsys):
    arguments = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    if "--out" not in arguments and arguments[0] == "simulate":
        arguments += ["--out", str(tmp_path / "run.csv")]
    assert run(arguments) == 1
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


@pytest.mark.parametrize("content", ["", "<robot", "not xml at all", "<sdf/>", "\x00\x01"])
def test_garbage_files_never_show_a_traceback(content, tmp_path, capsys):
    path = tmp_path / "garbage.urdf"
    path.write_text(content)
    assert run(["check", str(path)]) == 1
    assert f"{path}" in capsys.readouterr().out


def test_wrong_options_suggest_the_right_one():
    done = subprocess.run(
        [sys.executable, "-m", "hybridsim", "simulate", "pendulum", "--tim", "2"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "--time" in done.stdout + done.stderr and "Traceback" not in done.stdout + done.stderr


def test_unexpected_errors_are_short_unless_asked_for(monkeypatch, capsys):
    from hybridsim.cli.options import ReadingOptions

    def fail(self, name):
        raise RuntimeError("boom")

    monkeypatch.setattr(ReadingOptions, "load", fail)
    assert run(["taps", "pendulum"]) == 1
    assert "RuntimeError: boom" in capsys.readouterr().err
    monkeypatch.setenv("HYBRIDSIM_DEBUG", "1")
    with pytest.raises(RuntimeError):
        run(["taps", "pendulum"])

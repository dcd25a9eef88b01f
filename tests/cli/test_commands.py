"""Command line: output, exit codes, and no tracebacks."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hybridsim.cli.main import COMMANDS, run
from support.arm_files import one_link_urdf


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(one_link_urdf())
    return str(path)


@pytest.fixture
def invalid_urdf(tmp_path):
    path = tmp_path / "invalid.urdf"
    path.write_text(one_link_urdf(mass="-1", lower="9"))
    return str(path)


def test_check_shows_the_model(arm, capsys):
    assert run(["check", arm]) == 0
    out = capsys.readouterr().out
    assert "arm: 1 body, 1 degree of freedom, 1 actuator, 0 shapes, 0 frames, 1.5 kg, fixed base" in out
    assert "shoulder" in out and "revolute" in out and "can be used: 0 errors" in out


def test_check_names_every_problem_with_its_line(invalid_urdf, capsys):
    assert run(["check", invalid_urdf]) == 1
    out = capsys.readouterr().out
    assert f"{invalid_urdf}:4: error: mass of body 'upper' is -1 kg" in out
    assert f"{invalid_urdf}:14: error: limits of joint 'shoulder' are swapped" in out
    assert out.count("fix:") == 3 and "cannot be used: 2 errors, 0 warnings, 1 note" in out


def test_check_as_json(arm, invalid_urdf, capsys):
    assert run(["check", arm, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["usable"] and report["summary"]["mass_kg"] == 1.5
    assert report["bodies"][0]["upper"] == 1.5
    assert run(["check", invalid_urdf, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert {"mass.negative", "limit.order"} <= {problem["code"] for problem in report["problems"]}
    assert all(problem["line"] > 0 for problem in report["problems"])


def test_check_accepts_names_of_built_in_mechanisms(capsys):
    assert run(["check", "quadruped", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["degrees_of_freedom"] == 18
    assert run(["check", "no_such_model"]) == 1
    assert "built-in mechanism" in capsys.readouterr().out


def test_taps_lists_the_names_of_the_model(arm, capsys):
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
                "--position", "shoulder", "0.5", "--command", "shoulder", "0.2"])  # fmt: skip
    assert code == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["time", "q:shoulder", "qd:shoulder"]
    assert len(rows) == 11 and float(rows[0]["q:shoulder"]) == 0.5
    assert float(rows[-1]["time"]) == 0.1
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "10 steps" in capsys.readouterr().out


def test_simulate_in_blocks_is_one_simulation(tmp_path, monkeypatch, capsys):
    from hybridsim.cli import simulate as module

    results = []
    for block in (7, 1000):
        monkeypatch.setattr(module, "BLOCK", block)
        out = tmp_path / f"{block}.csv"
        assert run(["simulate", "pendulum", "--time", "0.02", "--position", "joint0", "1.0", "--out", str(out)]) == 0
        results.append(np.loadtxt(out, delimiter=",", skiprows=1))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)
    capsys.readouterr()


def test_simulate_reports_divergence(tmp_path, capsys):
    from hybridsim.io.convert import convert
    from hybridsim.robots import pendulum

    model = tmp_path / "stiff.xml"
    convert(pendulum(damping=1e4), model)
    out = tmp_path / "run.csv"
    code = run(["simulate", str(model), "--dt", "0.01", "--velocity", "joint0", "1", "--out", str(out), "--json"])
    assert code == 3
    report = json.loads(capsys.readouterr().out)
    assert "diverged in step" in report["problem"] and "joint0" in report["problem"]
    table = np.loadtxt(out, delimiter=",", skiprows=1)
    assert np.isfinite(table).all() and len(table) < 200
    assert run(["simulate", str(model), "--dt", "0.01", "--integrator", "implicit", "--out", str(out), "--force"]) == 0


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
        (
            ["simulate", "pendulum", "--position", "elbow", "1"],
            "no coordinate is named 'elbow'; valid names are 'joint0'",
        ),
        (["simulate", "pendulum", "--position", "joint0", "nan"], "coordinate 'joint0' must be a finite number"),
        (["simulate", "pendulum", "--command", "motor", "1"], "no actuator is named 'motor'"),
        (["simulate", "pendulum", "--time", "-1"], "--time must be positive and finite"),
        (["simulate", "pendulum", "--dt", "nan"], "--dt must be positive and finite"),
        (["simulate", "pendulum", "--dt", "10"], "longer than the 2 s to simulate"),
        (["simulate", "pendulum", "--time", "1e12"], "use a larger --dt"),
        (["simulate", "pendulum", "--every", "0"], "--every 0"),
        (["simulate", "pendulum", "--base", "free"], "--base: applies to model files only"),
        (["simulate", "pendulm"], "did you mean 'pendulum'?"),
        (["taps", "/no/such/file.urdf"], "file '/no/such/file.urdf' does not exist"),
        (["simulate", "pendulum", "--out", "/no/such/folder/run.csv"], "there is no folder /no/such/folder"),
        (["simulate", "pendulum", "--out", "{tmp}"], "it is a folder"),
        (["simulate", "pendulum", "--plot", "{tmp}/run.xyz"], ".png"),
        (["simulate", "pendulum", "--plot", "/no/such/folder/run.png"], "there is no folder"),
    ],
)
def test_mistakes_get_one_clear_line(arguments, message, tmp_path, capsys):
    arguments = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    if "--out" not in arguments and arguments[0] == "simulate":
        arguments += ["--out", str(tmp_path / "run.csv")]
    assert run(arguments) == 1
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error and "Error" not in error
    assert not (tmp_path / "run.csv").exists(), "nothing is computed before the mistake is found"
    assert run([*arguments, "--json"]) == 1
    assert message in json.loads(capsys.readouterr().out)["error"]


def test_options_reach_the_reader(tmp_path, capsys):
    path = tmp_path / "robot.urdf"
    inertia = '<inertia ixx="0.1" iyy="0.1" izz="{izz}" ixy="0" ixz="0" iyz="0"/>'
    path.write_text(
        '<robot name="r"><link name="trunk"><inertial><mass value="2"/>' + inertia.format(izz="0.5") + "</inertial>"
        '<collision><geometry><mesh filename="package://shapes/trunk.stl"/></geometry></collision></link></robot>'
    )
    shapes = tmp_path / "elsewhere"
    shapes.mkdir()
    options = ["--base", "free", "--tolerate", "inertia.triangle", "--packages", "shapes", str(shapes)]
    assert run(["check", str(path), *options, "--json"]) == 1
    codes = {problem["code"] for problem in json.loads(capsys.readouterr().out)["problems"]}
    assert codes == {"mesh.missing", "inertia.triangle"}
    import trimesh

    trimesh.creation.box((0.2, 0.2, 0.2)).export(shapes / "trunk.stl")
    assert run(["check", str(path), *options, "--allowed-folders", str(shapes), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["summary"]["base"] == "free" and report["summary"]["shapes"] == 1
    assert run(["check", str(path), *options[:2], *options[4:], "--json"]) == 1
    assert "inertia.triangle" in capsys.readouterr().out


def test_the_model_is_never_overwritten(arm, tmp_path, capsys):
    before = Path(arm).read_text()
    link = tmp_path / "link.urdf"
    link.symlink_to(arm)
    for arguments in (["convert", arm, arm], ["convert", arm, str(link)], ["simulate", arm, "--out", arm]):
        assert run(arguments) == 1
        assert "is an input of this command" in capsys.readouterr().err
    assert Path(arm).read_text() == before


def test_names_are_printed_verbatim(tmp_path, capsys):
    """Brackets and commas in names of a file have no special meaning."""
    path, out = tmp_path / "odd.urdf", tmp_path / "run.csv"
    text = one_link_urdf().replace('"shoulder"', '"j,[/]1"').replace('"upper"', '"arm[bold]"')
    path.write_text(text.replace('name="arm"', 'name="x[/]y"'))
    assert run(["check", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "x[/]y:" in shown and "arm[bold]" in shown and "j,[/]1" in shown
    assert run(["taps", str(path)]) == 0
    assert "dof names: j,[/]1" in capsys.readouterr().out
    assert run(["simulate", str(path), "--time", "0.002", "--out", str(out)]) == 0
    with out.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["time", "q:j,[/]1", "qd:j,[/]1"] and {len(row) for row in rows} == {3}


def test_simulate_covers_the_requested_time(tmp_path, capsys):
    out = tmp_path / "run.csv"
    arguments = ["simulate", "pendulum", "--time", "0.1", "--dt", "0.03", "--every", "3", "--out", str(out), "--json"]
    assert run(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["steps"] == 4 and np.isclose(report["time_s"], 0.12) and report["problem"] == ""
    np.testing.assert_allclose(np.loadtxt(out, delimiter=",", skiprows=1)[:, 0], [0.0, 0.09])


def test_convert_as_json(arm, tmp_path, capsys):
    out = tmp_path / "arm.xml"
    assert run(["convert", arm, str(out), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["out"] == str(out) and isinstance(report["notes"], list)


def test_simulate_writes_into_a_named_pipe(tmp_path):
    """Devices and named pipes are not replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "hybridsim", "simulate", "pendulum", "--time", "0.003", "--out", str(pipe)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        lines = pipe.read_text().splitlines()
        assert process.wait() == 0
    assert lines[0] == "time,q:joint0,qd:joint0" and len(lines) == 5
    assert pipe.is_fifo()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_simulations_keep_their_output(number, code, tmp_path):
    out = tmp_path / "run.csv"
    command = [sys.executable, "-m", "hybridsim", "simulate", "pendulum", "--time", "1e5", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        # the file gets its name at the end
        while sum(part.stat().st_size for part in tmp_path.glob(".run.csv.*.part")) < 10_000:
            time.sleep(0.05)
            assert process.poll() is None
        process.send_signal(number)
        output, error = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in error and "written to" in output
    table = np.loadtxt(out, delimiter=",", skiprows=1)
    assert len(table) >= 501 and np.isfinite(table).all() and [*tmp_path.iterdir()] == [out]


def test_a_closed_pipe_is_not_an_error():
    command = f"{sys.executable} -m hybridsim taps quadruped | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "0" and done.stderr == ""


def test_help_of_everything_has_examples(capsys):
    for option in ("--help", "-h"):
        assert run([option]) == 0
        shown = capsys.readouterr().out
        assert "For example:" in shown and len(shown.splitlines()) < 40
    commands = re.findall(r"^  ([a-z-]+) +[A-Z]", shown, re.MULTILINE)
    assert commands == [name.replace("_", "-") for name in COMMANDS]
    for command in commands:
        with pytest.raises(SystemExit) as ended:
            run([command, "--help"])
        shown = capsys.readouterr().out
        assert ended.value.code == 0 and f"For example:\n  hybridsim {command}" in shown


def test_version(capsys):
    import hybridsim

    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"hybridsim {hybridsim.__version__}\n"


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


def test_tracebacks_are_shown_in_debug_mode_only(monkeypatch, capsys):
    from hybridsim.cli.options import ModelLoader

    def fail(self, name):
        raise RuntimeError("boom")

    monkeypatch.setattr(ModelLoader, "load", fail)
    assert run(["taps", "pendulum"]) == 1
    assert "RuntimeError: boom" in capsys.readouterr().err
    monkeypatch.setenv("HYBRIDSIM_DEBUG", "1")
    with pytest.raises(RuntimeError):
        run(["taps", "pendulum"])


def test_simulate_selects_contact_pairs(tmp_path, capsys):
    out = str(tmp_path / "run.csv")
    falls = ["simulate", "cube", "--contact", "impulse", "--time", "0.02", "--position", "root.z", "0.05", "--out", out]
    assert run([*falls, "--only", "wheel"]) == 1
    assert "wheel" in capsys.readouterr().err
    assert run(["simulate", "cube", "--out", out, "--no-self-collision"]) == 1
    assert "--contact" in capsys.readouterr().err

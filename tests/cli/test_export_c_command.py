"""`hybridsim export-c` on the command line."""

import json
import os
import subprocess
import sys

import pytest

from hybridsim.cli.main import run
from support.arm_files import one_link_urdf
from support.c_library import STRICT, build, needs_compiler

URDF = one_link_urdf("my arm")


@needs_compiler
def test_export_writes_two_files_that_compile(tmp_path, capsys):
    """The files depend on model and options only, not on the hash seed, the folder or the time."""
    model, folder_a, folder_b = tmp_path / "arm.urdf", tmp_path / "here", tmp_path / "there"
    model.write_text(URDF)
    for folder in (folder_a, folder_b):
        folder.mkdir()
    out = folder_a / "arm_step.c"
    out.write_text("an old file")
    options = ["export-c", str(model), "--dt", "0.004", "--no-fma"]
    assert run([*options, "--out", str(out), "--force"]) == 0
    assert "my arm: 3 states, 1 command, " in capsys.readouterr().out
    build(out, *STRICT, "-O0", suffix=".o")
    header = out.with_suffix(".h").read_text()
    assert "void my_arm_step(" in header and "integrator: euler" in header and "q[shoulder]  [rad]" in header
    assert "0.004, /* dt */" in out.read_text() and '#include "arm_step.h"' in out.read_text()

    command = [sys.executable, "-m", "hybridsim", *options, "--out", "arm_step.c", "--json"]
    other = os.environ | {"PYTHONHASHSEED": "7"}
    report = json.loads(subprocess.run(command, cwd=folder_b, env=other, check=True, capture_output=True).stdout)
    assert (report["out"], report["header"], report["prefix"]) == ("arm_step.c", "arm_step.h", "my_arm")
    assert (report["states"], report["commands"]) == (3, 1) and report["parameters"] > report[
        "parameters_with_derivatives"
    ] > 10
    for name in ("arm_step.c", "arm_step.h"):
        assert (folder_a / name).read_text() == (folder_b / name).read_text()


def test_options_reach_the_export(tmp_path, capsys, monkeypatch):
    from hybridsim.sim.c_export import export_step as module

    recorded = {}

    def record_options(sim, path, **options):
        recorded.update(options, integrator=sim.integrator, dt=float(sim.dt), path=path)
        return module.ExportedFiles(path, path.with_suffix(".h"), "swing", 3, 1, 20, 16, 0, 0)

    monkeypatch.setattr(module, "export_c", record_options)
    options = ["--integrator", "rk4", "--prefix", "swing", "--out", str(tmp_path / "a.c")]
    assert run(["export-c", "pendulum", *options]) == 0
    expected = {"integrator": "rk4", "dt": 0.001, "path": tmp_path / "a.c", "prefix": "swing", "fma": True}
    assert recorded == expected and "20 parameters (16 with derivatives)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pendulum", "--dt", "-1"], "--dt must be positive and finite"),
        (["pendulum", "--out", "{tmp}/step.cpp"], "the extension .c"),
        (["pendulum", "--out", "/no/such/folder/step.c"], "there is no folder /no/such/folder"),
        (["pendulum", "--prefix", "2fast"], "'2fast' is not a valid prefix in C"),
        (["pendulm"], "did you mean 'pendulum'?"),
        (["{tmp}/model.c", "--out", "{tmp}/model.c"], "is an input of this command"),
        (["{tmp}/model.h", "--out", "{tmp}/model.c"], "is an input of this command"),
    ],
)
def test_mistakes_get_one_clear_line(arguments, message, tmp_path, capsys):
    for extension in ("c", "h"):
        (tmp_path / f"model.{extension}").write_text(URDF)
    arguments = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    if "--out" not in arguments:
        arguments += ["--out", str(tmp_path / "step.c")]
    assert run(["export-c", *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error and "Error" not in error
    assert run(["export-c", *arguments, "--json"]) == 1
    assert message in json.loads(capsys.readouterr().out)["error"]
    assert not (tmp_path / "step.c").exists() and (tmp_path / "model.h").read_text() == URDF

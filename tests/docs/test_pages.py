"""Code blocks and commands in the README and in docs/ work as printed.

The programs of docs/fitting.md and docs/blueprints.md have tests of their own, which also check their results.
"""

import re
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

import hybridsim.demo
from hybridsim.cli.main import run
from hybridsim.data.file_format import FileSelection
from hybridsim.robots import cube, pendulum
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs
from hybridsim.sim.step import step
from support.arm_recordings import write_arm

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
DEMO = Path(hybridsim.demo.__file__).parent

ROBOT = """
<robot name="biped">
  <link name="base">
    <inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="left">
    <inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision name="left_foot"><geometry><sphere radius="0.05"/></geometry></collision>
  </link>
  <link name="right">
    <inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision name="right_foot"><geometry><sphere radius="0.05"/></geometry></collision>
  </link>
  <joint name="left_hip" type="revolute">
    <parent link="base"/><child link="left"/><origin xyz="0 0.2 0.3"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="10"/>
  </joint>
  <joint name="right_hip" type="revolute">
    <parent link="base"/><child link="right"/><origin xyz="0 -0.2 0.3"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="10"/>
  </joint>
</robot>
"""


def blocks(page: Path, language: str) -> list[str]:
    """Code blocks of a page, in order."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def copy_demo() -> None:
    """Copy model, recordings and a project of the demo into the current folder."""
    for file in (*DEMO.glob("*.csv"), DEMO / "arm.xml"):
        shutil.copyfile(file, file.name)
    shutil.copyfile(DEMO / "parameters.toml", "project.toml")


def run_blocks(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: dict | None = None) -> dict:
    """Run all Python blocks of a page in one namespace, beside the files that they mention."""
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(ROBOT)
    copy_demo()
    names = {} if names is None else names
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)
    return names


def test_readme(tmp_path, monkeypatch, capsys):
    write_arm(tmp_path)
    names = run_blocks(ROOT / "README.md", tmp_path, monkeypatch)
    assert names["trajectory"].q.shape == (501, 2) and (tmp_path / "arm_fitted.urdf").exists()
    assert names["result"].has_converged and (tmp_path / "fit.png").exists()


def test_contact_page(tmp_path, monkeypatch):
    names = run_blocks(ROOT / "docs/contact.md", tmp_path, monkeypatch)
    assert "left_foot|floor" in names["sim"].contact.candidates.names and len(names["trajectory"].q) == 5001


def test_native_page(tmp_path, monkeypatch, capsys):
    names = run_blocks(ROOT / "docs/native.md", tmp_path, monkeypatch, {"np": np})
    assert float(names["area"](np.array([1.0, 0, 0]), np.array([0, 2.0, 0]))) == pytest.approx(2.0)


def test_c_export_page(tmp_path, monkeypatch):
    from hybridsim import Simulator
    from hybridsim.robots import pendulum

    run_blocks(ROOT / "docs/export-c.md", tmp_path, monkeypatch, {"sim": Simulator(pendulum())})
    assert (tmp_path / "step.c").exists() and (tmp_path / "step.h").exists()


def test_project_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    copy_demo()
    assert run(["fit", "project.toml", "--quiet"]) == 0
    names = run_blocks(ROOT / "docs/projects.md", tmp_path, monkeypatch)
    assert names["result"].has_converged


def test_extending_page(tmp_path, monkeypatch, capsys):
    names = run_blocks(ROOT / "docs/extending.md", tmp_path, monkeypatch)
    sim = Simulator(pendulum(), actuation=names["actuation"], dt=0.01)
    state, inputs = sim.initial_state([1.0], [0.5]), Inputs(np.array([0.3]))
    with jax.enable_x64(True):
        q, qd, _ = names["midpoint"](sim, state, inputs, sim.open_taps(state))
    reference = Simulator(sim.model, integrator="rk4", dt=0.01)
    exact = step(reference, reference.initial_state([1.0], [0.5]), inputs.u - 0.1)
    np.testing.assert_allclose([q, qd], [exact.q, exact.qd], atol=1e-4)
    sliding = Simulator(cube(), contact=names["contact"])
    assert sliding.contact.law.transition_velocity.shape == (1,)
    Path("run.json").write_text('{"time": [0.0, 0.1], "q": [1.0, 2.0]}')
    (table,) = names["JSON"].read(Path("run.json"), FileSelection())
    assert table.columns["q"].tolist() == [1.0, 2.0]
    assert names["CartesianJoint"]().numpy_subspace_columns(np.eye(3), np.ones(3), np.ones(3)).tolist() == (
        names["CartesianJoint"]().motion_subspace(np.ones(3), np.ones(3)).T.tolist()
    )
    assert names["gravity"]("pendulum") == 0 and "-9.81" in capsys.readouterr().out


def test_every_page_with_a_program_is_tested():
    elsewhere = {"fitting.md", "blueprints.md"}
    here = {"README.md", "contact.md", "native.md", "export-c.md", "projects.md", "extending.md"}
    assert {page.name for page in PAGES if blocks(page, "python")} == elsewhere | here


def commands(page: Path) -> list[str]:
    """Command lines in the blocks and in the text of a page."""
    text = page.read_text(encoding="utf-8")
    lines = [line.strip() for block in blocks(page, "sh") for line in block.splitlines()]
    lines = [re.sub(r"^.*&& +\S*/(hybridsim )", r"\1", line) for line in lines] + re.findall(r"`([^`]+)`", text)
    return [line.partition(" #")[0].replace("\n", " ") for line in lines if line.startswith("hybridsim ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_their_options_exist(page, capsys):
    for command in commands(page):
        words = command.split()[1:]
        subcommands = [word for word in words[:2] if re.fullmatch(r"[a-z]+(-[a-z]+)?", word)]
        subcommands = subcommands if words[0] in ("blueprint", "cache") else subcommands[:1]
        with pytest.raises(SystemExit) as exit:
            run([*subcommands, "--help"])
        assert exit.value.code == 0, command
        shown = capsys.readouterr().out
        for option in (word for word in words if word.startswith("--")):
            assert option in shown, f"{page.name}: {command!r}: no option {option}"


def test_source_files_that_pages_mention_exist():
    names = {file.relative_to(ROOT).as_posix() for file in ROOT.glob("[stb]*/**/*.py")}
    for page in (*PAGES, *ROOT.glob("*.md")):
        for mention in re.findall(r"`([\w/*]+\.py)\b", page.read_text(encoding="utf-8")):
            pattern = re.compile(r"(.*/)?" + re.escape(mention).replace(r"\*", r"\w*"))
            assert any(map(pattern.fullmatch, names)), f"{page.name} mentions {mention}"

"""`hybridsim blueprint`, `discover` and `audit` on the command line."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import equinox as eqx
import numpy as np
import pytest

from hybridsim import Simulator, simulate
from hybridsim.cli.main import run
from hybridsim.identify import score
from hybridsim.identify.initial_state_fit import fit_initial_states
from hybridsim.identify.support_search import SeedResult, SupportSearch
from hybridsim.project.build.blueprint_file import load_blueprint
from hybridsim.robots import double_pendulum
from support.small_projects import write_columns

BLUEPRINT = """format = 1
[[graft]]
outputs = "joint.tau[joint0]"
inputs = ["joint.q", "joint.qd"]
[graft.network]
hidden = [4]
"""


@pytest.fixture
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_show_prints_a_table_and_writes_a_diagram(working_folder, capsys):
    Path("b.toml").write_text(BLUEPRINT)
    assert run(["blueprint", "show", "b.toml", "--model", "double_pendulum"]) == 0
    shown = capsys.readouterr().out
    assert "MLP 4→4→1" in shown and "adds to joint.tau[joint0]" in shown and "joint.qd[joint1]" in shown
    assert "1 network, 25 weights; diagram: b.svg" in shown
    texts = [element.text for element in ET.parse("b.svg").iter() if element.text]
    assert {"joint.q[joint0]", "joint.tau[joint0]", "25 weights", "b on double_pendulum"} <= set(texts)
    more = ["--json", "--out", "other.svg", "--weights", "weights.svg"]
    assert run(["blueprint", "show", "b.toml", "--model", "double_pendulum", *more]) == 0
    # the initial last layer is zero: only the weights of the first layer have lines
    drawn = list(ET.parse("weights.svg").iter())
    assert sum(element.tag.endswith("line") for element in drawn) == 4 * 4
    assert sum(element.tag.endswith("circle") for element in drawn) == 4 + 4 + 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["diagram"] == "other.svg" and facts["grafts"][0]["weights"] == 25


def test_diagrams_do_not_overwrite_files(working_folder, capsys):
    Path("b.toml").write_text(BLUEPRINT)
    show = ["blueprint", "show", "b.toml", "--model", "double_pendulum"]
    for more in (["--out", "b.toml"], ["--out", "b.png"], ["--weights", "b.svg"]):
        assert run([*show, *more]) == 1
    assert Path("b.toml").read_text() == BLUEPRINT and not Path("b.svg").exists()
    assert "--out and --weights must be different files" in capsys.readouterr().err


def test_show_explains_mismatches(working_folder, capsys):
    Path("b.toml").write_text(BLUEPRINT)
    assert run(["blueprint", "show", "b.toml", "--model", "cartpole"]) == 1
    error = capsys.readouterr().err
    assert "b.toml:3" in error and "nothing is named 'joint0'" in error


PROJECT = """[model]
built_in = "double_pendulum"
dt = 0.01
[data]
files = "run*.csv"
time = "time"
held_out = 0.4
[[channel]]
measures = "joint.q[joint0]"
column = "q0"
noise = 0.001
[[channel]]
measures = "joint.q[joint1]"
column = "q1"
noise = 0.001
[[free]]
name = "graft[*]"
[[graft]]
outputs = "joint.tau[joint0]"
inputs = ["joint.q", "joint.qd"]
[graft.network]
hidden = [3]
input_scale = [1.0, 1.0, 4.0, 4.0]
[[stage]]
window = 0.5
solver = { max_steps = 20 }
"""


@pytest.fixture
def project(working_folder):
    true = eqx.tree_at(lambda m: m.joint.damping, double_pendulum(), np.array([0.3, 0.0]))
    sim, rng = Simulator(true, dt=0.01), np.random.default_rng(0)
    for k in range(5):
        trajectory = simulate(sim, sim.initial_state(rng.uniform(-1, 1, 2)), steps=150)
        q = trajectory.q + 1e-3 * rng.normal(size=trajectory.q.shape)
        write_columns(working_folder / f"run{k}.csv", {"time": trajectory.t, "q0": q[:, 0], "q1": q[:, 1]})
    Path("p.toml").write_text(PROJECT)
    return Path("p.toml")


def test_discover_writes_a_blueprint_and_can_be_resumed(project, capsys):
    assert run(["discover", "p.toml", "--seeds", "1"]) == 0
    shown = capsys.readouterr()
    assert "joint.qd[joint0] → joint.tau[joint0]" in shown.out and "100%" in shown.out and "3 other inputs" in shown.out
    assert re.search(r"penalty \S+ per input, \d inputs remain", shown.err)
    folder = Path("runs/p-discovery")
    assert load_blueprint(folder / "blueprint.toml", double_pendulum()).grafts[0].inputs == ("joint.qd[joint0]",)
    ET.parse(folder / "wiring.svg")
    drawn = [element.get("fill") for element in ET.parse(folder / "weights.svg").iter() if element.tag.endswith("text")]
    assert len(drawn) == 2 + (4 + 1) + (1 + 1)  # titles, and names of inputs and outputs, before and after
    first = json.loads((folder / "discovery.json").read_text())
    assert run(["discover", "p.toml", "--seeds", "1"]) == 1
    assert "--resume continues it" in capsys.readouterr().err
    assert run(["discover", "p.toml", "--seeds", "2", "--resume", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert len(facts["seeds"]) == 2
    second = json.loads((folder / "discovery.json").read_text())
    assert second["seeds"][0] == first["seeds"][0]
    project.write_text(PROJECT.replace("window = 0.5", "window = 0.4"))
    assert run(["discover", "p.toml", "--resume"]) == 1
    assert "because its inputs have changed: the project" in capsys.readouterr().err
    assert run(["audit", str(folder)]) == 1
    assert "is the folder of a discovery; name its blueprint.toml in a project" in capsys.readouterr().err
    second["manifest"]["format"] -= 1
    (folder / "discovery.json").write_text(json.dumps(second))
    assert run(["discover", "p.toml", "--resume"]) == 1
    assert "does not have format" in capsys.readouterr().err
    (folder / "discovery.json").write_text("{")
    assert run(["discover", "p.toml", "--resume"]) == 1
    assert "start over with --fresh" in capsys.readouterr().err


def test_discover_reports_a_final_fit_that_did_not_converge(project, capsys, monkeypatch):
    def select_first(search, seed):
        support = frozenset(search.candidates[:1])
        return SeedResult(seed, best := search.fit_from_scratch(support), (), best)

    monkeypatch.setattr(SupportSearch, "run", select_first)
    project.write_text(PROJECT.replace("max_steps = 20", "max_steps = 1"))
    assert run(["discover", "p.toml", "--seeds", "1"]) == 0
    shown = capsys.readouterr()
    assert "remark: the fit of the selected inputs did not converge" in " ".join(shown.out.split())
    assert "; the fit did not converge" in " ".join(shown.err.split())
    assert json.loads(Path("runs/p-discovery/discovery.json").read_text())["summary"]["converged"] is False


def test_discover_refuses_invalid_options(project, capsys):
    assert run(["discover", "p.toml", "--seeds", "0"]) == 1
    assert run(["discover", "p.toml", "--resume", "--fresh"]) == 1
    project.write_text(PROJECT.replace("held_out = 0.4", "held_out = 0.0"))
    assert run(["discover", "p.toml"]) == 1
    assert "hold some out" in capsys.readouterr().err


def test_a_passive_network_injects_no_energy(project, capsys, monkeypatch):
    text = PROJECT.replace("hidden = [3]\ninput_scale = [1.0, 1.0, 4.0, 4.0]", "kind = 'joint_friction'")
    project.write_text(text.replace('inputs = ["joint.q", "joint.qd"]', 'inputs = "joint.qd[joint0]"'))
    run(["fit", "p.toml", "--quiet"])
    capsys.readouterr()
    assert run(["audit", "runs/p", "--json"]) == 0
    (graft,) = (found := json.loads(capsys.readouterr().out))["grafts"]
    assert graft["network"] == "JointFriction" and graft["injected"] == 0.0 and graft["removed"] > 0.1
    assert found["diverged"] == 0 and found["duration"] == pytest.approx(7.5)
    assert run(["audit", "runs/p"]) == 0
    shown = capsys.readouterr().out
    assert "over 7.5 s of motion in 15 windows" in shown and "remark" not in shown and found["unconverged"] == 0
    monkeypatch.setattr(score, "fit_initial_states", lambda *args, **_: fit_initial_states(*args, max_steps=1))
    assert run(["audit", "runs/p"]) == 0
    assert re.search(r"the fit of the initial states did not converge in \d+ windows", capsys.readouterr().out)
    assert run(["audit", "runs/nothing"]) == 1


def test_audit_needs_networks(project, capsys):
    before, _, rest = PROJECT.partition("[[free]]")
    project.write_text(f"{before}[[free]]\nname = 'joint.damping[*]'\n{rest[rest.index('[[stage]]') :]}")
    assert run(["fit", "p.toml", "--quiet"]) == 0
    assert run(["audit", "runs/p"]) == 1
    assert "has no networks" in capsys.readouterr().err


def test_a_network_is_exported_as_c(working_folder, capsys):
    Path("b.toml").write_text(BLUEPRINT)
    assert run(["blueprint", "export-c", "b.toml", "--model", "double_pendulum"]) == 0
    assert "network 0 written to b.c and b.h" in capsys.readouterr().out
    assert "joint.qd[joint1]" in Path("b.h").read_text() and "b_network(" in Path("b.c").read_text()
    assert run(["blueprint", "export-c", "b.toml", "--model", "double_pendulum", "--graft", "1"]) == 1
    assert "there is no network 1" in capsys.readouterr().err

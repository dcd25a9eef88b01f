"""From a project to a fit: model, actuators, recordings, noise, networks, stages."""

from pathlib import Path

import numpy as np
import pytest

from hybridsim.core.specification import setting_fields, tables_of
from hybridsim.identify.solve import solve
from hybridsim.identify.solvers.adam import Adam
from hybridsim.identify.solvers.lbfgs import LBFGS
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.io.convert import convert
from hybridsim.model.builder import ModelBuilder
from hybridsim.project.build.build import BuiltProject, build
from hybridsim.project.schema.content import Content
from hybridsim.project.schema.load import load_project
from hybridsim.robots import pendulum
from hybridsim.sim.rollout import simulate
from hybridsim.sim.simulator import Simulator
from support.small_projects import PROJECT, TWO_LINK_URDF, problems_of, write_columns, write_project

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "projects.md"


def build_project(folder: Path, text: str) -> BuiltProject:
    return build(load_project(write_project(folder, text)))


def test_a_fit_recovers_the_true_damping(tmp_path):
    sim = Simulator(pendulum(damping=0.3), dt=0.01)
    for k, angle in enumerate((0.5, 1.0, 1.5)):
        trajectory = simulate(sim, sim.initial_state([angle]), steps=300)
        write_columns(tmp_path / f"swing{k}.csv", {"time": trajectory.t, "q": np.rad2deg(trajectory.q[:, 0])})
    text = PROJECT.replace('["run.csv"]', '"swing*.csv"').replace("held_out = 0.0\n", "")
    text = text.replace("noise = 0.001", 'unit = "deg"')
    built = build_project(tmp_path, text)
    assert [run.name for run in built.problem.train] == ["swing0", "swing2"]
    assert [run.name for run in built.problem.held_out] == ["swing1"]
    assert [stage.window for stage in built.stages] == [0.25, 1.0]
    assert len(built.sources) == 3 and all(len(sha256) == 64 for _, sha256 in built.sources)
    fitted = solve(built.problem, built.stages)
    assert fitted.has_converged
    assert built.problem.space.values(fitted.theta)["joint.damping[joint0]"] == pytest.approx(0.3, rel=1e-6)


def test_noise_is_specified_in_the_columns_unit(tmp_path):
    built = build_project(tmp_path, PROJECT.replace("noise = 0.001", 'noise = 0.5\nunit = "deg"\nscale = -2.0'))
    assert built.problem.channel_roles.noise == {"angle": pytest.approx(np.deg2rad(1.0))}


def test_noise_is_estimated_from_the_training_runs(tmp_path):
    rng, t = np.random.default_rng(0), np.arange(500) * 0.01
    for name, level in (("a", 0.01), ("b", 0.02), ("c", 0.03), ("held", 5.0)):
        values = np.sin(t) + level * rng.normal(size=len(t))
        write_columns(tmp_path / f"{name}.csv", {"time": t, "q": values})
    text = PROJECT.replace("noise = 0.001\n", "").replace("held_out = 0.0", "held_out = ['h*']")
    built = build_project(tmp_path, text.replace('["run.csv"]', '["?.csv", "held.csv"]'))
    assert built.problem.channel_roles.noise["angle"] == pytest.approx(0.02, rel=0.15)
    assert [run.name for run in built.problem.held_out] == ["held"]


def test_estimated_noise_has_a_lower_bound(tmp_path):
    built = build_project(tmp_path, PROJECT.replace("noise = 0.001\n", ""))
    series = built.problem.train[0].series["angle"]
    assert built.problem.channel_roles.noise["angle"] >= 0.99e-6 * np.std(series.values)


def test_the_noise_of_a_channel_at_rest_cannot_be_estimated(tmp_path):
    text = PROJECT.replace("noise = 0.001\n", "").replace('column = "q"', 'column = "still"')
    path = write_project(tmp_path, text)
    write_columns(tmp_path / "run.csv", {"time": np.arange(20.0), "still": np.ones(20)})
    (problem,) = problems_of(build, load_project(path))
    assert problem.code == "project.noise" and problem.line == 9 and "is constant" in problem.message


def test_a_single_run_is_cut_for_validation(tmp_path):
    built = build_project(tmp_path, PROJECT.replace("held_out = 0.0", "held_out = 0.2"))
    (first,), (last,) = built.problem.train, built.problem.held_out
    assert last.start - first.start == pytest.approx(0.8, abs=0.02) and first.end <= last.start
    assert last.end == pytest.approx(0.99)


def test_runs_are_cut_at_gaps_and_named_by_pattern(tmp_path):
    t = np.concatenate([np.arange(0, 50), np.arange(150, 200), np.arange(300, 350)]) * 0.01
    path = write_project(tmp_path, PROJECT.replace("held_out = 0.0", "held_out = ['gap.1']\nmax_sample_interval = 0.5"))
    path.write_text(path.read_text().replace("run.csv", "gap.csv"))
    write_columns(tmp_path / "gap.csv", {"time": t, "q": np.sin(t)})
    built = build(load_project(path))
    assert [run.name for run in built.problem.train] == ["gap.0", "gap.2"]
    assert [run.name for run in built.problem.held_out] == ["gap.1"]


def test_warnings_about_data_are_phrased_for_project_files(tmp_path):
    path = write_project(tmp_path, PROJECT.replace("run.csv", "gap.csv"))
    t = np.concatenate([np.arange(0, 50), np.arange(150, 200)]) * 0.01
    write_columns(tmp_path / "gap.csv", {"time": t, "q": np.sin(t)})
    (warning,) = build(load_project(path)).warnings
    assert warning.code == "data.gap" and "max_sample_interval = 0.05 in [data]" in warning.fix


def test_a_column_missing_in_many_files_is_reported_once(tmp_path):
    path = write_project(tmp_path, PROJECT.replace('["run.csv"]', '"*.csv"').replace('column = "q"', 'column = "p"'))
    for k in range(3):
        (tmp_path / f"more{k}.csv").write_text((tmp_path / "run.csv").read_text())
    (problem,) = problems_of(build, load_project(path))
    assert problem.line == 12 and "and 3 more" in problem.message


def test_files_with_several_runs(tmp_path):
    t = np.arange(100) * 0.01
    np.savez(tmp_path / "stack.npz", states=np.stack([np.stack([np.cos(w * t), t], axis=1) for w in (1.0, 2.0, 3.0)]))
    text = PROJECT.replace('["run.csv"]', '"stack.npz"\nsample_interval = 0.01').replace(
        'column = "q"', 'column = "states[0]"'
    )
    (problem, *_) = problems_of(build, load_project(write_project(tmp_path, text)))
    assert "several_runs = true in [data]" in problem.fix
    text = text.replace("sample_interval = 0.01", "sample_interval = 0.01\nseveral_runs = true")
    built = build_project(tmp_path, text.replace("held_out = 0.0", 'held_out = ["stack[1]"]'))
    assert [run.name for run in built.problem.train] == ["stack[0]", "stack[2]"]


def test_runs_of_the_same_name_get_unique_names(tmp_path):
    t = np.arange(50) * 0.01
    for folder in ("a/x", "b/x"):
        (tmp_path / folder).mkdir(parents=True)
        write_columns(tmp_path / folder / "run.csv", {"time": t, "q": np.sin(t)})
    text = PROJECT.replace('["run.csv"]', '"?/x/*.csv"').replace("held_out = 0.0", 'held_out = ["b*"]')
    built = build_project(tmp_path, text)
    assert [run.name for run in (*built.problem.train, *built.problem.held_out)] == ["a/x/run.csv", "b/x/run.csv"]


def test_a_run_of_several_files(tmp_path):
    write_columns(tmp_path / "motor.csv", {"time": np.arange(0.0, 1.0, 0.1), "u": np.linspace(0.0, 1.0, 10)})
    write_columns(tmp_path / "encoder.csv", {"time": np.arange(0.0, 1.0, 0.01), "q": np.linspace(0.0, 1.0, 100)})
    text = PROJECT.replace('["run.csv"]', '[["encoder.csv", "motor.csv"]]')
    built = build_project(tmp_path, text + '[[command]]\njoint = "joint0"\ncolumn = "u"\n')
    (run,) = built.problem.train
    assert run.name == "encoder" and len(run.sources) == 2
    assert {name: len(series) for name, series in run.series.items()} == {"angle": 100, "joint:joint0": 10}


def write_arm(folder: Path, **actuator) -> Path:
    """Write an MJCF file of one link, without actuators or with one; returns its path."""
    builder = ModelBuilder("arm")
    builder.add_body("link", joint="hinge", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    model = (
        builder.add_actuator("hinge", name="drive", **actuator) if actuator else builder.declare_unactuated()
    ).build()
    convert(model, folder / "arm.xml")
    return folder / "arm.xml"


PROJECT_WITH_COMMAND = PROJECT.replace('built_in = "pendulum"', 'file = "arm.xml"').replace("joint0", "hinge")
PROJECT_WITH_COMMAND += '[[command]]\njoint = "hinge"\ncolumn = "u"\ninterpolation = "linear"\n'


def test_a_joint_without_actuator_gets_one(tmp_path):
    write_arm(tmp_path)
    built = build_project(tmp_path, PROJECT_WITH_COMMAND)
    assert built.problem.setup.sim.model.actuator.names == ("hinge",)
    assert built.problem.channel_roles.commands["hinge"].interpolation == "linear"
    objective, _ = built.problem.objective(built.stages[-1])
    assert np.ptp(objective.windows.inputs.u) > 0.05


def test_the_direct_actuator_of_a_joint_is_used(tmp_path):
    write_arm(tmp_path, gear=1.0)
    assert tuple(build_project(tmp_path, PROJECT_WITH_COMMAND).problem.channel_roles.commands) == ("drive",)


def test_a_torque_is_not_used_as_the_command_of_a_servo(tmp_path):
    write_arm(tmp_path, gain=10.0, bias=(0.0, -10.0, -1.0))
    (problem,) = problems_of(build, load_project(write_project(tmp_path, PROJECT_WITH_COMMAND)))
    assert problem.line == 19 and "not the torque" in problem.message and 'actuator = "drive"' in problem.fix


def test_stages_are_as_specified(tmp_path):
    text = PROJECT + '[[stage]]\nwindow = 0.1\nloss = "huber"\n[[stage]]\ncontinuity = [0.1, 0.2]\nsolver = "lbfgs"\n'
    text += '[[stage]]\nwindow = 0\ninitial_states = "measured"\nsolver = { name = "adam", batch_size = 3 }\n'
    text += "[run]\nseed = 7\n"
    first, second, third = build_project(tmp_path, text).stages
    assert (first.window, first.loss, first.solver) == (0.1, "huber", LevenbergMarquardt())
    assert second.continuity == (0.1, 0.2) and second.solver == LBFGS()
    assert third.window == 0.0 and third.solver == Adam(batch_size=3, seed=7)


def test_contact_is_set_up(tmp_path):
    text = PROJECT.replace('"pendulum"', '"cube"').replace("joint.q[joint0]", "joint.q[root.z]")
    text = text.replace("joint.damping[*]", "contact.friction[*]")
    text += "[model.contact]\nkind = 'compliant'\nfriction = 0.3\nlaw = 'brown'\n"
    sim = build_project(tmp_path, text).problem.setup.sim
    assert sim.contact.candidates.nc and np.all(np.asarray(sim.contact.friction) == 0.3)


def test_weights_of_networks_are_free_and_seeded(tmp_path):
    text = PROJECT + "[[graft]]\noutputs = 'joint.tau'\ninputs = ['joint.q', 'joint.qd']\nnetwork = { hidden = [3] }\n"
    free = "[[free]]\nname = 'graft[0]'\nl2 = 0.5\n"
    weights = [build_project(tmp_path, f"{text}{free}[run]\nseed = {seed}\n") for seed in (0, 0, 1)]
    first, again, other = (np.asarray(one.problem.setup.sim.blueprint.grafts[0].net.weights[0]) for one in weights)
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    space = weights[0].problem.space
    assert space.size == 1 + 3 * 2 + 3 + 3 + 1 and set(space.l2[1:]) == {0.5}
    assert build_project(tmp_path, text).problem.space.size == 1


def test_an_unread_input_causes_a_warning(tmp_path):
    built = build_project(tmp_path, PROJECT + "[[command]]\ninput = 'wind'\ncolumn = 'u'\n")
    assert any("read by no network" in warning.message for warning in built.warnings)


def documented_projects() -> list[str]:
    blocks = DOCUMENTATION.read_text().split("```toml\n")[1:]
    return [block.partition("```")[0] for block in blocks]


def test_the_documented_projects_work(tmp_path):
    (tmp_path / "arm.urdf").write_text(TWO_LINK_URDF.format(damping=0.1))
    (tmp_path / "runs").mkdir()
    t = np.arange(100) * 0.01
    for name in ("early", "later", "late1"):
        columns = {"time": t, "time_ms": 1e3 * t, "shoulder": np.sin(t)}
        columns |= {"shoulder_deg": 90 * np.sin(t), "link2_deg": 80 * np.cos(t)}
        columns |= {"motor_mNm": np.cos(t), "wind": np.sin(3 * t)}
        write_columns(tmp_path / "runs" / f"{name}.csv", columns)
    small, full, actuation = documented_projects()
    for text in (small, small.replace("[data]", f"{actuation}\n[data]"), full):
        path = tmp_path / "project.toml"
        path.write_text(text)
        built = build(load_project(path))
        assert not built.warnings and built.problem.held_out
    assert {run.name for run in built.problem.held_out} == {"late1", "later"}
    # inputs, networks, delays and estimated velocities can be simulated
    objective, _ = built.problem.objective(built.stages[0])
    assert np.isfinite(objective.cost(objective.point(built.problem.space.initial))).all()


def test_every_key_is_documented():
    text, tables = DOCUMENTATION.read_text(), list(Content.model_fields.values())
    seen = set()
    while tables:
        field = tables.pop()
        for table, choice in tables_of(field.annotation, field.metadata):
            keys = [*setting_fields(table), *([choice.key] if choice else [])]
            missing = [key for key in keys if f"`{key}`" not in text]
            assert not missing, f"{table.__name__}: {missing}"
            if table not in seen:
                tables += setting_fields(table).values()
                seen.add(table)
    assert len(seen) > 30

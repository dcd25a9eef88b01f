"""Evaluation of the contact benchmark, and hybridsim on the cube; no peer is required."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.contact_workloads import CUBE, FIVE_LINKS, QUADRUPED, QUADRUPED_17, check_final_state, penetration

from benchmarks import comparison, contact_figure, contact_targets, measure, ours, report, targets

ROOT = Path(__file__).parents[2]


def make_row(peer, workload, what, ns, *, method="", batch=1, **more):
    timing = measure.Timing(1e-9 * ns * batch, 1e-9 * ns * batch)
    return measure.row(peer, "1.0", workload.name, what, timing, method=method, batch=batch, **more)


ROWS = [
    make_row(targets.NATIVE, QUADRUPED, "forward", 2000.0, method="impulse, 2 sweeps"),
    make_row(targets.NATIVE, QUADRUPED, "forward", 1500.0, method="impulse, 1 sweep"),
    make_row(targets.NATIVE, QUADRUPED, "forward", 500.0, method="compliant"),
    make_row("MuJoCo", QUADRUPED, "forward", 9000.0),
    make_row("MuJoCo", QUADRUPED, "forward", 8000.0, method="1 iteration"),
    make_row(targets.NATIVE, FIVE_LINKS, "gradient", 1000.0, method="unrolled, 2 sweeps"),
]


def test_targets_compare_the_row_of_two_sweeps_with_the_fastest_method_of_a_peer():
    results = {t["target"]: t for t in contact_targets.evaluate(ROWS)}
    mujoco = results["quadruped on four feet, forward ×1: faster than MuJoCo"]
    assert mujoco["measured"] == pytest.approx(4.0) and mujoco["met"] is True
    assert results["five links on the ground, gradient: faster than TDS's code"]["measured"] == pytest.approx(6.6)
    assert results["five links on the ground, forward: faster than TDS's code"]["met"] is None
    assert {t["met"] for t in contact_targets.evaluate([])} == {None}


def test_ratios_are_relative_to_the_row_of_two_sweeps():
    reference = {group: ours for group, _, ours in report.groups(ROWS)}
    assert reference["quadruped 4", "forward", 1].method == "impulse, 2 sweeps"


def test_penetration_of_shapes_into_the_ground():
    assert penetration(QUADRUPED, QUADRUPED.q0) == pytest.approx(0.0, abs=1e-12)
    assert penetration(FIVE_LINKS, np.zeros(5)) == pytest.approx(1.5 + 0.15)
    flat = np.array([0.0, 0.0, 0.04, 1.0, 0.0, 0.0, 0.0])
    assert penetration(CUBE, flat) == pytest.approx(0.01)
    on_edge = [0.0, 0.0, 0.05 * np.sqrt(2.0), np.cos(np.pi / 8), np.sin(np.pi / 8), 0.0, 0.0]
    assert penetration(CUBE, np.array(on_edge)) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ValueError, match="below the ground"):
        check_final_state(FIVE_LINKS, np.zeros(5))
    with pytest.raises(ValueError, match="not finite"):
        check_final_state(CUBE, np.full(7, np.nan))


def test_the_two_quadrupeds_have_4_and_17_shapes():
    assert [sum(len(b.shapes) for b in w.nominal_bodies()) for w in (QUADRUPED, QUADRUPED_17)] == [4, 17]


@pytest.mark.parametrize("contact", ["impulse", "compliant"])
def test_the_cube_comes_to_rest_on_the_ground(contact):
    motion = ours.Motion(CUBE, 1, CUBE.steps, contact=contact)
    end = motion.forward(motion.rollout())().end[0]
    assert check_final_state(CUBE, end[: CUBE.nq]).startswith("ended")
    assert end[2] == pytest.approx(0.05, abs=2e-3)


def test_results_go_to_a_default_file_unless_specified():
    parser = comparison.make_parser("", "contact", ["mujoco"], "", 1)
    default = Path("runs/contact.json")
    paths = [parser.parse_args(words).json for words in ([], ["--json"], ["--json", "my.json"])]
    assert paths == [default, default, Path("my.json")]


def test_help_names_the_options():
    command = [sys.executable, "-m", "benchmarks.contact", "--help"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for word in ("--quick", "--resume", "--json", "--figure", "--only", "brax"):
        assert word in completed.stdout


def test_the_figure_accepts_any_subset_of_rows(tmp_path):
    contact_figure.draw(ROWS, tmp_path / "some.svg")
    contact_figure.draw([], tmp_path / "none.svg")
    assert (tmp_path / "some.svg").stat().st_size > (tmp_path / "none.svg").stat().st_size > 0

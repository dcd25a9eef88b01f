"""Evaluation of the gradient benchmark, and hybridsim on the double pendulum; no peer is required."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from benchmarks.workloads import BATCH, W1, network, network_parameters

from benchmarks import figure, measure, ours, running, targets

OURS = ("native",)
ROOT = Path(__file__).parents[2]


def make_row(peer, what="gradient", ns=100.0, *, workload="W1", method="reverse", batch=1, **more):
    seconds = 1e-9 * ns * batch * 500
    timing = measure.Timing(seconds, 2 * seconds)
    return measure.row(peer, "1.0", workload, what, timing, method=method, batch=batch, steps=500, **more)


def test_the_time_of_a_row_is_per_step_and_trajectory():
    r = make_row("some peer", ns=80.0, batch=16)
    assert r.per_step_ns == pytest.approx(80.0)
    assert r.wall_seconds == pytest.approx(2 * r.seconds)
    assert make_row("some peer", ns=80.0, wall=True).per_step_ns == pytest.approx(160.0)


def test_targets_compare_the_fastest_mode_of_a_peer_with_our_reverse_sweep():
    rows = [
        make_row(targets.NATIVE, ns=100.0, compile_s=1.0, cached_s=0.3),
        make_row(targets.NATIVE, ns=50.0, method="sensitivities"),
        make_row(targets.CASADI, ns=150.0),
        make_row("MJX", ns=9000.0, method="forward mode"),
        make_row("MJX", ns=50000.0, method="reverse mode"),
    ]
    results = {t["target"]: t for t in targets.evaluate(rows)}
    casadi = results["double pendulum, gradient ×1: faster than CasADi C"]
    assert casadi["measured"] == pytest.approx(1.5) and casadi["met"] is True
    mjx = results["double pendulum, gradient ×1: faster than MJX's fastest mode"]
    assert mjx["measured"] == pytest.approx(90.0) and mjx["met"] is False
    assert results["double pendulum, gradient: loading the kernel from disk"]["met"] is False
    assert results["double pendulum, gradient ×1024: faster than CasADi C"]["met"] is None
    assert {t["met"] for t in targets.evaluate([])} == {None}


def test_a_wrong_result_is_an_error():
    with pytest.raises(ValueError, match="relative error"):
        measure.check_motion(W1, 500, loss=352.0)


def test_native_code_gives_the_reference_loss_and_gradients():
    motion = ours.Motion(W1, 1, W1.steps)
    summary = ours.check_result(W1, W1.steps, "reverse", motion.reverse(motion.rollout())())
    assert summary.startswith("loss, parameters, q0 as expected")


def test_the_network_has_175_parameters():
    p, x = network_parameters()
    outputs = network(p, x, np.tanh)
    assert len(p) == 175 and len(outputs) == 10
    from benchmarks.ours_models import network_loss

    assert network_loss(p, x) == pytest.approx(np.sum(np.square(outputs)), rel=1e-14)


def test_help_names_the_options():
    command = [sys.executable, "-m", "benchmarks.gradients", "--help"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for word in ("--quick", "--resume", "--json", "--figure", "--only", "casadi"):
        assert word in completed.stdout


PEER = """
import json, sys
for part in sys.argv[1:]:
    if part == "missing": sys.exit(3)
    if part == "wrong": raise ValueError("the gradient is wrong")
    if part.startswith("--"): break
    print(json.dumps({"part": part, "rows": []}), flush=True)
"""


@pytest.mark.parametrize(
    "last, message", [("missing", "not installed"), ("wrong", "ValueError: the gradient is wrong")]
)
def test_a_peer_that_fails_keeps_its_finished_parts(tmp_path, monkeypatch, last, message):
    (tmp_path / "some_peer.py").write_text(PEER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    finished = []
    with pytest.raises(RuntimeError, match=message):
        for part, _ in running.results("some_peer", ["W1", last], seconds=0.1):
            finished.append(part)
    assert finished == ["W1"]


def test_the_record_is_complete_after_every_part(tmp_path):
    record = running.Record(tmp_path / "new" / "out.json", OURS, resume=False)
    record.add("native", "W1", [asdict(make_row(targets.NATIVE))])
    record.fail("mjx", "not installed")
    saved = json.loads(record.path.read_text())
    assert saved["failed"] == {"mjx": "not installed"}
    assert running.Record(record.path, OURS, resume=True).rows() == [make_row(targets.NATIVE)]
    assert [p.name for p in record.path.parent.iterdir()] == ["out.json"]


def test_merged_rounds_have_the_fastest_and_the_slowest_time():
    rounds = [[asdict(make_row(targets.NATIVE, ns=ns))] for ns in (26.0, 19.0, 22.0)]
    (row,) = running.merge(running.merge(rounds[0], rounds[1]), rounds[2])
    assert (row["per_step_ns"], row["slowest_ns"]) == pytest.approx((19.0, 26.0))


def test_measurements_of_other_code_are_discarded(tmp_path, monkeypatch):
    record = running.Record(tmp_path / "out.json", OURS, resume=False)
    for peer in ("native", "casadi"):
        record.add(peer, "W1", [])
    monkeypatch.setattr(running, "source_hash", lambda: "changed")
    assert list(running.Record(record.path, OURS, resume=True).measured) == ["casadi"]


def test_the_figure_accepts_any_subset_of_rows(tmp_path):
    rows = [
        make_row(targets.NATIVE),
        make_row(targets.NATIVE, batch=BATCH),
        make_row("MJX", ns=3e4, method="forward mode"),
    ]
    figure.draw(rows, tmp_path / "some.svg")
    figure.draw([], tmp_path / "none.svg")
    assert (tmp_path / "some.svg").stat().st_size > (tmp_path / "none.svg").stat().st_size > 0

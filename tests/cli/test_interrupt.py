"""SIGINT and SIGTERM: the first requests a clean stop, the second terminates immediately."""

import signal
import subprocess
import sys
import time

import pytest

KEEPS_RUNNING = """
import time
from hybridsim.cli.interrupt import StopRequest

with StopRequest() as stop:
    print("ready", flush=True)
    while not stop.requested:
        time.sleep(0.01)
    print(stop.exit_code, flush=True)
    time.sleep(600.0)
"""
"""A program that notices the stop request but keeps running."""


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (signal.SIGINT, signal.SIGINT, 130),
        (signal.SIGTERM, signal.SIGTERM, 143),
        (signal.SIGINT, signal.SIGTERM, 143),
    ],
)
def test_the_second_signal_stops_immediately(first, second, code):
    command = [sys.executable, "-c", KEEPS_RUNNING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(first)
        assert process.stdout.readline() == f"{128 + first}\n"
        process.send_signal(second)
        error = process.communicate(timeout=60)[1]
    assert process.returncode == code
    assert error.strip().startswith("stopping once everything is saved") and "Traceback" not in error


def test_handlers_are_restored():
    from hybridsim.cli.interrupt import StopRequest

    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with StopRequest() as stop:
        assert signal.getsignal(signal.SIGTERM) not in before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert not stop.requested and stop.exit_code == 0


def test_a_stopped_demo_can_be_resumed(tmp_path):
    out = tmp_path / "arm"
    command = [sys.executable, "-m", "hybridsim", "demo", "--no-browser", "--out", str(out)]
    history = out / "runs" / "parameters" / "history.jsonl"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 120.0
        while not history.exists():
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        error = process.communicate(timeout=120)[1]
    assert process.returncode == 143
    assert f"Continue with: hybridsim demo --out {out} --resume" in error and "Traceback" not in error

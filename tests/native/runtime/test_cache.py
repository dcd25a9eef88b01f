"""The cache on disk: found again without tracing, safe against damage, kills and others."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from hybridsim.native.llvm import machine
from hybridsim.native.runtime import cache
from hybridsim.native.runtime.rollout import Rollout
from support.native_pendulum import CARRY, FIXED, FREE, INPUTS, batch_of, pendulum


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    place = tmp_path / "kernels"
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(place))
    return place


def untraceable(*_):
    raise AssertionError("the step was traced")


OUTPUTS = {"energy": np.array(0.0), "sine": np.zeros(2)}


def new(step=pendulum, key="the pendulum", **more):
    with jax.enable_x64(True):
        return Rollout(step, FIXED, FREE, CARRY, INPUTS, outputs=OUTPUTS, key=key, **more)


def test_a_kernel_is_found_again_without_tracing(folder):
    rollout = new()
    batch = batch_of(rollout, 3)
    expected = rollout.forward(*batch)
    (path,) = folder.glob("*.kernel")
    assert path.stat().st_mode & 0o077 == 0
    before = Rollout.compilations
    got = new(step=untraceable).forward(*batch)
    assert Rollout.compilations == before
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("trajectories", [1, 3])
def test_any_forward_kernel_on_disk_proves_that_there_is_native_code(trajectories):
    rollout = new()
    rollout.forward(*batch_of(rollout, trajectories))
    new(step=untraceable).check_supported()


def test_what_changes_the_code_changes_the_key():
    keys = set()
    changes = [{}, {"key": "another"}, {"target": machine.AVX2}, {"varying": [3]}]
    for change in changes:
        rollout = new(**change)
        keys |= {rollout._disk_key(name, alone) for name in ("forward", "gradient") for alone in (True, False)}
    assert len(keys) == 4 * len(changes)


def test_without_a_key_nothing_is_kept(folder):
    rollout = new(key=None)
    rollout.forward(*batch_of(rollout, 1))
    assert not folder.exists()


@pytest.mark.parametrize("damage", ["garbage", "half", "empty", "flipped", "other format"])
def test_a_damaged_file_is_compiled_anew(folder, damage):
    rollout = new()
    batch = batch_of(rollout, 1)
    expected = rollout.forward(*batch)
    (path,) = folder.glob("*.kernel")
    good = path.read_bytes()
    flipped = bytearray(good)
    flipped[-100] ^= 1
    bad = {
        "garbage": os.urandom(len(good)),
        "half": good[: len(good) // 2],
        "empty": b"",
        "flipped": bytes(flipped),
        "other format": b"hybridsim kernel 0\n" + good[19:],
    }
    path.write_bytes(bad[damage])
    before = Rollout.compilations
    got = new().forward(*batch)
    assert Rollout.compilations == before + 1
    np.testing.assert_array_equal(got.end, expected.end)
    assert path.read_bytes() == good


def test_a_folder_that_others_can_write_to_is_not_used(folder):
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    rollout = new()
    with pytest.warns(UserWarning, match="others may write"):
        rollout.forward(*batch_of(rollout, 1))
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_written_is_no_error(folder):
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file where the folder should be")
    rollout = new()
    rollout.forward(*batch_of(rollout, 1))
    assert cache.unusable_reason() == f"{folder} is not a folder"


def test_a_folder_that_can_only_be_read_is_read(monkeypatch):
    rollout = new()
    rollout.forward(*batch_of(rollout, 1))

    def refused(*_, **__):
        raise PermissionError("read-only file system")

    monkeypatch.setattr(os, "utime", refused)
    new(step=untraceable).forward(*batch_of(rollout, 1))


def test_without_a_home_nothing_is_kept(monkeypatch):
    monkeypatch.delenv(cache.FOLDER_VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless(_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    assert cache.folder() is None and cache.unusable_reason() == "the user has no home folder"
    rollout = new()
    rollout.forward(*batch_of(rollout, 1))


def test_what_is_no_entry_is_left_alone(folder):
    entry = cache.CachedKernel("forward", 1, 1, 1, 0, 0, b"x")
    cache.store("good", entry)
    (folder / "strange.kernel").mkdir()
    with pytest.warns(UserWarning, match="could not be kept"):
        cache.store("strange", entry)
    assert [path.name for path in cache.clear()] == ["good.kernel"]
    assert [path.name for path in folder.iterdir()] == ["strange.kernel"]


def test_the_oldest_entries_make_room(folder, monkeypatch):
    entry = cache.CachedKernel("forward", 1, 1, 1, 0, 0, b"x" * 1000)
    monkeypatch.setattr(cache, "MAX_BYTES", int(3.5 * len(cache._encoded(entry))))
    for k in range(5):
        cache.store(f"kernel{k}", entry)
        os.utime(folder / f"kernel{k}.kernel", (k, k))
    cache.store("kernel5", entry)
    assert {p.stem for p in cache.entries()} == {"kernel3", "kernel4", "kernel5"}
    assert len(cache.clear()) == 3
    assert not cache.entries()


WRITER = """
import os, sys
from hybridsim.native.runtime import cache
entry = cache.CachedKernel("forward", 1, 1, 1, 0, 0, bytes(range(256)) * 20000)
print("ready", flush=True)
while True:
    cache.store("contended", entry)
"""


def test_killing_a_writer_leaves_no_wrong_entry(folder):
    expected = bytes(range(256)) * 20000
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.05)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        entry = cache.load("contended")
        assert entry is None or entry.code == expected
    assert len(cache.clear()) <= 1
    assert not list(Path(folder).iterdir())


def test_two_writers_at_once(folder):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE) for _ in range(2)]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    expected = bytes(range(256)) * 20000
    deadline = time.monotonic() + 0.5
    reads = 0
    while time.monotonic() < deadline:
        entry = cache.load("contended")
        if entry is not None:
            assert entry.code == expected
            reads += 1
    for writer in writers:
        writer.kill()
        writer.wait()
        assert writer.stdout is not None
        writer.stdout.close()
    assert reads

"""Kernel cache: reuse without tracing; robustness against damage, killed processes and other users."""

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
from support.native_pendulum import CARRY, FIXED, FREE, INPUTS, pendulum, random_batch


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    path = tmp_path / "kernels"
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(path))
    return path


def fail_if_traced(*_):
    raise AssertionError("the step was traced")


OUTPUTS = {"energy": np.array(0.0), "sine": np.zeros(2)}


def new_rollout(step=pendulum, key="the pendulum", **options):
    with jax.enable_x64(True):
        return Rollout(step, FIXED, FREE, CARRY, INPUTS, outputs=OUTPUTS, key=key, **options)


def test_cached_kernel_is_reused_without_tracing(folder):
    rollout = new_rollout()
    batch = random_batch(rollout, 3)
    expected = rollout.forward(*batch)
    (path,) = folder.glob("*.kernel")
    assert path.stat().st_mode & 0o077 == 0
    before = Rollout.compilations
    result = new_rollout(step=fail_if_traced).forward(*batch)
    assert Rollout.compilations == before
    for a, b in zip(result, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("trajectories", [1, 3])
def test_cached_forward_kernel_proves_support(trajectories):
    rollout = new_rollout()
    rollout.forward(*random_batch(rollout, trajectories))
    new_rollout(step=fail_if_traced).check_supported()


def test_key_depends_on_everything_that_determines_the_code():
    keys = set()
    changes = [{}, {"key": "another"}, {"target": machine.AVX2}, {"runtime_cells": [3]}]
    for change in changes:
        rollout = new_rollout(**change)
        keys |= {rollout._disk_key(name, single) for name in ("forward", "gradient") for single in (True, False)}
    assert len(keys) == 4 * len(changes)


def test_without_a_key_nothing_is_cached(folder):
    rollout = new_rollout(key=None)
    rollout.forward(*random_batch(rollout, 1))
    assert not folder.exists()


@pytest.mark.parametrize("damage", ["garbage", "half", "empty", "flipped", "other format"])
def test_damaged_file_is_recompiled(folder, damage):
    rollout = new_rollout()
    batch = random_batch(rollout, 1)
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
    result = new_rollout().forward(*batch)
    assert Rollout.compilations == before + 1
    np.testing.assert_array_equal(result.end, expected.end)
    assert path.read_bytes() == good


def test_folder_writable_by_other_users_is_not_used(folder):
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    rollout = new_rollout()
    with pytest.warns(UserWarning, match="other users may write"):
        rollout.forward(*random_batch(rollout, 1))
    assert not list(folder.iterdir())


def test_folder_below_one_that_others_can_replace_is_not_used(folder, monkeypatch):
    public = folder / "public"
    (public / "kernels").mkdir(parents=True, mode=0o700)
    public.chmod(0o777)
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(public / "kernels"))
    assert cache.unusable_reason() == f"other users may write to {public}"
    with pytest.warns(UserWarning, match="other users may write"):
        cache.store("a", cache.CompiledKernel("forward", 1, 1, 1, 0, 0, b"x"))
    assert not list((public / "kernels").iterdir())
    public.chmod(0o1777)  # with the sticky bit, as /tmp
    cache.store("a", cache.CompiledKernel("forward", 1, 1, 1, 0, 0, b"x"))
    assert cache.load("a") is not None


@pytest.mark.parametrize("how", ["writable by others", "symbolic link", "of another user"])
def test_a_file_that_others_may_have_written_is_not_linked(folder, monkeypatch, how):
    cache.store("a", cache.CompiledKernel("forward", 1, 1, 1, 0, 0, b"x"))
    path = folder / "a.kernel"
    if how == "writable by others":
        path.chmod(0o666)
    elif how == "symbolic link":
        path.rename(folder / "elsewhere")
        path.symlink_to(folder / "elsewhere")
    else:
        if os.getuid() != 0:
            pytest.skip("only root can give a file to another user")
        os.chown(path, 12345, 12345)
    assert cache.load("a") is None


def test_entries_that_were_exchanged_are_recompiled(folder):
    euler, other = new_rollout(), new_rollout(key="another")
    batch = random_batch(euler, 1)
    expected = euler.forward(*batch)
    other.forward(*batch)
    one, two = sorted(folder.glob("*.kernel"))
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)
    before = Rollout.compilations
    result = new_rollout().forward(*batch)
    assert Rollout.compilations == before + 1
    np.testing.assert_array_equal(result.end, expected.end)


def test_unwritable_folder_is_not_an_error(folder):
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file where the folder should be")
    rollout = new_rollout()
    rollout.forward(*random_batch(rollout, 1))
    assert cache.unusable_reason() == f"{folder} is not a folder"


def test_read_only_folder_is_read(monkeypatch):
    rollout = new_rollout()
    rollout.forward(*random_batch(rollout, 1))

    def fail(*_, **__):
        raise PermissionError("read-only file system")

    monkeypatch.setattr(os, "utime", fail)
    new_rollout(step=fail_if_traced).forward(*random_batch(rollout, 1))


def test_without_a_home_folder_nothing_is_cached(monkeypatch):
    monkeypatch.delenv(cache.FOLDER_VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def fail(_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", fail)
    assert cache.folder() is None and cache.unusable_reason() == "the user has no home folder"
    rollout = new_rollout()
    rollout.forward(*random_batch(rollout, 1))


def test_clear_keeps_files_that_are_not_entries(folder):
    entry = cache.CompiledKernel("forward", 1, 1, 1, 0, 0, b"x")
    cache.store("good", entry)
    (folder / "notes.tmp").write_text("mine")
    (folder / "strange.kernel").mkdir()
    with pytest.warns(UserWarning, match="cannot store a compiled kernel"):
        cache.store("strange", entry)
    assert [path.name for path in cache.clear()] == ["good.kernel"]
    assert sorted(path.name for path in folder.iterdir()) == ["notes.tmp", "strange.kernel"]


def test_least_recently_used_entries_are_evicted(folder, monkeypatch):
    entry = cache.CompiledKernel("forward", 1, 1, 1, 0, 0, b"x" * 1000)
    monkeypatch.setattr(cache, "MAX_BYTES", int(3.5 * len(cache._encode("kernel0", entry))))
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
entry = cache.CompiledKernel("forward", 1, 1, 1, 0, 0, bytes(range(256)) * 20000)
print("ready", flush=True)
while True:
    cache.store("contended", entry)
"""


def test_killed_writer_leaves_no_corrupt_entry(folder):
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


def test_concurrent_writers(folder):
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

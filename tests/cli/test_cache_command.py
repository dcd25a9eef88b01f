"""`hybridsim cache` on the command line."""

import json

import pytest

from hybridsim.cli.main import run
from hybridsim.native.runtime import cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "kernels"
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(place))
    return place


def test_info_and_clear(folder, capsys):
    for name in ("one", "two"):
        cache.store(name, cache.CompiledKernel("forward", 1, 1, 1, 0, 0, bytes(2**20)))
    assert run(["cache", "info"]) == 0
    assert capsys.readouterr().out == f"2 kernels, 2.0 MB of at most 500 MB, in {folder}\n"
    assert run(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 2 kernels (2.0 MB) from {folder}\n"
    cache.store("one", cache.CompiledKernel("forward", 1, 1, 1, 0, 0, bytes(2**20)))
    assert run(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 1 kernel (1.0 MB) from {folder}\n"
    assert run(["cache", "info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"folder": str(folder), "kernels": 0, "bytes": 0, "reason": ""}


def test_the_reason_for_a_disabled_cache_is_shown(folder, monkeypatch, capsys):
    folder.write_text("a file")
    assert run(["cache", "info"]) == 0
    assert capsys.readouterr().out == f"kernels are not cached: {folder} is not a folder\n"
    monkeypatch.setenv(cache.FOLDER_VARIABLE, "")
    assert run(["cache", "clear"]) == 0
    assert capsys.readouterr().out == "kernels are not cached: HYBRIDSIM_CACHE is empty\n"

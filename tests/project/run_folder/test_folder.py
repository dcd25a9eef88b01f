"""Run folders: one writer at a time, no deletion of foreign files, and a history that survives a kill."""

import json
import os
import signal
import subprocess
import sys
from unittest.mock import Mock

import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.project.run_folder.folder import RunFolder
from hybridsim.project.run_folder.history import History, Step
from hybridsim.project.run_folder.lock import folder_lock
from support.folder_errors import folder_error

MANIFEST = {"format": 6, "name": "arm"}
LOCK_HOLDER = """
import sys, time
from pathlib import Path
from hybridsim.project.run_folder.lock import folder_lock
with folder_lock(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


def holder(folder) -> subprocess.Popen:
    process = subprocess.Popen([sys.executable, "-c", LOCK_HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "locked\n"
    return process


def kill(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_second_process_is_refused_with_the_id_of_the_first(tmp_path):
    process = holder(tmp_path)
    with folder_error(f"process id {process.pid}.*--out"), folder_lock(tmp_path):
        pass
    kill(process)


def test_the_lock_of_a_killed_process_is_released(tmp_path):
    kill(holder(tmp_path))
    assert (tmp_path / "lock").exists()
    with folder_lock(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    with folder_lock(tmp_path):
        pass


def test_a_folder_that_is_not_writable_is_reported(tmp_path):
    (tmp_path / "file").touch()
    with folder_error(r"cannot write to .*--out"), folder_lock(tmp_path / "file"):
        pass


def test_an_existing_fit_is_neither_continued_nor_deleted_by_default(tmp_path):
    run_folder = RunFolder(tmp_path / "run")
    run_folder.make_folder()
    run_folder.check_mode("new")
    run_folder.begin(MANIFEST, "# project")
    with folder_error(r"\(unfinished\).*--resume.*--fresh"):
        run_folder.check_mode("new")
    run_folder.result_file.write_text("{}")
    with pytest.raises(HybridsimError, match=r"\(finished\)"):
        run_folder.check_mode("new")
    run_folder.check_mode("resume")
    run_folder.check_mode("fresh")


def test_a_folder_with_foreign_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with folder_error(r"thesis\.tex.*--out"):
        RunFolder(tmp_path).make_folder()
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(HybridsimError, match="cannot create the folder"):
        RunFolder(file).make_folder()


def test_a_fit_can_start_in_a_partially_created_run_folder(tmp_path):
    run_folder = RunFolder(tmp_path)
    (tmp_path / "lock").write_text("1")
    (tmp_path / ".manifest.json.0af.part").write_text("{")
    run_folder.make_folder()
    run_folder.remove_partial_files()
    run_folder.begin(MANIFEST, "# project")
    assert run_folder.manifest() == MANIFEST
    assert not list(tmp_path.glob(".*"))


def test_a_start_that_was_killed_is_completed(tmp_path, monkeypatch):
    run_folder, files = RunFolder(tmp_path), {"recordings/run.npz": b"columns"}
    run_folder.begin(MANIFEST, "# old")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(RunFolder, "write_specification", Mock(side_effect=KeyboardInterrupt))
        run_folder.begin(MANIFEST, "# project", files)
    run_folder.make_folder()
    run_folder.write_specification("# project", files)
    assert run_folder.project_file.read_text() == "# project"
    assert (tmp_path / "recordings/run.npz").read_bytes() == b"columns"


@pytest.mark.parametrize("name", ["project.toml", "result.json", "recordings/run.npz", "plots/mine.png"])
def test_files_of_a_folder_without_a_fit_are_the_users(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with folder_error("contains no fit, but other files"):
        RunFolder(tmp_path).make_folder()


def test_starting_over_deletes_only_files_of_run_folders(tmp_path):
    run_folder = RunFolder(tmp_path)
    run_folder.begin(MANIFEST, "# old")
    run_folder.plots.mkdir()
    for name in (
        "checkpoint-000001.safetensors",
        "history.jsonl",
        "result.json",
        "plots/progress.png",
        "identified.urdf",
    ):
        (tmp_path / name).write_text("old")
    (tmp_path / "notes.txt").write_text("mine")
    run_folder.begin(MANIFEST, "# new")
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert left == ["manifest.json", "notes.txt", "project.toml"]
    assert run_folder.project_file.read_text() == "# new"


def test_invalid_run_folders_are_refused(tmp_path):
    run_folder = RunFolder(tmp_path)
    with pytest.raises(HybridsimError, match=r"is not a run folder: it has no manifest\.json"):
        run_folder.manifest()
    with pytest.raises(HybridsimError, match=r"is not a run folder: it has no manifest\.json"):
        run_folder.result()
    run_folder.manifest_file.write_text("{ torn")
    with folder_error("has no result: complete the fit"):
        run_folder.result()
    with folder_error("cannot read"):
        run_folder.manifest()
    for version in (1, 2, 99):
        run_folder.manifest_file.write_text(json.dumps({"format": version}))
        with folder_error(r"does not have format 6.*use the version that wrote it"):
            run_folder.manifest()


def test_a_truncated_last_line_of_the_history_is_ignored(tmp_path):
    history = History(tmp_path / "history.jsonl")
    for step in range(1, 4):
        history.append(Step(0, step, cost=1.0 / step, normalized_cost=2.0))
    with history.path.open("a") as file:
        file.write('{"stage": 0, "step": 4, "co')
    assert [step.step for step in history.read()] == [1, 2, 3]
    # the next step starts a new line
    history.truncate(Step(0, 3, cost=1.0 / 3))
    history.append(Step(0, 4, cost=float("inf")))
    assert [(step.step, step.cost) for step in history.read()][-1] == (4, None)


def test_the_history_is_truncated_to_the_step_from_which_the_fit_resumes(tmp_path):
    history = History(tmp_path / "history.jsonl")
    for stage, step in ((0, 1), (0, 2), (1, 1), (1, 2), (1, 3)):
        history.append(Step(stage, step, cost=1.0))
    history.truncate(Step(1, 2, cost=1.0))
    assert [(step.stage, step.step) for step in history.read()] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    # killed between the checkpoint and its line
    history.truncate(Step(1, 3, cost=0.5))
    assert history.read()[-1] == Step(1, 3, cost=0.5)


def test_a_history_on_a_full_disk_raises_an_error():
    if not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("there is no /dev/full here")
    from pathlib import Path

    with pytest.raises(HybridsimError, match=r"/dev/full.*No space left.*--resume"):
        History(Path("/dev/full")).append(Step(0, 1, cost=1.0))


@pytest.mark.parametrize("name", ["plots", "result.json", "recordings", "lock", "history.jsonl"])
def test_symbolic_links_are_not_followed(tmp_path, name):
    run_folder, elsewhere = RunFolder(tmp_path / "run"), tmp_path / "elsewhere"
    run_folder.make_folder()
    run_folder.begin(MANIFEST, "# project")
    elsewhere.mkdir()
    (run_folder.path / name).symlink_to(elsewhere)
    with folder_error(f"{name} is a symbolic link, which run folders do not follow"):
        run_folder.make_folder()
    assert not list(elsewhere.iterdir())

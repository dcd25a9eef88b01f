"""What is read back from a run folder is bound by hashes: changed, exchanged and foreign files are refused."""

import json
import random
import shutil
from contextlib import suppress

import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.project.fit_run import run_fit
from hybridsim.project.run_folder.folder import RunFolder
from hybridsim.project.run_folder.write import is_intact, seal
from support.fit_tasks import StopAfter, arm_task
from support.folder_errors import folder_error


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    path = tmp_path_factory.mktemp("complete")
    task = arm_task(path, held_out=0)
    run_folder = RunFolder(path / "run")
    run_fit(task, run_folder)
    return task, run_folder


def edit(file, change) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


CHANGES = {
    "another value": lambda content: content["theta"].__setitem__(0, content["theta"][0] + 1e-12),
    "null": lambda content: content["theta"].__setitem__(0, None),
    "huge": lambda content: content["theta"].__setitem__(0, 1e300),
    "a missing key": lambda content: content.pop("message"),
    "another key": lambda content: content.update(note="mine"),
    "no hash": lambda content: content.pop("sha256"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_result_is_refused(complete, tmp_path, change):
    _, run_folder = complete
    copy = RunFolder(shutil.copytree(run_folder.path, tmp_path / "run"))
    edit(copy.result_file, CHANGES[change])
    with folder_error(r"result\.json is damaged: its content does not match its hash"):
        copy.result()


@pytest.mark.parametrize("name", ["result.json", "manifest.json"])
def test_single_flipped_bits_are_noticed(complete, tmp_path, name):
    _, run_folder = complete
    copy = RunFolder(shutil.copytree(run_folder.path, tmp_path / "run"))
    file = copy.path / name
    original, values = file.read_bytes(), (copy.result(), copy.manifest())
    rng = random.Random(0)
    for _ in range(200):
        content = bytearray(original)
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        file.write_bytes(bytes(content))
        with suppress(HybridsimError):
            # white space between keys may change
            assert (copy.result(), copy.manifest()) == values


def test_the_result_and_the_checkpoint_of_another_fit_are_refused(complete, tmp_path):
    _, run_folder = complete
    other, other_folder = arm_task(tmp_path, held_out=2), RunFolder(tmp_path / "run")
    run_fit(other, other_folder, stop=StopAfter(2))
    for checkpoint in other_folder.path.glob("checkpoint-*"):
        checkpoint.unlink()
    newest = max(run_folder.path.glob("checkpoint-*"))
    shutil.copy(newest, other_folder.path)
    with folder_error("is damaged: it belongs to another fit"):
        run_fit(other, other_folder, mode="resume")
    shutil.copy(run_folder.result_file, other_folder.result_file)
    with folder_error(r"is the result of another fit than .*manifest\.json"):
        other_folder.result()


def test_damaged_lines_of_the_history_are_ignored(complete, tmp_path):
    _, run_folder = complete
    copy = RunFolder(shutil.copytree(run_folder.path, tmp_path / "run"))
    lines = copy.history_file.read_text().splitlines()
    lines[1] = lines[1].replace('"step": 2', '"step": 7')
    copy.history_file.write_text("\n".join([*lines, "null", "[]", '{"stage": 0}']))
    assert copy.history() == [step for k, step in enumerate(run_folder.history()) if k != 1]


def test_a_seal_does_not_depend_on_order_and_notices_every_change():
    content = {"a": [1.0, None, float("inf")], "b": {"c": "ä"}}
    sealed = seal(content)
    assert is_intact(json.loads(json.dumps(dict(reversed(sealed.items()))))) and seal(sealed) == sealed
    for change in ({"a": [1.0, None, 0.0]}, {"b": {"c": "a"}}, {"d": 1}, {"sha256": ""}):
        assert not is_intact(sealed | change)

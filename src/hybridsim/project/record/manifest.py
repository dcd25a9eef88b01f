"""The manifest of a run: what it was made of, so that anybody can tell later whether that is still the same."""

import hashlib
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import llvmlite.binding as llvm
import numpy as np

import hybridsim
from hybridsim.data.recording import Recording
from hybridsim.project.build.task import Task

FORMAT = 1
"""Version of the run record's format."""
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "llvmlite", "safetensors")


def manifest(task: Task, command: Sequence[str]) -> dict[str, Any]:
    """What a run is made of.

    Args:
        task: the fit.
        command: that started it.
    """
    return {
        "format": FORMAT,
        "name": task.name,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": list(command),
        "seed": task.seed,
        "project": {"file": str(task.project_file.absolute()), "sha256": _of_bytes(task.project_text.encode())},
        "model": {"name": task.model, "file": str(task.model_file.absolute()), "sha256": _of_file(task.model_file)}
        if task.model_file
        else {"name": task.model, "file": None, "sha256": None},
        "data": [{"file": file, "sha256": sha} for file, sha in _sources(task)],
        "runs": {
            "training": [run.name for run in task.problem.train],
            "held_out": [run.name for run in task.problem.held_out],
        },
        "numbers_sha256": _of_numbers(task),
        "versions": {
            "hybridsim": hybridsim.__version__,
            "python": platform.python_version(),
            **{library: version(library) for library in LIBRARIES},
        },
        "machine": {
            "cpu": llvm.get_host_cpu_name(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "byte_order": sys.byteorder,
        },
    }


def changed(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What the fit depends on and is no longer what it was, in words."""
    found = []
    if before["project"]["sha256"] != now["project"]["sha256"]:
        found.append(f"the project {now['project']['file']}")
    if before["model"]["sha256"] != now["model"]["sha256"] or before["model"]["name"] != now["model"]["name"]:
        found.append(f"the model {now['model']['file'] or now['model']['name']}")
    then = {entry["sha256"]: entry["file"] for entry in before["data"]}
    here = {entry["sha256"]: entry["file"] for entry in now["data"]}
    # by their content: files may have moved together with the project
    added = [file for sha, file in here.items() if sha not in then]
    gone = [file for sha, file in then.items() if sha not in here]
    found += [f"the data {file}" if file in gone else f"the data {file}, which is new" for file in added]
    found += [f"the data {file}, which is no longer used" for file in gone if file not in added]
    if not found and before["numbers_sha256"] != now["numbers_sha256"]:
        found.append("a file that the model includes, or how a new version reads model and data")
    return found


def other_versions(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Libraries and machine that are not those of the run, for which the same bits are not promised."""
    found = [
        f"{name} {before['versions'][name]} then, {here} now"
        for name, here in now["versions"].items()
        if before["versions"].get(name, here) != here
    ]
    if before["machine"]["cpu"] != now["machine"]["cpu"]:
        found.append(f"a {before['machine']['cpu']} processor then, {now['machine']['cpu']} now")
    return found


def _sources(task: Task) -> list[tuple[str, str]]:
    runs = (*task.problem.train, *task.problem.held_out)
    return list(dict.fromkeys((file, sha) for run in runs for file, sha in run.sources))


def _of_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _of_file(path: Path) -> str:
    return _of_bytes(path.read_bytes())


def _of_numbers(task: Task) -> str:
    """Of every number that the fit starts from: those of the model, of the data, and what is free."""
    problem, space = task.problem, task.problem.space
    digest = hashlib.sha256()
    leaves = jax.tree_util.tree_flatten_with_path(problem.setup)[0]
    named = [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves if hasattr(leaf, "dtype")]
    limits = zip(("start", "lower", "upper"), (space.initial, space.lower, space.upper), strict=True)
    noise = ((f"noise of {name}", value) for name, value in problem.measured.noise.items())
    for name, values in (*named, *limits, *noise, *_series((*problem.train, *problem.held_out))):
        array = np.array(values, order="C")
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    digest.update("\n".join((*problem.layout().names, *map(repr, task.stages))).encode())
    return digest.hexdigest()


def _series(runs: Iterable[Recording]) -> Iterator[tuple[str, np.ndarray]]:
    for run in runs:
        for name, series in run.series.items():
            yield f"times of {name} in {run.name}", series.t
            yield f"values of {name} in {run.name}", series.values


def _processor() -> str:
    """What the maker calls it."""
    told = Path("/proc/cpuinfo")
    if told.exists():
        for line in told.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()

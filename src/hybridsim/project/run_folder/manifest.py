"""Manifest of a fit: provenance of its inputs, versions and machine, to detect changes later."""

import hashlib
import json
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
from hybridsim.data.run import Run
from hybridsim.identify.task import Task
from hybridsim.project.run_folder.code_identity import CodeIdentity
from hybridsim.sim.cache_key import UnidentifiedError

FORMAT = 6
"""Version of the format of run folders."""
MECHANISM = "values of the mechanism, as read from the files that its file includes, or of an initial network"
RUNS = "values of the recordings, as this version and the channels convert them"
SPECIFICATION = "free parameters, noise, stages, or the names of runs"
CODE = "functions or classes of the experiment, or settings of its simulator"
"""Parts of a fit that are compared by their values, as phrases."""
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "llvmlite", "safetensors")


def manifest(task: Task, command: Sequence[str]) -> dict[str, Any]:
    """Manifest of a fit.

    Args:
        task: fit problem, stages and their origin.
        command: command line.
    """
    code, unidentified = _code(task)
    return {
        "format": FORMAT,
        "name": task.name,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": list(command),
        "seed": task.seed,
        "project": {
            "file": None if task.project_file is None else str(task.project_file),
            "reason": task.unrecorded,
            "sha256": _bytes_hash(task.project_text.encode()),
        },
        "model": {
            "name": task.experiment.model.name,
            "file": None if task.model_file is None else str(task.model_file),
            "sha256": None if task.model_file is None else _file_hash(task.model_file),
        },
        "data": [{"file": file, "sha256": sha} for file, sha in _sources(task)],
        "runs": {
            "training": [run.name for run in task.problem.train],
            "held_out": [run.name for run in task.problem.held_out],
        },
        "values_sha256": _values(task, code),
        "unidentified": unidentified,
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


def fit_id(manifest: dict[str, Any]) -> str:
    """Hash that identifies a fit: equal for fits with equal inputs."""
    data = sorted(entry["sha256"] for entry in manifest["data"])
    inputs = [manifest["project"]["sha256"], manifest["model"]["sha256"], data, manifest["values_sha256"]]
    return _bytes_hash(json.dumps([manifest["name"], manifest["seed"], inputs], sort_keys=True).encode())


def input_changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Inputs of the fit that have changed, as phrases."""
    changes = []
    if before["project"]["sha256"] != now["project"]["sha256"]:
        changes.append(f"the project {now['project']['file']}")
    if before["model"]["sha256"] != now["model"]["sha256"] or before["model"]["name"] != now["model"]["name"]:
        changes.append(f"the model {now['model']['file'] or now['model']['name']}")
    old_files = {entry["sha256"]: entry["file"] for entry in before["data"]}
    new_files = {entry["sha256"]: entry["file"] for entry in now["data"]}
    # compared by content: files may have been moved together with the project
    added = [file for sha, file in new_files.items() if sha not in old_files]
    removed = [file for sha, file in old_files.items() if sha not in new_files]
    changes += [f"the data {file}" if file in removed else f"the data {file}, which is new" for file in added]
    changes += [f"the data {file}, which is no longer used" for file in removed if file not in added]
    if not changes:
        values = now["values_sha256"]
        changes += [part for part, sha in values.items() if before["values_sha256"].get(part) != sha]
    if now["unidentified"]:
        changes.append(f"{now['unidentified']}, which cannot be compared with that of another program")
    return changes


def version_changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Changes of libraries and machine, after which bitwise reproducibility is not guaranteed."""
    changes = [
        f"{name} {before['versions'][name]} before, {current} now"
        for name, current in now["versions"].items()
        if before["versions"].get(name, current) != current
    ]
    if before["machine"]["cpu"] != now["machine"]["cpu"]:
        changes.append(f"processor {before['machine']['cpu']} before, {now['machine']['cpu']} now")
    return changes


def _sources(task: Task) -> list[tuple[str, str]]:
    runs = (*task.problem.train, *task.problem.held_out)
    return list(dict.fromkeys((file, sha) for run in runs for file, sha in run.sources))


def _bytes_hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _file_hash(path: Path) -> str:
    return _bytes_hash(path.read_bytes())


def _values(task: Task, code: Sequence[str]) -> dict[str, str]:
    """SHA-256 of the parts of the fit that were read from files or given in Python."""
    problem, space = task.problem, task.problem.space
    leaves = jax.tree_util.tree_flatten_with_path(problem.setup)[0]
    mechanism = [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves if hasattr(leaf, "dtype")]
    names = ("initial", "lower", "upper", "prior_mean", "prior_std", "l1", "l2")
    parameters = [(name, getattr(space, name)) for name in names]
    noise = [(f"noise of {name}", value) for name, value in problem.channel_roles.noise.items()]
    runs = [f"{kind} {run.name}" for kind in ("train", "held_out") for run in getattr(problem, kind)]
    specification = (*problem.layout().names, *map(repr, task.stages), *map(repr, task.free), *runs)
    return {
        MECHANISM: _hash(mechanism),
        RUNS: _hash(_series((*problem.train, *problem.held_out))),
        SPECIFICATION: _hash((*parameters, *noise), specification),
        CODE: _hash((), code),
    }


def _hash(arrays: Iterable[tuple[str, Any]], lines: Iterable[str] = ()) -> str:
    digest = hashlib.sha256()
    for name, values in arrays:
        array = np.array(values, order="C")
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    digest.update("\n".join(lines).encode())
    return digest.hexdigest()


def _code(task: Task) -> tuple[list[str], str]:
    """Lines that identify what is no array in simulator and sensors, or else what cannot be identified."""
    leaves, structure = jax.tree.flatten(task.problem.setup)
    try:
        return CodeIdentity().lines(structure, [leaf for leaf in leaves if not hasattr(leaf, "dtype")]), ""
    except UnidentifiedError as error:
        return [], str(error)


def _series(runs: Iterable[Run]) -> Iterator[tuple[str, np.ndarray]]:
    for run in runs:
        for name, series in run.series.items():
            yield f"times of {name} in {run.name}", series.t
            yield f"values of {name} in {run.name}", series.values


def _processor() -> str:
    """Marketing name of the processor."""
    cpu_info = Path("/proc/cpuinfo")
    if cpu_info.exists():
        for line in cpu_info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()

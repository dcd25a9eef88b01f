"""Manifest of a fit: provenance of its inputs, versions and machine, to detect changes later."""

import hashlib
import inspect
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
from hybridsim.sim.cache_key import cache_key

FORMAT = 5
"""Version of the format of run folders."""
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "llvmlite", "safetensors")


def manifest(task: Task, command: Sequence[str]) -> dict[str, Any]:
    """Manifest of a fit.

    Args:
        task: fit problem, stages and their origin.
        command: command line.
    """
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
        "values_sha256": _values_hash(task),
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
    if not changes and before["values_sha256"] != now["values_sha256"]:
        changes.append("a file that the model includes, or the interpretation of model and data by a new version")
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


def _values_hash(task: Task) -> str:
    """SHA-256 of all inputs of the fit: values of the model, of the data, and the parameter space."""
    problem, space = task.problem, task.problem.space
    digest = hashlib.sha256()
    leaves = jax.tree_util.tree_flatten_with_path(problem.setup)[0]
    named = [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves if hasattr(leaf, "dtype")]
    limits = zip(("initial", "lower", "upper"), (space.initial, space.lower, space.upper), strict=True)
    noise = ((f"noise of {name}", value) for name, value in problem.channel_roles.noise.items())
    for name, values in (*named, *limits, *noise, *_series((*problem.train, *problem.held_out))):
        array = np.array(values, order="C")
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    runs = [f"{kind} {run.name}" for kind in ("train", "held_out") for run in getattr(problem, kind)]
    lines = (*problem.layout().names, *map(repr, task.stages), *map(repr, task.free), *runs, *_structure(task))
    digest.update("\n".join(lines).encode())
    return digest.hexdigest()


def _structure(task: Task) -> Iterator[str]:
    """Everything of the simulator and the sensors that is not an array: names, integrator, networks, functions."""
    leaves, structure = jax.tree.flatten(task.problem.setup)
    key = cache_key(structure, [leaf for leaf in leaves if not hasattr(leaf, "dtype")])
    if key is not None:
        # without the versions in its first line
        yield key.partition("\n")[2]
        return
    experiment, sim = task.experiment, task.problem.setup.sim
    yield f"{experiment.integrator} {experiment.floor} {sim.axis_names} {task.problem.setup.sensors.terms}"
    grafts = ((graft.outputs, graft.inputs, graft.mode, graft.per) for graft in sim.blueprint.grafts)
    yield from map(repr, grafts)
    functions = [channel.measures for channel in experiment.channels if callable(channel.measures)]
    parts = [sim.contact, *sim.actuation.stages, *(graft.net for graft in sim.blueprint.grafts)]
    yield from (_source(code) for code in (*functions, *map(type, parts)))


def _source(code: Any) -> str:
    """Source text of a function or class of the user's; its name if there is none."""
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):
        compiled = getattr(code, "__code__", None)
        instructions = b"" if compiled is None else compiled.co_code + repr(compiled.co_consts).encode()
        return f"{code.__module__}.{code.__qualname__} {_bytes_hash(instructions)}"


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

"""Blueprint files: grafts in TOML, weights next to them in safetensors, without code.

format = 1
weights = "friction.safetensors"    # optional; by default initial weights

[inputs]                            # user inputs and their sizes
wind = 2

[[graft]]
outputs = "joint.tau"
inputs = ["joint.q", "joint.qd"]
[graft.network]
kind = "dissipative"
"""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import equinox as eqx
import jax
import numpy as np
import safetensors.numpy
from pydantic import Field
from safetensors import SafetensorError, safe_open

from hybridsim.core.errors import HybridsimError, Problem
from hybridsim.core.messages import name_list
from hybridsim.core.specification import Count, StrictTable, TableOf
from hybridsim.identify.assembly import make_grafts
from hybridsim.model.model import Model
from hybridsim.networks.prune import input_addresses
from hybridsim.project.build.networks import SeededGraft, table_settings
from hybridsim.project.build.relocate import locate
from hybridsim.project.run_folder.write import write_file
from hybridsim.project.schema.grafts import graft_entry
from hybridsim.project.schema.load import read_toml
from hybridsim.project.schema.project_error import ProjectError
from hybridsim.project.schema.toml_text import quote, toml_value
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft

FORMAT = 1
"""Version of the format."""


class BlueprintContent(StrictTable):
    """Content of a blueprint file."""

    format: Literal[1]
    """Version of the format."""
    weights: str = ""
    """File with the weights, next to this one; without it, networks have their initial weights."""
    inputs: dict[str, Count] = Field(default_factory=dict)
    """User inputs of networks and their sizes."""
    graft: tuple[Annotated[Any, TableOf(graft_entry)], ...]
    """Networks that read quantities of the simulation and modify others."""


def load_blueprint(path: str | Path, model: Simulator | Model, *, seed: int = 0) -> Blueprint:
    """Load a blueprint for a simulator or a model.

    Args:
        path: TOML file.
        model: model whose names the blueprint uses; a simulator if it refers to contacts.
        seed: random seed of the initial weights, if the file has no weights.

    Raises:
        ProjectError: the file is invalid; carries all problems with their lines.
        HybridsimError: the weights do not match the networks.
    """
    sim = model if isinstance(model, Simulator) else Simulator(model)
    _, locator, content = read_toml(Path(path), BlueprintContent)
    problems: list[Problem] = []
    entries = [SeededGraft(entry, seed + index) for index, entry in enumerate(content.graft)]
    grafts = make_grafts(entries, dict(sim.axis_names), content.inputs, problems)
    for index, entry in enumerate(content.graft):
        if entry.normalize and not content.weights:
            message = "needs recordings, which a blueprint lacks"
            problems.append(
                Problem(message, "specify scales", code="project.graft", path=("graft", index, "normalize"))
            )
    if problems:
        raise ProjectError([locate(problem, locator) for problem in problems])
    blueprint = Blueprint(*grafts, inputs=content.inputs)
    return _with_weights(blueprint, Path(path).parent / content.weights, sim) if content.weights else blueprint


def blueprint_files(path: str | Path) -> list[Path]:
    """Files of a blueprint: the TOML file and its weights, if any."""
    weights = read_toml(Path(path), BlueprintContent)[2].weights
    return [Path(path), *([Path(path).parent / weights] if weights else [])]


def save_blueprint(blueprint: Blueprint, path: str | Path, model: Simulator | Model) -> None:
    """Save a blueprint, with its weights next to it in a file of the same name.

    Args:
        blueprint: blueprint with network kinds of hybridsim only.
        path: TOML file.
        model: model or simulator that it is for.

    Raises:
        HybridsimError: a network is user-defined and cannot be saved without code.
    """
    for name, content in blueprint_content(blueprint, Path(path).name, model).items():
        write_file(Path(path).with_name(name), content)


def blueprint_content(blueprint: Blueprint, name: str, model: Simulator | Model) -> dict[str, bytes]:
    """Contents of the files of a blueprint by name: the weights, then the TOML file, which refers to them.

    Args:
        blueprint: blueprint with network kinds of hybridsim only.
        name: name of the TOML file.
        model: model or simulator that it is for.

    Raises:
        HybridsimError: a network is user-defined and cannot be saved without code.
    """
    sim = model if isinstance(model, Simulator) else Simulator(model)
    weights = Path(name).with_suffix(".safetensors").name
    lines = [f"format = {FORMAT}", f"weights = {quote(weights)}", f"# made for the model {sim.model.name!r}"]
    if blueprint.inputs:
        lines += ["", "[inputs]", *(f"{quote(name)} = {size}" for name, size in blueprint.inputs)]
    for graft in blueprint.grafts:
        lines += ["", *graft_lines(graft)]
    bound = blueprint.bind(dict(sim.axis_names)).grafts
    inputs = json.dumps([input_addresses(graft) for graft in bound])
    metadata = {"format": str(FORMAT), "model": sim.model.name, "inputs": inputs}
    arrays = safetensors.numpy.save(arrays_of(blueprint.grafts), metadata)
    return {weights: arrays, name: ("\n".join(lines) + "\n").encode()}


def graft_lines(graft: Graft) -> list[str]:
    """A graft as TOML.

    Raises:
        HybridsimError: its network is user-defined.
    """
    settings = table_settings(graft.net)
    if settings is None:
        raise HybridsimError(
            f"the network on {name_list(graft.outputs)} is a {type(graft.net).__name__}, which is not among the kinds "
            "that a file supports; use it from Python"
        )
    lines = ["[[graft]]", f"outputs = {toml_value(graft.outputs)}", f"inputs = {toml_value(graft.inputs)}"]
    lines += [f"{key} = {quote(value)}" for key, value in (("mode", graft.mode), ("per", graft.per))]
    lines += ["", "[graft.network]"]
    return lines + [f"{name} = {toml_value(value)}" for name, value in settings.items()]


def arrays_of(grafts: tuple[Graft, ...]) -> dict[str, np.ndarray]:
    """Arrays of networks by name."""
    return {
        f"graft[{k}]{jax.tree_util.keystr(path)}": np.array(leaf, order="C")
        for k, graft in enumerate(grafts)
        for path, leaf in jax.tree_util.tree_flatten_with_path(graft.net)[0]
        if hasattr(leaf, "dtype")
    }


def _with_weights(blueprint: Blueprint, file: Path, sim: Simulator) -> Blueprint:
    try:
        with safe_open(file, framework="numpy") as opened:
            metadata = opened.metadata() or {}
            stored = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - no mapping
    except FileNotFoundError:
        raise HybridsimError(f"{file}: the file does not exist; the weights must be next to the blueprint") from None
    except (SafetensorError, OSError) as error:
        raise HybridsimError(f"{file}: not a weights file ({error})") from None
    if metadata.get("format", str(FORMAT)) != str(FORMAT):
        raise HybridsimError(f"{file}: unsupported format {metadata['format']}; this version reads format {FORMAT}")
    expected = arrays_of(blueprint.grafts)
    reason = _mismatch_reason(blueprint, metadata, sim)
    if mismatches := _mismatches(expected, stored):
        raise HybridsimError(f"{file}: {'; '.join(mismatches)}. {reason or _origin(metadata, sim)}".rstrip(". "))
    if reason:
        raise HybridsimError(f"{file}: the weights belong to networks with different inputs. {reason}")
    for k, graft in enumerate(blueprint.grafts):
        flat, structure = jax.tree_util.tree_flatten_with_path(graft.net)
        leaves = [
            stored[f"graft[{k}]{jax.tree_util.keystr(path)}"] if hasattr(leaf, "dtype") else leaf for path, leaf in flat
        ]
        net = jax.tree.unflatten(structure, leaves)
        blueprint = eqx.tree_at(lambda b, k=k: b.grafts[k].net, blueprint, net)
    return blueprint


def _mismatches(expected: dict[str, np.ndarray], stored: dict[str, np.ndarray]) -> list[str]:
    messages = []
    for name, array in expected.items():
        if name not in stored:
            messages.append(f"{name} is missing")
        elif stored[name].shape != array.shape:
            shapes = ("×".join(map(str, shape)) or "scalar" for shape in (stored[name].shape, array.shape))
            messages.append("{} has the shape {}, not {}".format(name, *shapes))
        elif stored[name].dtype.kind != "f" or not np.isfinite(stored[name]).all():
            messages.append(f"{name} is not an array of finite floating-point values")
    return messages + [f"{name} belongs to no network of the blueprint" for name in stored if name not in expected]


def _mismatch_reason(blueprint: Blueprint, metadata: dict[str, str], sim: Simulator) -> str:
    """Differences between the inputs for which the weights were saved and the present ones; empty if there are none."""
    try:
        saved_inputs = json.loads(metadata.get("inputs", "[]"))
    except json.JSONDecodeError:
        return ""
    messages = []
    for k, graft in enumerate(blueprint.bind(dict(sim.axis_names)).grafts[: len(saved_inputs)]):
        inputs, saved = input_addresses(graft), saved_inputs[k]
        removed, added = [x for x in saved if x not in inputs], [x for x in inputs if x not in saved]
        messages += [f"network {k} no longer reads {name_list(removed)}"] if removed else []
        messages += [f"network {k} now also reads {name_list(added)}"] if added else []
        if not removed and not added and inputs != saved:
            messages.append(f"network {k} read the same inputs in a different order: {name_list(saved)}")
    return "; ".join([_origin(metadata, sim), *messages]) if messages else ""


def _origin(metadata: dict[str, str], sim: Simulator) -> str:
    model = metadata.get("model", "")
    return f"The weights were saved for the model {model!r}; this is {sim.model.name!r}" if model else ""

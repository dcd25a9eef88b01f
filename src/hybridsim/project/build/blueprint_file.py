"""Blueprints as files: grafts in TOML, weights beside them in safetensors, and no code in either.

format = 1
weights = "friction.safetensors"    # left out: networks as they are before a fit

[inputs]                            # user inputs and how many numbers each has
wind = 2

[[graft]]
outputs = "joint.tau"
inputs = ["joint.q", "joint.qd"]
[graft.network]
kind = "dissipative"
"""

import json
from pathlib import Path
from typing import Literal

import equinox as eqx
import jax
import numpy as np
import safetensors.numpy
from pydantic import Field
from safetensors import SafetensorError, safe_open

from hybridsim.core.errors import HybridsimError, Problem
from hybridsim.core.messages import name_list
from hybridsim.model.model import Model
from hybridsim.networks.prune import input_addresses
from hybridsim.project.build.fit import grafts_of
from hybridsim.project.build.networks import scales_from_data, table_of
from hybridsim.project.record.write import write_file
from hybridsim.project.schema.fit import GraftTable
from hybridsim.project.schema.load import read_toml
from hybridsim.project.schema.project_error import ProjectError
from hybridsim.project.schema.section import Count, Section
from hybridsim.project.schema.toml_lines import quoted
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft

FORMAT = 1
"""Version of the format."""


class BlueprintContent(Section):
    """The content of a blueprint's file."""

    format: Literal[1]
    """Version of the format."""
    weights: str = ""
    """File with the weights, beside this one; without it, networks are as before a fit."""
    inputs: dict[str, Count] = Field(default_factory=dict)
    """User inputs that networks may read, and how many numbers each has."""
    graft: tuple[GraftTable, ...]
    """Networks between quantities of the simulation."""


def load_blueprint(path: str | Path, of: Simulator | Model, *, seed: int = 0) -> Blueprint:
    """Load a blueprint for a simulator or a model.

    Args:
        path: the TOML file.
        of: whose names it uses; a simulator where contacts are among them.
        seed: of the first weights, where the file has no others.

    Raises:
        ProjectError: the file cannot be used, with every problem and its line.
        HybridsimError: its weights are not those of such networks.
    """
    sim = of if isinstance(of, Simulator) else Simulator(of)
    _, place, content = read_toml(Path(path), BlueprintContent)
    found: list[Problem] = []
    grafts = grafts_of(content.graft, content.inputs, dict(sim.axis_names), seed, place, found)
    for number, entry in enumerate(content.graft):
        for key in [] if content.weights else scales_from_data(entry.network):
            message = f'{place.section(("graft", number))}: {key} = "data" needs recordings, which a blueprint has not'
            found.append(place.problem(("graft", number, "network"), message, "give numbers", "project.graft"))
    if found:
        raise ProjectError(found)
    blueprint = Blueprint(*grafts, inputs=content.inputs)
    return _with_weights(blueprint, Path(path).parent / content.weights, sim) if content.weights else blueprint


def blueprint_files(path: str | Path) -> list[Path]:
    """The files that a blueprint is made of: itself, and its weights if it has any."""
    weights = read_toml(Path(path), BlueprintContent)[2].weights
    return [Path(path), *([Path(path).parent / weights] if weights else [])]


def save_blueprint(blueprint: Blueprint, path: str | Path, of: Simulator | Model) -> None:
    """Save a blueprint with its weights, which lie beside it in a file of the same name.

    Args:
        blueprint: of networks that hybridsim has.
        path: the TOML file.
        of: what it is for.

    Raises:
        HybridsimError: a network is the user's own, which no file can hold without code.
    """
    sim = of if isinstance(of, Simulator) else Simulator(of)
    weights = Path(path).with_suffix(".safetensors")
    lines = [f"format = {FORMAT}", f"weights = {quoted(weights.name)}", f"# made for the model {sim.model.name!r}"]
    if blueprint.inputs:
        lines += ["", "[inputs]", *(f"{quoted(name)} = {size}" for name, size in blueprint.inputs)]
    for graft in blueprint.grafts:
        lines += ["", *graft_lines(graft)]
    bound = blueprint.bind(dict(sim.axis_names)).grafts
    about = {"format": str(FORMAT), "model": sim.model.name, "inputs": json.dumps([input_addresses(g) for g in bound])}
    write_file(weights, safetensors.numpy.save(arrays_of(blueprint.grafts), about))
    write_file(Path(path), "\n".join(lines) + "\n")


def graft_lines(graft: Graft) -> list[str]:
    """A graft as TOML.

    Raises:
        HybridsimError: its network is the user's own.
    """
    table = table_of(graft.net)
    if table is None:
        raise HybridsimError(
            f"the network on {name_list(graft.outputs)} is a {type(graft.net).__name__}, no kind of network that a "
            "file can name; keep it in Python"
        )
    lines = ["[[graft]]", f"outputs = {_written(graft.outputs)}", f"inputs = {_written(graft.inputs)}"]
    lines += [f"{key} = {quoted(value)}" for key, value in (("mode", graft.mode), ("per", graft.per))]
    lines += ["", "[graft.network]"]
    told = {name: getattr(table, name) for name in type(table).model_fields if name in table.model_fields_set}
    return lines + [f"{name} = {_written(value)}" for name, value in told.items()]


def arrays_of(grafts: tuple[Graft, ...]) -> dict[str, np.ndarray]:
    """All numbers of networks by their names."""
    return {
        f"graft[{k}]{jax.tree_util.keystr(path)}": np.array(leaf, order="C")
        for k, graft in enumerate(grafts)
        for path, leaf in jax.tree_util.tree_flatten_with_path(graft.net)[0]
        if hasattr(leaf, "dtype")
    }


def _with_weights(blueprint: Blueprint, file: Path, sim: Simulator) -> Blueprint:
    try:
        with safe_open(file, framework="numpy") as opened:
            about = opened.metadata() or {}
            given = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - no mapping
    except FileNotFoundError:
        raise HybridsimError(f"{file}: there is no such file; the weights of a blueprint lie beside it") from None
    except (SafetensorError, OSError) as error:
        raise HybridsimError(f"{file}: not a file of weights ({error})") from None
    if about.get("format", str(FORMAT)) != str(FORMAT):
        raise HybridsimError(f"{file}: format {about['format']} is of another version; this one reads {FORMAT}")
    wanted = arrays_of(blueprint.grafts)
    reason = _reason(blueprint, about, sim)
    if wrong := _mismatches(wanted, given):
        raise HybridsimError(f"{file}: {'; '.join(wrong)}. {reason or _origin(about, sim)}".rstrip(". "))
    if reason:
        raise HybridsimError(f"{file}: weights of networks that read other quantities. {reason}")
    for k, graft in enumerate(blueprint.grafts):
        flat, structure = jax.tree_util.tree_flatten_with_path(graft.net)
        leaves = [
            given[f"graft[{k}]{jax.tree_util.keystr(path)}"] if hasattr(leaf, "dtype") else leaf for path, leaf in flat
        ]
        net = jax.tree.unflatten(structure, leaves)
        blueprint = eqx.tree_at(lambda b, k=k: b.grafts[k].net, blueprint, net)
    return blueprint


def _mismatches(wanted: dict[str, np.ndarray], given: dict[str, np.ndarray]) -> list[str]:
    found = []
    for name, array in wanted.items():
        if name not in given:
            found.append(f"{name} is not in it")
        elif given[name].shape != array.shape:
            sizes = ("×".join(map(str, shape)) or "one number" for shape in (given[name].shape, array.shape))
            found.append("{} has the shape {}, not {}".format(name, *sizes))
        elif given[name].dtype.kind != "f" or not np.isfinite(given[name]).all():
            found.append(f"{name} has entries that are no finite numbers")
    return found + [f"{name} belongs to no network here" for name in given if name not in wanted]


def _reason(blueprint: Blueprint, about: dict[str, str], sim: Simulator) -> str:
    """Why weights do not fit: what they were made for, if that is something else."""
    try:
        once = json.loads(about.get("inputs", "[]"))
    except json.JSONDecodeError:
        return ""
    words = []
    for k, graft in enumerate(blueprint.bind(dict(sim.axis_names)).grafts[: len(once)]):
        now = input_addresses(graft)
        gone, new = [x for x in once[k] if x not in now], [x for x in now if x not in once[k]]
        words += [f"network {k} then read {name_list(gone)}, which it does not now"] if gone else []
        words += [f"network {k} reads {name_list(new)}, which it did not then"] if new else []
        if not gone and not new and now != once[k]:
            words.append(f"network {k} then read the same in another order: {name_list(once[k])}")
    return "; ".join([_origin(about, sim), *words]) if words else ""


def _origin(about: dict[str, str], sim: Simulator) -> str:
    model = about.get("model", "")
    return f"They were made for the model {model!r}, this is {sim.model.name!r}" if model else ""


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_written, value))}]"
    return quoted(value) if isinstance(value, str) else repr(value)

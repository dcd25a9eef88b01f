"""What a fit found, for use elsewhere: the user's own model file with new numbers, and the networks' weights."""

import warnings
from dataclasses import asdict
from typing import Any

import jax
import numpy as np
import safetensors.numpy
from jaxtyping import Float

from hybridsim.core.errors import ModelError, ModelWarning
from hybridsim.io.export import export
from hybridsim.io.load import load_model
from hybridsim.model.model import Model
from hybridsim.project.build.blueprint_file import arrays_of
from hybridsim.project.build.task import Task
from hybridsim.project.record.record import Record
from hybridsim.project.record.write import write_file

NOT_OF_A_MODEL = ("contact.", "actuation.", "sensor.", "dt")
"""Beginnings of names of parameters that belong to the simulator or the sensors."""
MOST_NAMES = 6
"""Parameters that a doubt lists."""


def write_model(task: Task, theta: Float[np.ndarray, " n"], record: Record) -> dict[str, Any] | None:
    """Write the model's file with the numbers that were found into a record.

    Returns:
        The file's name, what changed in it, and doubts; nothing for a model that does not come from a file.
    """
    if task.model_file is None:
        return None
    model = task.problem.space.put(task.problem.setup, theta).sim.model
    out = record.folder / f"identified{task.model_file.suffix}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        try:
            changes = export(task.model_file, _as_in_file(task, model), out, **task.reading)
        except ModelError as error:
            doubt = f"The identified model was not written back to its file: {error}"
            return {"file": None, "changes": [], "doubts": [doubt]}
    doubts = [str(warning.message) for warning in caught if issubclass(warning.category, ModelWarning)]
    if elsewhere := [name for name in task.problem.space.values(theta) if name.startswith(NOT_OF_A_MODEL)]:
        listed = ", ".join(elsewhere[:MOST_NAMES]) + (" and others" if len(elsewhere) > MOST_NAMES else "")
        doubts.append(f"{out.name} does not hold {listed}: no part of a model file. result.json has them.")
    if own := [name for name in task.problem.space.run_values(theta) if not name.startswith(NOT_OF_A_MODEL)]:
        doubts.append(f"{out.name} keeps what it had of {', '.join(own[:MOST_NAMES])}: every run has its own.")
    if grafts := task.problem.setup.sim.blueprint.grafts:
        places = ", ".join(output for graft in grafts for output in graft.outputs)
        doubts.append(f"{out.name} is without the networks on {places}; {record.weights_file.name} has their weights.")
    return {"file": out.name, "changes": [asdict(change) for change in changes], "doubts": doubts}


def write_weights(task: Task, theta: Float[np.ndarray, " n"], record: Record) -> None:
    """Write all numbers of the grafted networks into a record, if there are any."""
    grafts = task.problem.space.put(task.problem.setup, theta).sim.blueprint.grafts
    arrays = arrays_of(grafts)
    if arrays:
        write_file(record.weights_file, safetensors.numpy.save(arrays, {"format": "1", "name": task.name}))


def _as_in_file(task: Task, fitted: Model) -> Model:
    """The fitted numbers in the model as its file has it: without the floor or motors that a project puts to it."""
    assert task.model_file is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # told when the project was built
        model = load_model(task.model_file, **task.reading)
    old, structure = jax.tree.flatten(model)
    new = jax.tree.leaves(fitted)
    if len(old) != len(new):
        return fitted
    # what a project puts to a model comes after what was there
    rows = [b if np.shape(a) == np.shape(b) else b[: len(a)] for a, b in zip(old, new, strict=True)]
    return jax.tree.unflatten(structure, rows)

"""Export of a fit: the user's model file with the identified parameters, and the weights of the networks."""

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

SIMULATOR_PARAMETERS = ("contact.", "actuation.", "sensor.", "dt")
"""Name prefixes of parameters of the simulator or the sensors, which model files do not contain."""
MAX_NAMES = 6
"""Parameters that a warning lists."""


def write_model(task: Task, theta: Float[np.ndarray, " n"], record: Record) -> dict[str, Any] | None:
    """Write the model file with the identified parameters into a record.

    Returns:
        File name, changes in the file, and warnings; None for a built-in model.
    """
    if task.model_file is None:
        return None
    model = task.problem.space.put(task.problem.setup, theta).sim.model
    out = record.folder / f"identified{task.model_file.suffix}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        try:
            changes = export(task.model_file, _without_additions(task, model), out, **task.load_options)
        except ModelError as error:
            message = f"The identified model could not be written to a model file: {error}"
            return {"file": None, "changes": [], "warnings": [message]}
    messages = [str(warning.message) for warning in caught if issubclass(warning.category, ModelWarning)]
    if not_in_model := [name for name in task.problem.space.values(theta) if name.startswith(SIMULATOR_PARAMETERS)]:
        names = ", ".join(not_in_model[:MAX_NAMES]) + (" and others" if len(not_in_model) > MAX_NAMES else "")
        messages.append(f"{out.name} does not contain {names}, which are not written to model files; see result.json.")
    per_run = [name for name in task.problem.space.run_values(theta) if not name.startswith(SIMULATOR_PARAMETERS)]
    if per_run:
        names = ", ".join(per_run[:MAX_NAMES])
        messages.append(f"{out.name} has the original values of {names}, which are estimated separately for each run.")
    if grafts := task.problem.setup.sim.blueprint.grafts:
        outputs = ", ".join(output for graft in grafts for output in graft.outputs)
        messages.append(
            f"{out.name} does not contain the networks on {outputs}; their weights are in {record.weights_file.name}."
        )
    return {"file": out.name, "changes": [asdict(change) for change in changes], "warnings": messages}


def write_weights(task: Task, theta: Float[np.ndarray, " n"], record: Record) -> None:
    """Write the arrays of the grafted networks into a record, if there are any."""
    grafts = task.problem.space.put(task.problem.setup, theta).sim.blueprint.grafts
    arrays = arrays_of(grafts)
    if arrays:
        write_file(record.weights_file, safetensors.numpy.save(arrays, {"format": "1", "name": task.name}))


def _without_additions(task: Task, fitted: Model) -> Model:
    """Fitted model without the floor and actuators that the project adds to the model of the file."""
    assert task.model_file is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # reported when the project was built
        model = load_model(task.model_file, **task.load_options)
    old, structure = jax.tree.flatten(model)
    new = jax.tree.leaves(fitted)
    if len(old) != len(new):
        return fitted
    # elements that a project adds follow those of the file
    rows = [b if np.shape(a) == np.shape(b) else b[: len(a)] for a, b in zip(old, new, strict=True)]
    return jax.tree.unflatten(structure, rows)

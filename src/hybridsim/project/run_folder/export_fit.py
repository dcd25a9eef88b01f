"""Export of a fit: the user's model file with the identified parameters, and the weights of the networks."""

import warnings
from dataclasses import asdict, fields, replace
from typing import Any

import jax
import numpy as np
import safetensors.numpy
from jaxtyping import Float

from hybridsim.core.errors import FileError, ModelError, ModelWarning
from hybridsim.identify.task import Task
from hybridsim.io.export import export
from hybridsim.model.model import Model
from hybridsim.project.build.blueprint_file import arrays_of
from hybridsim.project.run_folder.folder import RunFolder
from hybridsim.project.run_folder.write import write_file

SIMULATOR_PARAMETERS = ("contact.", "actuation.", "sensor.", "dt")
"""Name prefixes of parameters of the simulator or the sensors, which model files do not contain."""
SHAPE_PARAMETERS = ("size", "friction", "restitution", "recovery_time", "softness", "stiffness", "damping")
"""Parameters of shapes, one row each."""
MAX_NAMES = 6
"""Maximum number of parameters that a remark lists."""


def write_model(task: Task, theta: Float[np.ndarray, " n"], run_folder: RunFolder) -> dict[str, Any] | None:
    """Write the model file with the identified parameters into a run folder.

    Returns:
        File name, changes in the file, and remarks; None for a built-in model.
    """
    source = task.experiment.model.source
    if source is None or task.model_file is None:
        return None
    model = task.problem.space.put(task.problem.setup, theta).sim.model
    out = run_folder.path / f"identified{task.model_file.suffix}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        try:
            changes = export(task.model_file, without_additions(task, model), out, **source.options)
        except (ModelError, FileError) as error:
            message = f"The identified model could not be written to a model file: {error}"
            return {"file": None, "changes": [], "remarks": [message]}
    remarks = [str(warning.message) for warning in caught if issubclass(warning.category, ModelWarning)]
    if not_in_model := [name for name in task.problem.space.values(theta) if name.startswith(SIMULATOR_PARAMETERS)]:
        remarks.append(
            f"{out.name} does not contain {_short_list(not_in_model)}, which are not written to model files; see "
            "result.json."
        )
    per_run = [name for name in task.problem.space.run_values(theta) if not name.startswith(SIMULATOR_PARAMETERS)]
    if per_run:
        remarks.append(
            f"{out.name} has the original values of {_short_list(per_run)}, which are estimated separately for each "
            "run."
        )
    if grafts := task.problem.setup.sim.blueprint.grafts:
        outputs = ", ".join(output for graft in grafts for output in graft.outputs)
        remarks.append(
            f"{out.name} does not contain the networks on {outputs}; their weights are in "
            f"{run_folder.weights_file.name}."
        )
    return {"file": out.name, "changes": [asdict(change) for change in changes], "remarks": remarks}


def write_weights(task: Task, theta: Float[np.ndarray, " n"], run_folder: RunFolder) -> None:
    """Write the arrays of the grafted networks into a run folder, if there are any."""
    grafts = task.problem.space.put(task.problem.setup, theta).sim.blueprint.grafts
    arrays = arrays_of(grafts)
    if arrays:
        write_file(run_folder.weights_file, safetensors.numpy.save(arrays, {"format": "1", "name": task.name}))


def _short_list(names: list[str]) -> str:
    return ", ".join(names[:MAX_NAMES]) + (" and others" if len(names) > MAX_NAMES else "")


def without_additions(task: Task, fitted: Model) -> Model:
    """Model without the floor, the hulls of meshes and the actuators that the experiment adds to it."""
    model = task.experiment.model
    count, names = len(model.actuator.names), [info.name for info in fitted.geometry.infos]
    index = [names.index(info.name) for info in model.geometry.infos]
    shapes = {name: np.asarray(getattr(fitted.geometry, name))[index] for name in SHAPE_PARAMETERS}
    placement = jax.tree.map(lambda x: np.asarray(x)[index], fitted.geometry.placement)
    actuators = {
        field.name: np.asarray(getattr(fitted.actuator, field.name))[:count]
        for field in fields(model.actuator)
        if field.name not in ("names", "joints")
    }
    return replace(
        fitted,
        topology=model.topology,
        actuator=replace(model.actuator, **actuators),
        geometry=replace(model.geometry, placement=placement, pair_friction=fitted.geometry.pair_friction, **shapes),
    )

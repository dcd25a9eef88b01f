"""Export of a simulator's time step as C: one self-contained file for controllers, and its header.

Two functions are exported, the step and its vector-Jacobian product:

    prefix_step(params, x, u, x_next)
    prefix_step_vjp(params, x, u, ct_x_next, ct_params, ct_x, ct_u)

`x` is the whole state (`State`), `u` the commands and the user inputs of networks (`Inputs`), `params` the parameters
of the simulator. The differentiated parameters (`DIFFERENTIATED`) come first, zeros included, so that a damping of zero
can be changed later. Of the others, values 0, 1, −1 and infinity are compiled in as constants, so that features absent
from a mechanism cost nothing.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.core.files import write_atomically
from hybridsim.native.c.emit_function import SlotLocation, c_function
from hybridsim.native.graph.graph import FLOAT
from hybridsim.native.graph.partition import compact_slot
from hybridsim.native.lowering.pytree_layout import PytreeLayout
from hybridsim.native.lowering.step_graphs import StepGraphs, StepLayouts, structural_constants
from hybridsim.sim.c_export.header import ExportContents, header_text, source_text
from hybridsim.sim.c_export.layout import (
    MAX_PREFIX_LENGTH,
    input_entries,
    is_valid_prefix,
    named_arrays,
    parameter_entries,
    path_name,
    prefix_from_name,
    sanitize_comment,
    state_entries,
)
from hybridsim.sim.integrate import next_state
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State

DIFFERENTIATED = (
    "body.mass",
    "body.com",
    "body.inertia",
    "joint.armature",
    "joint.damping",
    "joint.friction",
    "actuator.gain",
    "gravity",
    "blueprint",
    "actuation",
)
"""Parameters with exported derivatives, by their paths in a simulator; networks and actuator stages as a whole."""


@dataclass(frozen=True)
class ExportedFiles:
    """Exported files, and the lengths of the arrays in them."""

    source: Path
    header: Path
    prefix: str
    state_size: int
    """Length of `x`."""
    input_size: int
    """Length of `u`."""
    parameter_count: int
    """Length of `params`."""
    gradient_size: int
    """Length of `ct_params`, the number of leading parameters with a derivative."""
    step_stack_bytes: int
    """Stack usage of the step [bytes]."""
    vjp_stack_bytes: int
    """Stack usage of its derivative [bytes]."""


def export_c(sim: Simulator, path: str | Path, *, prefix: str | None = None, fma: bool = True) -> ExportedFiles:
    """Write a simulator's step and its derivative as a C99 file and its header.

    Args:
        sim: the simulator, with its integrator, time step, actuation and grafted networks.
        path: the C file, `.c`; the header is written next to it. Existing files are replaced.
        prefix: prefix of all C identifiers; by default derived from the model's name.
        fma: use fused multiply-add, available on processors since about 2013; disable it for older processors and
            microcontrollers.

    Raises:
        HybridsimError: a name is invalid, a file cannot be written, or the step contains operations that cannot be
            exported to C.
    """
    prefix = prefix_from_name(sim.model.name) if prefix is None else prefix
    source, header = output_files(path, prefix)
    contents = export_contents(sim, prefix, fma=fma)
    for file, text in ((header, header_text(contents, source.name)), (source, source_text(contents, header.name))):
        write_atomically(file, text.encode("ascii"))
    sizes = contents.sizes
    return ExportedFiles(
        source=source,
        header=header,
        prefix=prefix,
        state_size=sizes["NX"],
        input_size=sizes["NU"],
        parameter_count=sizes["NP"],
        gradient_size=sizes["ND"],
        step_stack_bytes=8 * contents.step.scratch_cells,
        vjp_stack_bytes=8 * contents.vjp.scratch_cells,
    )


def output_files(path: str | Path, prefix: str) -> tuple[Path, Path]:
    """Paths of the C file and its header.

    Raises:
        HybridsimError: they cannot be written, or the prefix is invalid.
    """
    source = Path(path)
    if source.suffix != ".c" or not re.fullmatch(r"[\w.+-]+", source.name, re.ASCII):
        raise HybridsimError(
            f"{source.name!r}: use a file name of ASCII letters, digits and the characters _ . + - "
            "with the extension .c, as in step.c"
        )
    if not is_valid_prefix(prefix):
        raise HybridsimError(
            f"{prefix!r} is not a valid prefix in C; use at most {MAX_PREFIX_LENGTH} letters, digits and single "
            "underscores, beginning with a letter"
        )
    for file in (source, source.with_suffix(".h")):
        if file.is_dir() or not file.absolute().parent.is_dir():
            reason = "it is a folder" if file.is_dir() else f"there is no folder {file.absolute().parent}"
            raise HybridsimError(f"cannot write {file}: {reason}")
    return source, source.with_suffix(".h")


class SimulatorParts(NamedTuple):
    """Partition of a simulator; `eqx.combine` reassembles it."""

    free: Any
    """Parameters with derivatives."""
    fixed: Any
    """Other parameters."""
    static: Any
    """All leaves that are not floating-point arrays, and the tree structure."""

    def step(self, fixed: Any, free: Any, state: State, inputs: Inputs) -> tuple[State, None]:
        """Step with the signature that the native backend expects."""
        return next_state(eqx.combine(free, fixed, self.static), state, inputs), None


def split_parameters(sim: Simulator) -> SimulatorParts:
    """Partition a simulator into parameters with derivatives, other parameters and static structure."""

    def is_parameter(leaf: Any) -> bool:
        return isinstance(leaf, np.ndarray | np.generic | jax.Array) and np.issubdtype(leaf.dtype, np.floating)

    def is_free(path: tuple, leaf: Any) -> bool:
        name = path_name(path)
        return is_parameter(leaf) and any(name == d or name.startswith(f"{d}.") for d in DIFFERENTIATED)

    free, remainder = eqx.partition(sim, jax.tree_util.tree_map_with_path(is_free, sim))
    return SimulatorParts(free, *eqx.partition(remainder, is_parameter))


def zero_inputs(sim: Simulator) -> Inputs:
    """Zero inputs of the right shapes: commands, and the user inputs of the blueprint."""
    return Inputs(np.zeros(sim.model.nu), None, {name: np.zeros(size) for name, size in sim.blueprint.inputs})


def export_contents(sim: Simulator, prefix: str, *, fma: bool) -> ExportContents:
    """Contents of the exported files.

    Args:
        sim: the simulator.
        prefix: prefix of all C identifiers.
        fma: as in `export_c`.
    """
    parts, state, inputs = split_parameters(sim), sim.initial_state(), zero_inputs(sim)
    if any(leaf.kind != FLOAT for leaf in PytreeLayout.from_tree(state).leaves):
        raise HybridsimError("an actuator stage has internal states that are not floats and cannot be exported to C")
    with jax.enable_x64(True):
        layouts = StepLayouts(parts.step, parts.fixed, parts.free, state, inputs)
        fixed, free = layouts.fixed.pack(parts.fixed), layouts.free.pack(parts.free)
        in_place_slots = {slot: slot for slot in ("fixed", "free", "contribution")}
        constants = structural_constants(layouts.fixed, fixed)
        graphs = StepGraphs(parts.step, layouts, constants, fma=fma, in_place_slots=in_place_slots)
        used, (step, vjp) = compact_slot("fixed", graphs.step_graph, graphs.vjp_graph)

    arguments = {
        "free": SlotLocation("params"),
        "fixed": SlotLocation("params", len(free)),
        "x": SlotLocation("x"),
        "s": SlotLocation("u"),
    }
    cotangents = {"contribution": SlotLocation("ct_params"), "ct2": SlotLocation("ct_x"), "d_s": SlotLocation("ct_u")}
    leaves = named_arrays(parts.free)
    fixed_entries = parameter_entries(sim.model, named_arrays(parts.fixed), used)
    fixed_entries = [entry._replace(first=entry.first + len(free)) for entry in fixed_entries]
    offsets = [("Q", 0), ("QD", sim.model.nq), ("TIME", sim.model.nq + sim.model.nv)]
    offsets += [(leaf.name, first) for leaf, first in zip(leaves, layouts.free.offsets(), strict=True)]
    offsets += [(entry.name, entry.first) for entry in fixed_entries if entry.name == "dt"]
    return ExportContents(
        prefix=prefix,
        model=sanitize_comment(sim.model.name),
        integrator=sim.integrator,
        fma=fma,
        step=c_function(prefix, "step", *step, arguments, {"x2": SlotLocation("x_next")}),
        vjp=c_function(prefix, "step_vjp", *vjp, arguments | {"ct": SlotLocation("ct_x_next")}, cotangents),
        x=state_entries(sim.model, state),
        u=input_entries(sim.model, inputs),
        free=parameter_entries(sim.model, leaves),
        fixed=fixed_entries,
        offsets=offsets,
        home=layouts.carry.pack(state),
        params=np.concatenate([free, fixed[used]]),
    )

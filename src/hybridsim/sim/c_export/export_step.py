"""A simulator's step as C: one self-contained file for controllers, and its header.

Two functions are exported, the step and its transposed derivative:

    prefix_step(params, x, u, x_next)
    prefix_step_vjp(params, x, u, ct_x_next, ct_params, ct_x, ct_u)

`x` is the whole state (`State`), `u` the commands and the inputs that networks ask for (`Inputs`), `params` the numbers
of the simulator. First come those with a derivative (`DIFFERENTIATED`), all of them, so that a damping of zero can be
changed later. Of the others, those that are 0, 1, −1 or infinite become part of the code: what a mechanism does not
have costs nothing that way.
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
from hybridsim.native.lowering.step_graphs import Program, StepLayouts, structural_constants
from hybridsim.sim.c_export.header import ExportContents, header_text, source_text
from hybridsim.sim.c_export.layout import (
    comment_safe,
    input_entries,
    is_valid_prefix,
    named_arrays,
    parameter_entries,
    path_name,
    prefix_from_name,
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
"""Parameters that the exported derivative covers, by their paths in a simulator; networks and actuator stages whole."""


@dataclass(frozen=True)
class ExportedC:
    """What was written, and how large it is."""

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
    """Length of `ct_params`: so many of the first parameters have a derivative."""
    step_stack_bytes: int
    """Bytes of working memory that the step has on the stack."""
    vjp_stack_bytes: int
    """The same for its derivative."""


def export_c(sim: Simulator, path: str | Path, *, prefix: str | None = None, fma: bool = True) -> ExportedC:
    """Write a simulator's step and its derivative as a C99 file and its header.

    Args:
        sim: the simulator, with its integrator, time step, actuation and grafted networks.
        path: the C file, `.c`; the header lies beside it. Existing files are replaced.
        prefix: what the names in the file begin with; by default made from the model's name.
        fma: use fused multiply-add, which processors have since about 2013; without it the code is for older ones and
            for microcontrollers.

    Raises:
        HybridsimError: a name cannot be used, a file cannot be written, or the step has parts that cannot become C.
    """
    prefix = prefix_from_name(sim.model.name) if prefix is None else prefix
    source, header = output_files(path, prefix)
    contents = export_contents(sim, prefix, fma=fma)
    for file, text in ((header, header_text(contents, source.name)), (source, source_text(contents, header.name))):
        write_atomically(file, text.encode("ascii"))
    sizes = contents.sizes
    return ExportedC(
        source=source,
        header=header,
        prefix=prefix,
        state_size=sizes["NX"],
        input_size=sizes["NU"],
        parameter_count=sizes["NP"],
        gradient_size=sizes["ND"],
        step_stack_bytes=8 * contents.step.work,
        vjp_stack_bytes=8 * contents.vjp.work,
    )


def output_files(path: str | Path, prefix: str) -> tuple[Path, Path]:
    """The C file and its header.

    Raises:
        HybridsimError: they cannot be written, or no name can begin like that.
    """
    source = Path(path)
    if source.suffix != ".c" or not re.fullmatch(r"[\w.+-]+", source.name, re.ASCII):
        raise HybridsimError(f"{source.name!r}: name the file with plain letters and the ending .c, as in step.c")
    if not is_valid_prefix(prefix):
        raise HybridsimError(f"no name in C can begin with {prefix!r}; use letters, digits and single underscores")
    for file in (source, source.with_suffix(".h")):
        if file.is_dir() or not file.absolute().parent.is_dir():
            reason = "it is a folder" if file.is_dir() else f"there is no folder {file.absolute().parent}"
            raise HybridsimError(f"cannot write {file}: {reason}")
    return source, source.with_suffix(".h")


class SimulatorParts(NamedTuple):
    """A simulator taken apart; `eqx.combine` puts it together again."""

    free: Any
    """Parameters with derivatives."""
    fixed: Any
    """Other parameters."""
    static: Any
    """What is no array of floats."""

    def step(self, fixed: Any, free: Any, state: State, inputs: Inputs) -> tuple[State, None]:
        """The step as the native back-end wants it."""
        return next_state(eqx.combine(free, fixed, self.static), state, inputs), None


def split_parameters(sim: Simulator) -> SimulatorParts:
    """What of a simulator is a parameter, and which ones have derivatives."""

    def is_parameter(leaf: Any) -> bool:
        return isinstance(leaf, np.ndarray | np.generic | jax.Array) and np.issubdtype(leaf.dtype, np.floating)

    def is_free(path: tuple, leaf: Any) -> bool:
        name = path_name(path)
        return is_parameter(leaf) and any(name == d or name.startswith(f"{d}.") for d in DIFFERENTIATED)

    free, rest = eqx.partition(sim, jax.tree_util.tree_map_with_path(is_free, sim))
    return SimulatorParts(free, *eqx.partition(rest, is_parameter))


def zero_inputs(sim: Simulator) -> Inputs:
    """Inputs of the right shapes: commands, and what the blueprint calls `input.<name>`."""
    return Inputs(np.zeros(sim.model.nu), None, {name: np.zeros(size) for name, size in sim.blueprint.inputs})


def export_contents(sim: Simulator, prefix: str, *, fma: bool) -> ExportContents:
    """Everything that the files hold.

    Args:
        sim: the simulator.
        prefix: what the names begin with.
        fma: as in `export_c`.
    """
    parts, state, inputs = split_parameters(sim), sim.initial_state(), zero_inputs(sim)
    if any(leaf.kind != FLOAT for leaf in PytreeLayout.from_tree(state).leaves):
        raise HybridsimError("an actuator stage remembers other numbers than floats, and cannot become C")
    with jax.enable_x64(True):
        forms = StepLayouts(parts.step, parts.fixed, parts.free, state, inputs)
        fixed, free = forms.fixed.pack(parts.fixed), forms.free.pack(parts.free)
        in_place = {slot: slot for slot in ("fixed", "free", "contribution")}
        program = Program(parts.step, forms, structural_constants(forms.fixed, fixed), fma=fma, in_place=in_place)
        used, (step, vjp) = compact_slot("fixed", program.step_graph, program.vjp_graph)

    given = {
        "free": SlotLocation("params"),
        "fixed": SlotLocation("params", len(free)),
        "x": SlotLocation("x"),
        "s": SlotLocation("u"),
    }
    pulled = {"contribution": SlotLocation("ct_params"), "ct2": SlotLocation("ct_x"), "d_s": SlotLocation("ct_u")}
    leaves = named_arrays(parts.free)
    others = parameter_entries(sim.model, named_arrays(parts.fixed), used)
    rest = [entry._replace(first=entry.first + len(free)) for entry in others]
    starts = [("Q", 0), ("QD", sim.model.nq), ("TIME", sim.model.nq + sim.model.nv)]
    starts += [(leaf.name, first) for leaf, first in zip(leaves, forms.free.offsets(), strict=True)]
    starts += [(entry.name, entry.first) for entry in rest if entry.name == "dt"]
    return ExportContents(
        prefix=prefix,
        model=comment_safe(sim.model.name),
        integrator=sim.integrator,
        fma=fma,
        step=c_function(prefix, "step", *step, given, {"x2": SlotLocation("x_next")}),
        vjp=c_function(prefix, "step_vjp", *vjp, given | {"ct": SlotLocation("ct_x_next")}, pulled),
        x=state_entries(sim.model, state),
        u=input_entries(sim.model, inputs),
        free=parameter_entries(sim.model, leaves),
        fixed=rest,
        starts=starts,
        home=forms.carry.pack(state),
        params=np.concatenate([free, fixed[used]]),
    )

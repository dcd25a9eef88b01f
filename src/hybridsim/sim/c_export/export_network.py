"""Export of one network of a blueprint as C, for controllers with their own model.

    prefix_network(params, x, y)
    prefix_network_vjp(params, x, ct_y, ct_params, ct_x)

`params` are its weights, then its frozen fields such as scales; `x` are its inputs, `y` its outputs. A
per-element network is exported for one element.
"""

from importlib.metadata import version
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.core.files import write_atomically
from hybridsim.core.messages import pluralize
from hybridsim.native.c.emit_file import c_file
from hybridsim.native.c.emit_function import CFunction, SlotLocation, c_function
from hybridsim.native.lowering.step_graphs import StepGraphs, StepLayouts
from hybridsim.networks.frozen_fields import weight_mask
from hybridsim.networks.prune import input_addresses
from hybridsim.sim.c_export.export_step import output_files
from hybridsim.sim.c_export.header import array_definition, comment_table
from hybridsim.sim.c_export.layout import ArrayEntry, named_arrays, prefix_from_name, sanitize_comment
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import BoundGraft


def export_network_c(
    sim: Simulator, graft: int, path: str | Path, *, prefix: str | None = None, fma: bool = True
) -> tuple[Path, Path]:
    """Write a network and its derivative as a C99 file and its header.

    Args:
        sim: simulator with the blueprint.
        graft: index of the graft in the blueprint.
        path: the C file, `.c`; the header is written next to it. Existing files are replaced.
        prefix: prefix of all C identifiers; by default derived from the file name.
        fma: use fused multiply-add, available on processors since about 2013.

    Raises:
        HybridsimError: there is no such network, a name is invalid, a file cannot be written, or the network contains
            operations that cannot be exported to C.
    """
    grafts = sim.bound_blueprint().grafts
    if not 0 <= graft < len(grafts):
        raise HybridsimError(
            f"there is no network {graft}; the blueprint has {pluralize(len(grafts), 'network')}, numbered from 0"
        )
    prefix = prefix_from_name(Path(path).stem) if prefix is None else prefix
    source, header = output_files(path, prefix)
    bound = grafts[graft]
    inputs = [ArrayEntry(k, 1, sanitize_comment(name)) for k, name in enumerate(input_addresses(bound))]
    free, remainder = eqx.partition(bound.net, weight_mask(bound.net))
    fixed, static = eqx.partition(remainder, eqx.is_array_like)

    def step(fixed, free, carry, x):
        return carry, jax.numpy.ravel(eqx.combine(free, fixed, static)(x))

    with jax.enable_x64(True):
        layouts = StepLayouts(step, fixed, free, None, np.zeros(len(inputs)))
        values = np.concatenate([layouts.free.pack(free), layouts.fixed.pack(fixed)])
        in_place_slots = {slot: slot for slot in ("fixed", "free", "contribution")}
        graphs = StepGraphs(step, layouts, {}, fma=fma, in_place_slots=in_place_slots)
        arguments = {
            "free": SlotLocation("params"),
            "fixed": SlotLocation("params", layouts.free.size),
            "s": SlotLocation("x"),
        }
        value = c_function(prefix, "network", *graphs.step_graph, arguments, {"y": SlotLocation("y")})
        cotangents = {"contribution": SlotLocation("ct_params"), "d_s": SlotLocation("ct_x")}
        vjp_arguments = arguments | {"ct_y": SlotLocation("ct_y")}
        vjp = c_function(prefix, "network_vjp", *graphs.vjp_graph, vjp_arguments, cotangents)
    params, first = [], 0
    for leaf in (*named_arrays(free), *named_arrays(fixed)):
        params.append(ArrayEntry(first, leaf.size, leaf.text))
        first += leaf.size
    sizes = {"NX": len(inputs), "NY": layouts.outputs.size, "NP": len(values), "ND": layouts.free.size}
    functions = (value, vjp)
    write_atomically(header, _header(bound, prefix, sizes, functions, inputs, params, source.name, fma).encode("ascii"))
    head = f'/* A network, written by hybridsim {version("hybridsim")}. */\n#include "{header.name}"\n'
    definition = array_definition(f"{prefix}_network_params[{prefix.upper()}_NP]", params, values)
    write_atomically(source, (c_file(prefix, head, list(functions)) + f"\n{definition}").encode("ascii"))
    return source, header


def _header(
    graft: BoundGraft,
    prefix: str,
    sizes: dict[str, int],
    functions: tuple[CFunction, CFunction],
    inputs: list[ArrayEntry],
    params: list[ArrayEntry],
    source: str,
    fma: bool,
) -> str:
    macro, (value, vjp) = prefix.upper(), functions
    element = ", one element per call" if graft.per == "element" else ""
    effect = {"add": "is added to", "replace": "replaces", "scale": "plus one multiplies"}[graft.mode]
    changes = sanitize_comment(", ".join(out.address for out in graft.outputs))
    outputs = [ArrayEntry(0, sizes["NY"], f"{effect} {changes}")]
    macros = "\n".join(f"#define {macro}_{name} {size}" for name, size in sizes.items())
    return f"""\
/* A network ({type(graft.net).__name__}){element}, and its derivative.
 *
 * Written by hybridsim {version("hybridsim")}. C99 without allocation, recursion or mutable global state. Compile with
 *
 *     gcc -std=c99 {"-O2 -mfma" if fma else "-O2"} -c {source}
 *
 * and link with -lm. Stack usage: {8 * value.scratch_cells} bytes, {8 * vjp.scratch_cells} for the derivative.
 * Outputs must not overlap any other argument.
 */
#ifndef {macro}_NETWORK_H
#define {macro}_NETWORK_H

#ifdef __cplusplus
extern "C" {{
#endif

{macros}

/* Parameters of the network. */
extern const double {prefix}_network_params[{macro}_NP];

/* Output y of the network. */
{value.prototype}

/* Vector-Jacobian product: for the gradient ct_y of a scalar with respect to y, writes its gradients with respect to
 * the first {macro}_ND of params, the weights, and to x. */
{vjp.prototype}

#ifdef __cplusplus
}}
#endif

/* x
{comment_table("x", inputs)}
 *
 * y
{comment_table("y", outputs)}
 *
 * params
{comment_table("params", params)}
 */

#endif
"""

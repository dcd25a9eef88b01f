"""One network of a blueprint as C, for controllers that bring their own model.

    prefix_network(params, x, y)
    prefix_network_vjp(params, x, ct_y, ct_params, ct_x)

`params` are its weights, then what says in which units it computes; `x` is what it reads, `y` what it returns. Of a
network per element, that is one element.
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
from hybridsim.native.lowering.step_graphs import Program, StepLayouts
from hybridsim.networks.frozen_fields import weights_of
from hybridsim.networks.prune import input_addresses
from hybridsim.sim.c_export.export_step import output_files
from hybridsim.sim.c_export.header import array_definition, comment_table
from hybridsim.sim.c_export.layout import ArrayEntry, comment_safe, named_arrays, prefix_from_name
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import BoundGraft


def export_network_c(
    sim: Simulator, graft: int, path: str | Path, *, prefix: str | None = None, fma: bool = True
) -> tuple[Path, Path]:
    """Write a network and its derivative as a C99 file and its header.

    Args:
        sim: whose blueprint it is in.
        graft: its number.
        path: the C file, `.c`; the header lies beside it. Existing files are replaced.
        prefix: what the names in the file begin with; by default made from the file's own.
        fma: use fused multiply-add, which processors have since about 2013.

    Raises:
        HybridsimError: there is no such network, a name cannot be used, a file cannot be written, or the network has
            parts that cannot become C.
    """
    grafts = sim.bound_blueprint().grafts
    if not 0 <= graft < len(grafts):
        raise HybridsimError(
            f"there is no network {graft}; the blueprint has {pluralize(len(grafts), 'network')}, from 0"
        )
    prefix = prefix_from_name(Path(path).stem) if prefix is None else prefix
    source, header = output_files(path, prefix)
    bound = grafts[graft]
    names = [ArrayEntry(k, 1, comment_safe(name)) for k, name in enumerate(input_addresses(bound))]
    free, rest = eqx.partition(bound.net, weights_of(bound.net))
    fixed, static = eqx.partition(rest, eqx.is_array_like)

    def step(fixed, free, nothing, x):
        return nothing, jax.numpy.ravel(eqx.combine(free, fixed, static)(x))

    with jax.enable_x64(True):
        forms = StepLayouts(step, fixed, free, None, np.zeros(len(names)))
        numbers = np.concatenate([forms.free.pack(free), forms.fixed.pack(fixed)])
        in_place = {slot: slot for slot in ("fixed", "free", "contribution")}
        program = Program(step, forms, {}, fma=fma, in_place=in_place)
        given = {
            "free": SlotLocation("params"),
            "fixed": SlotLocation("params", forms.free.size),
            "s": SlotLocation("x"),
        }
        value = c_function(prefix, "network", *program.step_graph, given, {"y": SlotLocation("y")})
        pulled = {"contribution": SlotLocation("ct_params"), "d_s": SlotLocation("ct_x")}
        vjp = c_function(prefix, "network_vjp", *program.vjp_graph, given | {"ct_y": SlotLocation("ct_y")}, pulled)
    params, first = [], 0
    for leaf in (*named_arrays(free), *named_arrays(fixed)):
        params.append(ArrayEntry(first, leaf.size, leaf.text))
        first += leaf.size
    sizes = {"NX": len(names), "NY": forms.outputs.size, "NP": len(numbers), "ND": forms.free.size}
    made = (value, vjp)
    write_atomically(header, _header(bound, prefix, sizes, made, names, params, source.name, fma).encode("ascii"))
    head = f'/* A network, written by hybridsim {version("hybridsim")}. */\n#include "{header.name}"\n'
    values = array_definition(f"{prefix}_network_params[{prefix.upper()}_NP]", params, numbers)
    write_atomically(source, (c_file(prefix, head, list(made)) + f"\n{values}").encode("ascii"))
    return source, header


def _header(
    graft: BoundGraft,
    prefix: str,
    sizes: dict[str, int],
    made: tuple[CFunction, CFunction],
    names: list[ArrayEntry],
    params: list[ArrayEntry],
    source: str,
    fma: bool,
) -> str:
    macro, (value, vjp) = prefix.upper(), made
    element = ", of one element at a time" if graft.per == "element" else ""
    how = {"add": "is added to", "replace": "replaces", "scale": "plus one is multiplied with"}[graft.mode]
    changes = comment_safe(", ".join(out.address for out in graft.outputs))
    outputs = [ArrayEntry(0, sizes["NY"], f"{how} {changes}")]
    macros = "\n".join(f"#define {macro}_{name} {size}" for name, size in sizes.items())
    return f"""\
/* A network ({type(graft.net).__name__}){element}, and its derivative.
 *
 * Written by hybridsim {version("hybridsim")}. C99 without allocation, recursion or changing global state.
 *
 *     gcc -std=c99 {"-O2 -mfma" if fma else "-O2"} -c {source}
 *
 * compiles it; link with -lm. Working memory on the stack: {8 * value.work} bytes, {8 * vjp.work} for its derivative.
 * What a function writes must not overlap anything else that it is given.
 */
#ifndef {macro}_NETWORK_H
#define {macro}_NETWORK_H

#ifdef __cplusplus
extern "C" {{
#endif

{macros}

/* The network's own numbers. */
extern const double {prefix}_network_params[{macro}_NP];

/* What it returns. */
{value.prototype}

/* The derivative of a number that depends on y: given its derivative ct_y with respect to y, writes those with respect
 * to the first {macro}_ND of params, the weights, and to x. */
{vjp.prototype}

#ifdef __cplusplus
}}
#endif

/* x
{comment_table("x", names)}
 *
 * y
{comment_table("y", outputs)}
 *
 * params
{comment_table("params", params)}
 */

#endif
"""

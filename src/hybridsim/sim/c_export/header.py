"""Text of exported C files: a header that documents every array element, and the source with the model's parameters."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from hybridsim.native.c.emit_file import c_file
from hybridsim.native.c.emit_function import MAX_BLOCK_OPERATIONS, CFunction
from hybridsim.sim.c_export.layout import ArrayEntry, identifier

_VALUES_PER_LINE = 6


@dataclass(frozen=True)
class ExportContents:
    """Contents of the exported files."""

    prefix: str
    model: str
    """Name of the model, safe in a comment."""
    integrator: str
    fma: bool
    step: CFunction
    vjp: CFunction
    x: list[ArrayEntry]
    u: list[ArrayEntry]
    free: list[ArrayEntry]
    """Parameters with derivatives."""
    fixed: list[ArrayEntry]
    """Parameters without derivatives, which follow them."""
    offsets: list[tuple[str, int]]
    """Names of complete arrays within `x` and `params`, with the indices of their first elements."""
    home: np.ndarray
    params: np.ndarray

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths of the arrays."""
        counts = {"NX": self.x, "NU": self.u, "NP": self.free + self.fixed, "ND": self.free}
        return {name: sum(entry.size for entry in entries) for name, entries in counts.items()}


def header_text(contents: ExportContents, source_name: str) -> str:
    """Text of the header file.

    Args:
        contents: contents of the files.
        source_name: name of the source file.
    """
    c, prefix, macro = contents, contents.prefix, contents.prefix.upper()
    flags = "-O2 -mfma" if c.fma else "-O2"
    bit_identical = "Results are bit-identical to hybridsim's own steps (-mfma is for x86 only)."
    guarantee = bit_identical if c.fma else "This works on any processor."
    macros = [f"#define {macro}_{name} {value}" for name, value in (c.sizes | _unique_names(c.offsets)).items()]
    return f"""\
/* {c.model}: one simulation time step and its derivative.
 *
 * Written by hybridsim {version("hybridsim")}; integrator: {c.integrator}. SI units; quaternions are (w, x, y, z).
 * C99 without allocation, recursion or mutable global state: the functions are thread-safe. Compile with
 *
 *     gcc -std=c99 {flags} -c {source_name}
 *
 * and link with -lm. {guarantee}
 * Stack usage: {8 * c.step.scratch_cells} bytes for the step, {8 * c.vjp.scratch_cells} bytes for its derivative,
 * plus at most about {8 * MAX_BLOCK_OPERATIONS + 250} bytes added by the compiler.
 *
 * Arrays and their lengths; the tables at the end list their elements:
 *
 *     x       {macro}_NX    state: coordinates, velocities, time, internal states
 *     u       {macro}_NU    commands, then user inputs of networks
 *     params  {macro}_NP    parameters; {prefix}_params holds those of the model
 *     ct_...  length of the array it belongs to, except ct_params {macro}_ND: not all params have derivatives
 *
 * Outputs must not overlap any other argument. An array of length 0 may be a null pointer.
 */
#ifndef {macro}_STEP_H
#define {macro}_STEP_H

#ifdef __cplusplus
extern "C" {{
#endif

{chr(10).join(macros)}

/* Parameters of the model, and its home configuration at rest. */
extern const double {prefix}_params[{macro}_NP];
extern const double {prefix}_home[{macro}_NX];

/* State x_next one time step later. */
{c.step.prototype}

/* Vector-Jacobian product: for the gradient ct_x_next of a scalar, such as a cost, with respect to x_next, writes its
 * gradients with respect to x, u and the first {macro}_ND of params. */
{c.vjp.prototype}

#ifdef __cplusplus
}}
#endif

/* x
{comment_table("x", c.x)}
 *
 * u
{comment_table("u", c.u)}
 *
 * params with derivatives in ct_params
{comment_table("params", c.free)}
 *
 * further params; elements not listed were 0, 1, -1 or infinite in the model and are constants in the code
{comment_table("params", c.fixed)}
 */

#endif
"""


def source_text(contents: ExportContents, header_name: str) -> str:
    """Text of the source file.

    Args:
        contents: contents of the files.
        header_name: name of the header file.
    """
    c, macro = contents, contents.prefix.upper()
    head = f"/* A time step of {c.model}, written by hybridsim {version('hybridsim')}. */\n"
    head += f'#include "{header_name}"\n'
    params = array_definition(f"{c.prefix}_params[{macro}_NP]", c.free + c.fixed, c.params)
    home = array_definition(f"{c.prefix}_home[{macro}_NX]", c.x, c.home)
    return c_file(c.prefix, head, [c.step, c.vjp]) + f"\n{params}\n{home}"


def _unique_names(offsets: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Offsets, keyed by unique macro names."""
    unique: dict[str, int] = {}
    for name, offset in offsets:
        macro = base = identifier(name).upper()
        while macro in unique:
            macro = f"{base}_AT_{offset}"
        unique[macro] = offset
    return unique


def comment_table(array: str, entries: Iterable[ArrayEntry]) -> str:
    """Comment lines, one per entry of an array."""
    rows = []
    for first, size, name, unit in entries:
        elements = f"{array}[{first}]" if size == 1 else f"{array}[{first}..{first + size - 1}]"
        rows.append(f" *   {elements:<16}  {name}" + (f"  [{unit}]" if unit else ""))
    return "\n".join(rows) or " *   (empty)"


def array_definition(declaration: str, entries: Iterable[ArrayEntry], values: np.ndarray) -> str:
    """C definition of an array with its values and comments."""
    lines = [f"const double {declaration} = {{"]
    for first, size, name, _ in entries:
        texts = [_decimal(float(v)) for v in values[first : first + size]]
        for k in range(0, size, _VALUES_PER_LINE):
            comment = f" /* {name} */" if k == 0 else ""
            lines.append(f"    {', '.join(texts[k : k + _VALUES_PER_LINE])},{comment}")
    return "\n".join([*lines, "};", ""])


def _decimal(value: float) -> str:
    """Shortest decimal representation that round-trips."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0.0 else "-INFINITY"
    return repr(value)

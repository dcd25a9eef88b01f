"""The text of exported C files: a header that tells what every number means, and the source with the model's values."""

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
    """What is in the files."""

    prefix: str
    model: str
    """Name of the model, fit for a comment."""
    integrator: str
    fma: bool
    step: CFunction
    vjp: CFunction
    x: list[ArrayEntry]
    u: list[ArrayEntry]
    free: list[ArrayEntry]
    """The parameters with derivatives."""
    fixed: list[ArrayEntry]
    """The parameters after them."""
    starts: list[tuple[str, int]]
    """Names of parts of `x` and `params` that are there in full, with their first elements."""
    home: np.ndarray
    params: np.ndarray

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths of the arrays."""
        counts = {"NX": self.x, "NU": self.u, "NP": self.free + self.fixed, "ND": self.free}
        return {name: sum(entry.size for entry in entries) for name, entries in counts.items()}


def header_text(contents: ExportContents, source_name: str) -> str:
    """The header.

    Args:
        contents: what it describes.
        source_name: name of the file with the functions.
    """
    c, prefix, macro = contents, contents.prefix, contents.prefix.upper()
    flags = "-O2 -mfma" if c.fma else "-O2"
    promise = "whose steps have the bits of hybridsim's own; -mfma is for x86 only" if c.fma else "on any processor"
    macros = [f"#define {macro}_{name} {value}" for name, value in (c.sizes | _unique(c.starts)).items()]
    return f"""\
/* {c.model}: one time step of its simulation, and the derivative of that step.
 *
 * Written by hybridsim {version("hybridsim")}; integrator: {c.integrator}. SI units; quaternions are (w, x, y, z).
 * C99 without allocation, recursion or changing global state: any number of threads may call the functions at once.
 *
 *     gcc -std=c99 {flags} -c {source_name}
 *
 * compiles it, {promise}; link with -lm.
 * Working memory on the stack: {8 * c.step.work} bytes for the step, {8 * c.vjp.work} bytes for its derivative.
 * To this a compiler adds at most some {8 * MAX_BLOCK_OPERATIONS + 250} bytes.
 *
 * Arrays and their lengths; tables at the end tell what is in them:
 *
 *     x       {macro}_NX    state: coordinates, velocities, time, memory of actuators
 *     u       {macro}_NU    commands, then further inputs of networks
 *     params  {macro}_NP    numbers of the model; {prefix}_params holds the model's own
 *     ct_     as what it belongs to, but ct_params {macro}_ND: not all params have derivatives
 *
 * What a function writes must not overlap anything else that it is given. An array of length 0 may be a null pointer.
 */
#ifndef {macro}_STEP_H
#define {macro}_STEP_H

#ifdef __cplusplus
extern "C" {{
#endif

{chr(10).join(macros)}

/* The model's own parameters, and its home configuration at rest. */
extern const double {prefix}_params[{macro}_NP];
extern const double {prefix}_home[{macro}_NX];

/* The state one time step later. */
{c.step.prototype}

/* The derivative of a number, such as a cost, that depends on x_next: given its derivative ct_x_next with respect to
 * x_next, writes those with respect to the first {macro}_ND of params, to x and to u. */
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
 * further params; what is not listed was 0, 1, -1 or infinite in the model, and is part of the code
{comment_table("params", c.fixed)}
 */

#endif
"""


def source_text(contents: ExportContents, header_name: str) -> str:
    """The source.

    Args:
        contents: what it holds.
        header_name: name of the header.
    """
    c, macro = contents, contents.prefix.upper()
    head = f"/* A time step of {c.model}, written by hybridsim {version('hybridsim')}. */\n"
    head += f'#include "{header_name}"\n'
    params = array_definition(f"{c.prefix}_params[{macro}_NP]", c.free + c.fixed, c.params)
    home = array_definition(f"{c.prefix}_home[{macro}_NX]", c.x, c.home)
    return c_file(c.prefix, head, [c.step, c.vjp]) + f"\n{params}\n{home}"


def _unique(starts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Names for macros, no two alike."""
    found: dict[str, int] = {}
    for name, start in starts:
        own = plain = identifier(name).upper()
        while own in found:
            own = f"{plain}_AT_{start}"
        found[own] = start
    return found


def comment_table(of: str, entries: Iterable[ArrayEntry]) -> str:
    """Lines of a comment, one per entry of an array."""
    rows = []
    for first, size, name, unit in entries:
        place = f"{of}[{first}]" if size == 1 else f"{of}[{first}..{first + size - 1}]"
        rows.append(f" *   {place:<16}  {name}" + (f"  [{unit}]" if unit else ""))
    return "\n".join(rows) or " *   nothing"


def array_definition(declaration: str, entries: Iterable[ArrayEntry], values: np.ndarray) -> str:
    """An array with its values, line by line."""
    lines = [f"const double {declaration} = {{"]
    for first, size, name, _ in entries:
        texts = [_decimal(float(v)) for v in values[first : first + size]]
        for k in range(0, size, _VALUES_PER_LINE):
            comment = f" /* {name} */" if k == 0 else ""
            lines.append(f"    {', '.join(texts[k : k + _VALUES_PER_LINE])},{comment}")
    return "\n".join([*lines, "};", ""])


def _decimal(value: float) -> str:
    """A number to read, with as many digits as it takes to get it back."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0.0 else "-INFINITY"
    return repr(value)

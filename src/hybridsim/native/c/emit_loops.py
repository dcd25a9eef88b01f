"""Loops over arrays in C: the same sums in the same order as the native kernels have them."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from hybridsim.core.errors import UnsupportedPrimitive
from hybridsim.native.c.literal import literal
from hybridsim.native.graph.arrays import ElementwiseMap, MatrixVectorProduct, OuterProduct, Stack
from hybridsim.native.graph.graph import ARRAY
from hybridsim.native.graph.schedule import deepest_first

if TYPE_CHECKING:
    from hybridsim.native.c.emit_function import CodeBlock

Element = Callable[[str], str]
"""The C text of an element, from that of its index."""


def array_lines(piece: "CodeBlock", node: int, target: Element | None = None) -> list[str]:
    """Lines that compute an array.

    Args:
        piece: that they are part of.
        node: the array.
        target: where its elements go, if not to its own place in the work array.
    """
    graph = piece.graph
    spec, args = graph.data[node], graph.args[node]
    to = target or piece.elements(node)
    if isinstance(spec, Stack):
        return [f"{to(str(k))} = {piece.stored(a)};" for k, a in enumerate(args)]
    if isinstance(spec, ElementwiseMap):
        return _loop("i", spec.size, _mapped(piece, node, to))
    if isinstance(spec, MatrixVectorProduct):
        weights, vector = (piece.elements(a) for a in args)
        place = f"{spec.offset} + {spec.row_stride} * i + {spec.column_stride} * j"
        term = _added("sum", weights(place), vector("j"), fma=spec.fma)
        return _loop("i", spec.size, ["double sum = 0.0;", *_loop("j", spec.columns, [term]), f"{to('i')} = sum;"])
    if isinstance(spec, OuterProduct):
        sides = [piece.elements(a) for a in args]
        terms = [_added("sum", a("i"), b("j"), fma=spec.fma) for a, b in zip(sides[::2], sides[1::2], strict=True)]
        row = ["double sum = 0.0;", *terms, f"{to(f'{spec.columns} * i + j')} = sum;"]
        return _loop("i", spec.rows, _loop("j", spec.columns, row))
    raise UnsupportedPrimitive("a loop that stays one, as those of many contacts do, has no C code")


def copy_lines(piece: "CodeBlock", node: int, to: Element) -> list[str]:
    """Lines that copy an array."""
    source = piece.elements(node)
    return _loop("i", piece.graph.data[node].size, [f"{to('i')} = {source('i')};"])


def _mapped(piece: "CodeBlock", node: int, to: Element) -> list[str]:
    """The operation on one element."""
    graph = piece.graph
    spec, args = graph.data[node], graph.args[node]
    body, lines = spec.body, []
    names: dict[int, str] = {}
    for n in deepest_first(body, [spec.result]):
        if n in body.constants:
            names[n] = literal(body.constants[n])
        elif body.ops[n] == "input":
            argument = args[int(body.data[n][0][1:])]
            if graph.kinds[argument] == ARRAY:
                names[n] = piece.read(piece.elements(argument)("i"), body.kinds[n])
            else:
                names[n] = piece.operand(argument)
        else:
            line, names[n] = piece.operation(body, n, names.__getitem__, f"e{len(names)}")
            lines.append(line)
    return [*lines, f"{to('i')} = {piece.as_stored(names[spec.result], body.kinds[spec.result])};"]


def _added(total: str, a: str, b: str, *, fma: bool) -> str:
    return f"{total} = fma({a}, {b}, {total});" if fma else f"{total} = {a} * {b} + {total};"


def _loop(counter: str, count: int, lines: list[str]) -> list[str]:
    inside = [f"    {line}" for line in lines]
    return [f"for (int {counter} = 0; {counter} < {count}; ++{counter}) {{", *inside, "}"]

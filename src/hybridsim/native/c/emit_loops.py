"""Loops over arrays in C, with the same order of summation as the native kernels."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.c.literal import literal
from hybridsim.native.graph.arrays import ElementwiseMap, MatrixVectorProduct, OuterProduct, Stack
from hybridsim.native.graph.graph import ARRAY
from hybridsim.native.graph.schedule import depth_first_schedule

if TYPE_CHECKING:
    from hybridsim.native.c.emit_function import CodeBlock

Element = Callable[[str], str]
"""Maps the C expression of an index to that of the element."""


def array_lines(block: "CodeBlock", node: int, target: Element | None = None) -> list[str]:
    """Lines that compute an array.

    Args:
        block: block of code that contains them.
        node: the array.
        target: destination of its elements; by default its location in scratch memory.
    """
    graph = block.graph
    spec, args = graph.data[node], graph.args[node]
    to = target or block.elements(node)
    if isinstance(spec, Stack):
        return [f"{to(str(k))} = {block.encoded_operand(a)};" for k, a in enumerate(args)]
    if isinstance(spec, ElementwiseMap):
        return _loop("i", spec.size, _map_body(block, node, to))
    if isinstance(spec, MatrixVectorProduct):
        weights, vector = (block.elements(a) for a in args)
        index = f"{spec.offset} + {spec.row_stride} * i + {spec.column_stride} * j"
        term = _accumulation("sum", weights(index), vector("j"), fma=spec.fma)
        return _loop("i", spec.size, ["double sum = 0.0;", *_loop("j", spec.columns, [term]), f"{to('i')} = sum;"])
    if isinstance(spec, OuterProduct):
        sides = [block.elements(a) for a in args]
        factors = zip(sides[::2], sides[1::2], strict=True)
        terms = [_accumulation("sum", a("i"), b("j"), fma=spec.fma) for a, b in factors]
        row = ["double sum = 0.0;", *terms, f"{to(f'{spec.columns} * i + j')} = sum;"]
        return _loop("i", spec.rows, _loop("j", spec.columns, row))
    raise UnsupportedOperationError(
        "a loop that is not unrolled, such as one over many contacts, cannot be exported as C"
    )


def copy_lines(block: "CodeBlock", node: int, to: Element) -> list[str]:
    """Lines that copy an array."""
    source = block.elements(node)
    return _loop("i", block.graph.data[node].size, [f"{to('i')} = {source('i')};"])


def _map_body(block: "CodeBlock", node: int, to: Element) -> list[str]:
    """Body of the loop of an elementwise map."""
    graph = block.graph
    spec, args = graph.data[node], graph.args[node]
    body, lines = spec.body, []
    names: dict[int, str] = {}
    for n in depth_first_schedule(body, [spec.result]):
        if n in body.constants:
            names[n] = literal(body.constants[n])
        elif body.ops[n] == "input":
            argument = args[int(body.data[n][0][1:])]
            if graph.kinds[argument] == ARRAY:
                names[n] = block.read(block.elements(argument)("i"), body.kinds[n])
            else:
                names[n] = block.operand(argument)
        else:
            line, names[n] = block.operation(body, n, names.__getitem__, f"e{len(names)}")
            lines.append(line)
    return [*lines, f"{to('i')} = {block.encode(names[spec.result], body.kinds[spec.result])};"]


def _accumulation(total: str, a: str, b: str, *, fma: bool) -> str:
    return f"{total} = fma({a}, {b}, {total});" if fma else f"{total} = {a} * {b} + {total};"


def _loop(counter: str, count: int, lines: list[str]) -> list[str]:
    body = [f"    {line}" for line in lines]
    return [f"for (int {counter} = 0; {counter} < {count}; ++{counter}) {{", *body, "}"]

"""Emission as C: a scalar graph as C99 source code whose results are bitwise equal to those of its native code.

One line per operation, on local constants of the types `double`, `uint64_t` (integers, since unsigned overflow is
defined) and `int` (booleans). The only loops are those over arrays (`emit_loops.py`), and the only memory is the
arguments and the stack.

A compiler takes much longer for one large function than for several small ones, so a large graph becomes several
blocks. Values that one block computes and another reads are spilled to an array on the stack of the calling function.
"""

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.c.emit_loops import array_lines, copy_lines
from hybridsim.native.c.literal import literal
from hybridsim.native.graph.arrays import ArrayInput, OuterProduct
from hybridsim.native.graph.elementary import FUNCTIONS
from hybridsim.native.graph.functions import EXPANSIONS
from hybridsim.native.graph.graph import ARRAY, BOOL, FLOAT, INT, Graph
from hybridsim.native.graph.partition import Outputs
from hybridsim.native.graph.schedule import depth_first_schedule

MAX_BLOCK_OPERATIONS = 250
"""Operations in one C function: a quadruped in one function takes gcc three times as long, for no faster code."""
SCRATCH = "scratch"
"""Name of the array that holds arrays, and values spilled between blocks."""
NOINLINE_MACRO = "NOINLINE"
"""Suffix of the macro that keeps compilers from inlining the blocks."""

_TYPES = {FLOAT: "double", INT: "uint64_t", BOOL: "int"}
_LEAVES = ("const", "input", "extract")


@dataclass(frozen=True)
class SlotLocation:
    """Location of a slot of a graph: an argument of the C function, and the first element in it."""

    argument: str
    first: int = 0


@dataclass(frozen=True)
class CFunction:
    """A C function, preceded by the static functions of its blocks."""

    prototype: str
    """Its declaration, valid in C and C++."""
    text: str
    scratch_cells: int
    """Cells of scratch memory on its stack, eight bytes each."""
    helpers: frozenset[str]
    """Helper functions that it calls, see `emit_file.py`."""


def c_function(
    prefix: str,
    name: str,
    graph: Graph,
    outputs: Outputs,
    reads: Mapping[str, SlotLocation],
    writes: Mapping[str, SlotLocation],
) -> CFunction:
    """A graph as a function `void prefix_name(const double *read, ..., double *written, ...)`.

    Args:
        prefix: prefix of all names in the file.
        name: name of the function, without the prefix.
        graph: graph to evaluate.
        outputs: node written to each (slot, index).
        reads: location of every slot that is read; their arguments come first.
        writes: location of every slot that is written.
    """
    arguments = {location.argument: "const double *" for location in reads.values()}
    arguments |= {location.argument: "double *" for location in writes.values()}
    return _Function(prefix, f"{prefix}_{name}", graph, {**reads, **writes}).emit(outputs, arguments)


class _Function:
    """State shared by the blocks of a function."""

    def __init__(self, prefix: str, name: str, graph: Graph, locations: Mapping[str, SlotLocation]):
        self.prefix, self.name, self.graph, self.locations = prefix, name, graph, locations
        self.cells: dict[int, int] = {}
        """First element in scratch memory of each array and spilled value."""
        self.helpers: set[str] = set()

    def emit(self, outputs: Outputs, arguments: dict[str, str]) -> CFunction:
        blocks, block_of = _blocks(self.graph, outputs)
        self.cells, scratch_cells = _scratch_cells(self.graph, blocks, block_of)
        writes: list[Outputs] = [{} for _ in blocks]
        for target, node in outputs.items():
            writes[block_of.get(node, len(blocks) - 1 if self.graph.kinds[node] == ARRAY else 0)][target] = node
        code_blocks = [CodeBlock(self, nodes, results) for nodes, results in zip(blocks, writes, strict=True)]
        used = set().union(*(block.used for block in code_blocks))
        lines = [f"(void){argument};" for argument in arguments if argument not in used]
        lines += [f"double {SCRATCH}[{scratch_cells}];"] if scratch_cells else []
        texts = []
        if len(code_blocks) == 1:
            lines += code_blocks[0].lines
        else:
            for k, block in enumerate(code_blocks):
                types = arguments | {SCRATCH: block.scratch_type}
                passed = {a: type_ for a, type_ in types.items() if a in block.used}
                signature = _signature(f"{self.name}_{k}", passed, "restrict ")
                texts.append(_definition(f"static {self.prefix.upper()}_{NOINLINE_MACRO} {signature}", block.lines))
                lines.append(f"{self.name}_{k}({', '.join(passed)});")
        texts.append(_definition(_signature(self.name, arguments, "restrict "), lines))
        prototype = f"{_signature(self.name, arguments)};"
        return CFunction(prototype, "\n".join(texts), scratch_cells, frozenset(self.helpers))


class CodeBlock:
    """A block of straight-line code."""

    def __init__(self, function: _Function, nodes: list[int], writes: Outputs):
        self.function, self.graph = function, function.graph
        self.lines: list[str] = []
        self.used: set[str] = set()
        """Arguments that it reads or writes."""
        self.scratch_type = "const double *"
        """Type of the scratch argument."""
        self.names: dict[int, str] = {}
        """Name of each value that is computed in the block."""
        for node in nodes:
            if self.graph.kinds[node] == ARRAY:
                self.scratch_type = "double *"
                self.lines += array_lines(self, node)
                continue
            name = f"v{len(self.names)}"
            line, self.names[node] = self.operation(self.graph, node, self.operand, name)
            self.lines.append(line)
            if node in function.cells:
                self.scratch_type = "double *"
                self._store(self._element(SCRATCH, function.cells[node]), node)
        for (slot, index), node in writes.items():
            location = function.locations[slot]
            first = location.first + index
            if self.graph.kinds[node] == ARRAY:
                self.used.add(location.argument)
                to = _elements(location.argument, first)
                is_outer = isinstance(self.graph.data[node], OuterProduct) and node not in function.cells
                self.lines += array_lines(self, node, to) if is_outer else copy_lines(self, node, to)
            else:
                self._store(self._element(location.argument, first), node)

    def operation(self, graph: Graph, node: int, operand: Callable[[int], str], name: str) -> tuple[str, str]:
        """Line that computes a node of a graph, and the name of the result."""
        op, args = graph.ops[node], graph.args[node]
        table = _OPERATIONS_BY_KIND[graph.kinds[args[-1]]]
        if op not in table:
            raise UnsupportedOperationError(f"the operation {op!r} cannot be exported as C")
        code = self._with_helpers(table[op]).format(*(operand(a) for a in args))
        return f"const {_TYPES[graph.kinds[node]]} {name} = {code};", name

    def elements(self, array: int) -> Callable[[str], str]:
        """Expressions of the elements of an array, as a function of the expression of the index."""
        spec = self.graph.data[array]
        if isinstance(spec, ArrayInput):
            location = self.function.locations[spec.slot]
            argument, first = location.argument, location.first + spec.offset
        else:
            argument, first = SCRATCH, self.function.cells[array]
        self.used.add(argument)
        return _elements(argument, first)

    def operand(self, node: int) -> str:
        """Expression of a value: a constant, an element of an argument, a local name or a value of another block."""
        function, graph = self.function, self.graph
        if node in graph.constants:
            return literal(graph.constants[node])
        if node in self.names:
            return self.names[node]
        if graph.ops[node] == "input":
            slot, index = graph.data[node]
            location = function.locations[slot]
            element = self._element(location.argument, location.first + index)
        elif graph.ops[node] == "extract":
            element = self._element(SCRATCH, function.cells[graph.args[node][0]] + graph.data[node])
        else:
            element = self._element(SCRATCH, function.cells[node])
        return self.read(element, graph.kinds[node])

    def read(self, element: str, kind: str) -> str:
        """Expression that reads a value from an element of memory."""
        return self._with_helpers(_READ[kind]).format(element)

    def encode(self, value: str, kind: str) -> str:
        """Expression of a value in its memory representation."""
        return self._with_helpers(_ENCODE[kind]).format(value)

    def encoded_operand(self, node: int) -> str:
        """Expression of a node's value in its memory representation."""
        return self.encode(self.operand(node), self.graph.kinds[node])

    def _store(self, element: str, node: int) -> None:
        self.lines.append(f"{element} = {self.encoded_operand(node)};")

    def _element(self, argument: str, index: int) -> str:
        self.used.add(argument)
        return f"{argument}[{index}]"

    def _with_helpers(self, code: str) -> str:
        """Expand the names of helper functions, and record them as called."""
        if "$" not in code:
            return code
        self.function.helpers.update(re.findall(r"\$(\w+)", code))
        return code.replace("$", f"{self.function.prefix}_")


_OPERATIONS = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "neg": "-{}", "fma": "fma({}, {}, {})",
    "sqrt": "sqrt({})", "abs": "fabs({})", "floor": "floor({})", "ceil": "ceil({})", "rint": "rint({})",
    "trunc": "trunc({})", "float32": "$float32({})", "select": "{} ? {} : {}",
    "lt": "{} < {}", "le": "{} <= {}", "eq": "{} == {}", "ne": "{} != {}",
    "and": "{} & {}", "or": "{} | {}", "xor": "{} ^ {}", "not": "!{}",
    "iadd": "{} + {}", "isub": "{} - {}", "imul": "{} * {}", "iand": "{} & {}", "ior": "{} | {}", "ixor": "{} ^ {}",
    "shl": "$shl({}, {})", "ashr": "$ashr({}, {})", "lshr": "$lshr({}, {})", "idiv": "$idiv({}, {})",
    "irem": "$irem({}, {})", "bits": "$bits({})", "from_bits": "$from_bits({})", "to_float": "(double)$signed({})",
    "to_int": "$to_int({})", "rem": "fmod({}, {})",
    **{name: f"{name}({{}})" for name in FUNCTIONS if name not in EXPANSIONS},
}  # fmt: skip
"""C expression of each operation; `$` is the prefix of the helpers' names."""
_INTEGER_OPERATIONS = _OPERATIONS | {"lt": "$signed({}) < $signed({})", "le": "$signed({}) <= $signed({})"}
_OPERATIONS_BY_KIND = {FLOAT: _OPERATIONS, INT: _INTEGER_OPERATIONS, BOOL: _OPERATIONS}
_READ = {FLOAT: "{}", INT: "$bits({})", BOOL: "($bits({}) != 0)"}
_ENCODE = {FLOAT: "{}", INT: "$from_bits({})", BOOL: "$from_bits((uint64_t){})"}
"""Expressions of values in memory: eight bytes each, as in the native kernels."""


def _elements(argument: str, first: int) -> Callable[[str], str]:
    """Expressions of elements of an argument from an offset on, as a function of the expression of the index."""
    return lambda i: f"{argument}[{first} + {i}]"


def _blocks(graph: Graph, outputs: Outputs) -> tuple[list[list[int]], dict[int, int]]:
    """Partition of the operations into blocks of bounded size, and the block of each."""
    used = {a for node in graph.live_nodes(outputs.values()) for a in graph.args[node]}
    order = [
        node
        for node in depth_first_schedule(graph, outputs.values())
        if graph.ops[node] not in _LEAVES
        and not isinstance(graph.data[node], ArrayInput)
        # an outer product that is only an output is computed where it is written
        and (node in used or not isinstance(graph.data[node], OuterProduct))
    ]
    count = max(math.ceil(len(order) / MAX_BLOCK_OPERATIONS), 1)
    size = max(math.ceil(len(order) / count), 1)
    blocks = [order[k * size : (k + 1) * size] for k in range(count)]
    return blocks, {node: k for k, nodes in enumerate(blocks) for node in nodes}


def _scratch_cells(graph: Graph, blocks: list[list[int]], block_of: dict[int, int]) -> tuple[dict[int, int], int]:
    """Scratch cells of arrays and spilled values, reused after the last use of a value, and their total."""
    last_use: dict[int, int] = {}
    for k, nodes in enumerate(blocks):
        last_use.update({a: k for node in nodes for a in graph.args[node] if block_of.get(a, k) != k})
    expiring: list[list[int]] = [[] for _ in blocks]
    cells: dict[int, int] = {}
    free: list[int] = []
    total = 0
    for k, nodes in enumerate(blocks):
        for node in nodes:
            if graph.kinds[node] == ARRAY:
                cells[node] = total
                total += graph.data[node].size
            elif node in last_use:
                if not free:
                    free.append(total)
                    total += 1
                cells[node] = free.pop()
                expiring[last_use[node]].append(cells[node])
        free += expiring[k]
    return cells, total


def _signature(name: str, arguments: Mapping[str, str], qualifier: str = "") -> str:
    text = f"void {name}({', '.join(f'{type_}{qualifier}{a}' for a, type_ in arguments.items()) or 'void'})"
    return textwrap.fill(text, 110, subsequent_indent="    ")


def _definition(head: str, lines: Iterable[str]) -> str:
    return "\n".join([head, "{", *(f"    {line}" for line in lines), "}", ""])

"""Emission as C: a scalar graph as C99 text that computes the same bits as its native code.

One line per operation, on local constants of the types `double`, `uint64_t` (whole numbers: unsigned ones wrap around)
and `int` (truth values). There are no loops but those over arrays (`c_loops.py`), and no memory but the arguments and
the stack.

A compiler takes much longer for one large function than for several small ones, so a large graph becomes several.
Values pass from one to the next through an array on the stack of the function that calls them all.
"""

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hybridsim.core.errors import UnsupportedPrimitive
from hybridsim.native.c.emit_loops import array_lines, copy_lines
from hybridsim.native.c.literal import literal
from hybridsim.native.graph.arrays import ArrayInput, OuterProduct
from hybridsim.native.graph.graph import ARRAY, BOOL, FLOAT, INT, Graph
from hybridsim.native.graph.partition import Outputs
from hybridsim.native.graph.schedule import deepest_first

MAX_BLOCK_OPERATIONS = 250
"""Operations in one C function: all of a quadruped in one takes gcc three times as long, for code as fast."""
WORKSPACE = "w"
"""Name of the array through which values pass from piece to piece."""
NOINLINE_MACRO = "APART"
"""Ending of the macro that keeps compilers from joining the pieces again."""

_TYPES = {FLOAT: "double", INT: "uint64_t", BOOL: "int"}
_LEAVES = ("const", "input", "part")


@dataclass(frozen=True)
class SlotLocation:
    """Where a slot of a graph lies: in which argument of the C function, and from which element on."""

    argument: str
    first: int = 0


@dataclass(frozen=True)
class CFunction:
    """A C function, after the static ones that it calls."""

    prototype: str
    """Its declaration, as C++ understands it too."""
    text: str
    work: int
    """Numbers of working memory on its stack."""
    helpers: frozenset[str]
    """Helpers that must stand before it, see `c_file.py`."""


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
        prefix: what all names in the file begin with.
        name: of the function, after the prefix.
        graph: what to compute.
        outputs: the node to write to each (slot, index).
        reads: place of every slot that is read; their arguments come first.
        writes: place of every slot that is written.
    """
    arguments = {place.argument: "const double *" for place in reads.values()}
    arguments |= {place.argument: "double *" for place in writes.values()}
    return _Function(prefix, f"{prefix}_{name}", graph, {**reads, **writes}).written(outputs, arguments)


class _Function:
    """What the pieces of a function share."""

    def __init__(self, prefix: str, name: str, graph: Graph, places: Mapping[str, SlotLocation]):
        self.prefix, self.name, self.graph, self.places = prefix, name, graph, places
        self.cells: dict[int, int] = {}
        """Elements of the work array that hold values for later pieces."""
        self.helpers: set[str] = set()

    def written(self, outputs: Outputs, arguments: dict[str, str]) -> CFunction:
        pieces, owner = _pieces(self.graph, outputs)
        self.cells, work = _cells(self.graph, pieces, owner)
        writes: list[Outputs] = [{} for _ in pieces]
        for place, node in outputs.items():
            writes[owner.get(node, len(pieces) - 1 if self.graph.kinds[node] == ARRAY else 0)][place] = node
        bodies = [CodeBlock(self, nodes, own) for nodes, own in zip(pieces, writes, strict=True)]
        used = set().union(*(body.used for body in bodies))
        lines = [f"(void){argument};" for argument in arguments if argument not in used]
        lines += [f"double {WORKSPACE}[{work}];"] if work else []
        texts = []
        if len(bodies) == 1:
            lines += bodies[0].lines
        else:
            for k, body in enumerate(bodies):
                own = {a: kind for a, kind in (arguments | {WORKSPACE: body.work_type}).items() if a in body.used}
                head = (
                    f"static {self.prefix.upper()}_{NOINLINE_MACRO} {_signature(f'{self.name}_{k}', own, 'restrict ')}"
                )
                texts.append(_definition(head, body.lines))
                lines.append(f"{self.name}_{k}({', '.join(own)});")
        texts.append(_definition(_signature(self.name, arguments, "restrict "), lines))
        prototype = f"{_signature(self.name, arguments)};"
        return CFunction(prototype, "\n".join(texts), work, frozenset(self.helpers))


class CodeBlock:
    """Lines of straight code."""

    def __init__(self, function: _Function, nodes: list[int], writes: Outputs):
        self.function, self.graph = function, function.graph
        self.lines: list[str] = []
        self.used: set[str] = set()
        """Arguments that it needs."""
        self.work_type = "const double *"
        self.names: dict[int, str] = {}
        for node in nodes:
            if self.graph.kinds[node] == ARRAY:
                self.work_type = "double *"
                self.lines += array_lines(self, node)
                continue
            name = f"v{len(self.names)}"
            line, self.names[node] = self.operation(self.graph, node, self.operand, name)
            self.lines.append(line)
            if node in function.cells:
                self.work_type = "double *"
                self._store(self._element(WORKSPACE, function.cells[node]), node)
        for (slot, index), node in writes.items():
            place = function.places[slot]
            first = place.first + index
            if self.graph.kinds[node] == ARRAY:
                self.used.add(place.argument)
                to = _elements(place.argument, first)
                is_outer = isinstance(self.graph.data[node], OuterProduct) and node not in function.cells
                self.lines += array_lines(self, node, to) if is_outer else copy_lines(self, node, to)
            else:
                self._store(self._element(place.argument, first), node)

    def operation(self, graph: Graph, node: int, operand: Callable[[int], str], name: str) -> tuple[str, str]:
        """The line that computes a node of a graph, and the name of the result."""
        op, args = graph.ops[node], graph.args[node]
        table = _OPERATIONS_ON[graph.kinds[args[-1]]]
        if op not in table:
            raise UnsupportedPrimitive(f"the operation {op!r} has no C code")
        code = self._with_helpers(table[op]).format(*(operand(a) for a in args))
        return f"const {_TYPES[graph.kinds[node]]} {name} = {code};", name

    def elements(self, array: int) -> Callable[[str], str]:
        """The text of an element of an array, from that of its index."""
        spec = self.graph.data[array]
        if isinstance(spec, ArrayInput):
            place = self.function.places[spec.slot]
            argument, first = place.argument, place.first + spec.offset
        else:
            argument, first = WORKSPACE, self.function.cells[array]
        self.used.add(argument)
        return _elements(argument, first)

    def operand(self, node: int) -> str:
        """The text of a value: a constant, an element of an argument, something computed here or in another piece."""
        function, graph = self.function, self.graph
        if node in graph.constants:
            return literal(graph.constants[node])
        if node in self.names:
            return self.names[node]
        if graph.ops[node] == "input":
            slot, index = graph.data[node]
            place = function.places[slot]
            element = self._element(place.argument, place.first + index)
        elif graph.ops[node] == "part":
            element = self._element(WORKSPACE, function.cells[graph.args[node][0]] + graph.data[node])
        else:
            element = self._element(WORKSPACE, function.cells[node])
        return self.read(element, graph.kinds[node])

    def read(self, element: str, kind: str) -> str:
        """The value of an element of memory."""
        return self._with_helpers(_READ[kind]).format(element)

    def as_stored(self, value: str, kind: str) -> str:
        """What is written to memory for a value."""
        return self._with_helpers(_STORED[kind]).format(value)

    def stored(self, node: int) -> str:
        """What is written to memory for a node."""
        return self.as_stored(self.operand(node), self.graph.kinds[node])

    def _store(self, element: str, node: int) -> None:
        self.lines.append(f"{element} = {self.stored(node)};")

    def _element(self, argument: str, index: int) -> str:
        self.used.add(argument)
        return f"{argument}[{index}]"

    def _with_helpers(self, code: str) -> str:
        """Code with the helpers' full names, which are noted."""
        if "$" not in code:
            return code
        self.function.helpers.update(re.findall(r"\$(\w+)", code))
        return code.replace("$", f"{self.function.prefix}_")


_OPERATIONS = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "neg": "-{}", "fma": "fma({}, {}, {})",
    "sqrt": "sqrt({})", "abs": "fabs({})", "floor": "floor({})", "ceil": "ceil({})", "rint": "rint({})",
    "trunc": "trunc({})", "single": "$single({})", "select": "{} ? {} : {}",
    "lt": "{} < {}", "le": "{} <= {}", "eq": "{} == {}", "ne": "{} != {}",
    "and": "{} & {}", "or": "{} | {}", "xor": "{} ^ {}", "not": "!{}",
    "iadd": "{} + {}", "isub": "{} - {}", "imul": "{} * {}", "iand": "{} & {}", "ior": "{} | {}", "ixor": "{} ^ {}",
    "shl": "$shl({}, {})", "ashr": "$ashr({}, {})", "lshr": "$lshr({}, {})", "idiv": "$idiv({}, {})",
    "irem": "$irem({}, {})", "bits": "$bits({})", "from_bits": "$from_bits({})", "to_float": "(double)$signed({})",
    "to_int": "$to_int({})", "rem": "fmod({}, {})",
    **{name: f"{name}({{}})" for name in "asinh acosh atanh cbrt erf erfc".split()},
}  # fmt: skip
"""C for each operation; a $ stands for the prefix of the helpers' names."""
_ON_WHOLE_NUMBERS = _OPERATIONS | {"lt": "$signed({}) < $signed({})", "le": "$signed({}) <= $signed({})"}
_OPERATIONS_ON = {FLOAT: _OPERATIONS, INT: _ON_WHOLE_NUMBERS, BOOL: _OPERATIONS}
_READ = {FLOAT: "{}", INT: "$bits({})", BOOL: "($bits({}) != 0)"}
_STORED = {FLOAT: "{}", INT: "$from_bits({})", BOOL: "$from_bits((uint64_t){})"}
"""Values in memory: eight bytes each, as the native kernels keep them."""


def _elements(argument: str, first: int) -> Callable[[str], str]:
    """The text of an element of an argument from some place on, from that of its index."""
    return lambda i: f"{argument}[{first} + {i}]"


def _pieces(graph: Graph, outputs: Outputs) -> tuple[list[list[int]], dict[int, int]]:
    """The operations in pieces, and the piece of each."""
    used = {a for node in graph.live(outputs.values()) for a in graph.args[node]}
    order = [
        node
        for node in deepest_first(graph, outputs.values())
        if graph.ops[node] not in _LEAVES
        and not isinstance(graph.data[node], ArrayInput)
        # an outer product that is only a result is computed where it is written
        and (node in used or not isinstance(graph.data[node], OuterProduct))
    ]
    count = max(math.ceil(len(order) / MAX_BLOCK_OPERATIONS), 1)
    size = max(math.ceil(len(order) / count), 1)
    pieces = [order[k * size : (k + 1) * size] for k in range(count)]
    return pieces, {node: k for k, piece in enumerate(pieces) for node in piece}


def _cells(graph: Graph, pieces: list[list[int]], owner: dict[int, int]) -> tuple[dict[int, int], int]:
    """Cells for the values that later pieces need, used again once nobody needs them, and how many there are."""
    last_use: dict[int, int] = {}
    for k, piece in enumerate(pieces):
        last_use.update({a: k for node in piece for a in graph.args[node] if owner.get(a, k) != k})
    ending: list[list[int]] = [[] for _ in pieces]
    cells: dict[int, int] = {}
    free: list[int] = []
    total = 0
    for k, piece in enumerate(pieces):
        for node in piece:
            if graph.kinds[node] == ARRAY:
                cells[node] = total
                total += graph.data[node].size
            elif node in last_use:
                if not free:
                    free.append(total)
                    total += 1
                cells[node] = free.pop()
                ending[last_use[node]].append(cells[node])
        free += ending[k]
    return cells, total


def _signature(name: str, arguments: Mapping[str, str], qualifier: str = "") -> str:
    text = f"void {name}({', '.join(f'{kind}{qualifier}{a}' for a, kind in arguments.items()) or 'void'})"
    return textwrap.fill(text, 110, subsequent_indent="    ")


def _definition(head: str, lines: Iterable[str]) -> str:
    return "\n".join([head, "{", *(f"    {line}" for line in lines), "}", ""])

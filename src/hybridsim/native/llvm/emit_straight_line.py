"""Straight-line code: nodes of a graph as LLVM instructions, each value a scalar or a vector of W lanes.

IR is written as text, because building it through an object model takes many times longer than compiling it.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.graph.arrays import ArrayInput, Stack
from hybridsim.native.graph.elementary import FUNCTIONS
from hybridsim.native.graph.graph import BOOL, FLOAT, INT, Graph
from hybridsim.native.graph.superword import Packing, Superword

_SCALAR = {FLOAT: "double", INT: "i64", BOOL: "i1"}
_CELL = {FLOAT: "double", INT: "i64", BOOL: "i64"}
"""Types of values in memory: eight bytes each."""
_FLOAT_OPS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTRINSICS = {"sqrt": "sqrt", "abs": "fabs", "floor": "floor", "ceil": "ceil", "rint": "rint", "trunc": "trunc"}
_INTEGER_OPS = {
    "iadd": "add", "isub": "sub", "imul": "mul", "iand": "and", "ior": "or", "ixor": "xor",
    "shl": "shl", "ashr": "ashr", "lshr": "lshr",
}  # fmt: skip
_LOGIC_OPS = {"and": "and", "or": "or", "xor": "xor"}
_FLOAT_COMPARISONS = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}
_INTEGER_COMPARISONS = {"lt": "slt", "le": "sle", "eq": "eq", "ne": "ne"}
_LIBRARY = {"rem": "fmod"}
"""Functions of the C library whose names differ from those of the operations."""


@dataclass(frozen=True)
class Slot:
    """An array that a function reads or writes."""

    name: str
    per_lane: bool
    """Whether its elements are per lane; uniform over lanes if not."""
    stride: int = 1
    """Cells from one element to the next, for a uniform slot that is one lane of packed vectors."""


SCRATCH = Slot("scratch", True)
"""Memory for values spilled between blocks, and for arrays."""
RELOADED_OPS = ("const", "input", "extract")
"""Operations that cost no more than a load, so that each block repeats them instead of reading a spilled value."""


class StraightLineBlock:
    """A straight-line function under construction."""

    def __init__(
        self,
        graph: Graph,
        varying: set[int],
        slots: Sequence[Slot],
        lanes: int,
        cells: Mapping[int, int],
        declarations: set[str],
        *,
        prefix: str = "v",
        alignment: int | None = None,
        packing: Packing | None = None,
    ):
        """Open a block.

        Args:
            graph: graph of its nodes.
            varying: nodes that differ between lanes.
            slots: slots of the function.
            lanes: W.
            cells: scratch cells of spilled values and arrays.
            declarations: set that collects the declarations of called functions.
            prefix: prefix of the names of its values.
            alignment: alignment of vectors in memory [bytes]; their size by default.
            packing: superwords, for a single lane.
        """
        self.graph, self.varying, self.lanes = graph, varying, lanes
        self.slots = {s.name: s for s in slots}
        self.slot_order = (*slots, SCRATCH)
        self.cells, self.declarations = cells, declarations
        self.prefix, self.alignment, self.packing = prefix, alignment, packing
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.broadcasts: dict[tuple[int, int], str] = {}
        self.vectors: dict[Superword, str] = {}
        """Names of the vectors of superwords and operand rows."""
        self.vector_elements: dict[int, tuple[str, str, int]] = {}
        """For values that are elements of a vector: its type, its name, and the lane."""
        self.count = 0

    def text(self, name: str, nodes: list[int], writes: Sequence[tuple[tuple[str, int], int]]) -> str:
        """IR of a function that computes nodes and writes results to slots."""
        self.emit_nodes(nodes)
        for (slot, index), node in writes:
            self.store(slot, index, node, wide=self.slots[slot].per_lane)
        arguments = ", ".join(f"ptr noalias %{s.name}" for s in self.slot_order)
        body = "\n".join(self.lines)
        return f"define void @{name}({arguments}) #0 {{\n{body}\n  ret void\n}}\n"

    def emit_nodes(self, nodes: Sequence[int]) -> None:
        """Emit the instructions of nodes."""
        graph, superword_of = self.graph, self.packing.superword_of if self.packing else {}
        for node in nodes:
            op = graph.ops[node]
            if node in superword_of:
                if node == superword_of[node][0]:
                    self._emit_superword(superword_of[node])
                continue
            if op in RELOADED_OPS or isinstance(graph.data[node], ArrayInput):
                continue  # emitted at the first use
            if isinstance(graph.data[node], Stack):
                for k, a in enumerate(graph.args[node]):
                    self.store("scratch", self.cells[node] + k, a, wide=True)
                continue
            self._emit_node(node, op)
            if node in self.cells:
                self.store("scratch", self.cells[node], node, wide=node in self.varying)

    # types and operands

    def _type(self, kind: str, wide: bool, table=_SCALAR) -> str:
        return f"<{self.lanes} x {table[kind]}>" if wide and self.lanes > 1 else table[kind]

    def _new_name(self) -> str:
        self.count += 1
        return f"%{self.prefix}{self.count}"

    def operand(self, node: int, wide: bool) -> str:
        """Operand string of a node; with `wide`, as a vector."""
        constant = self.graph.constants.get(node)
        if constant is not None:
            text = _literal(constant)
            if wide and self.lanes > 1:
                return f"splat ({_SCALAR[self.graph.kinds[node]]} {text})"
            return text
        name = self.names.get(node)
        if name is None:
            name = self._extract(node) if node in self.vector_elements else self._load(node)
        if wide and self.lanes > 1 and node not in self.varying:
            return self._broadcast(node, name)
        return name

    def _broadcast(self, node: int, name: str) -> str:
        broadcast = self.broadcasts.get((node, self.lanes))
        if broadcast is None:
            type_ = _SCALAR[self.graph.kinds[node]]
            vector = f"<{self.lanes} x {type_}>"
            first, broadcast = self._new_name(), self._new_name()
            self.lines.append(f"  {first} = insertelement {vector} poison, {type_} {name}, i64 0")
            self.lines.append(
                f"  {broadcast} = shufflevector {vector} {first}, {vector} poison, <{self.lanes} x i32> zeroinitializer"
            )
            self.broadcasts[node, self.lanes] = broadcast
        return broadcast

    def _load(self, node: int) -> str:
        """Load an input, or a value spilled by another block."""
        graph = self.graph
        if graph.ops[node] == "input":
            slot, index = graph.data[node]
            stride = self._element_stride(slot)
        elif graph.ops[node] == "extract":
            slot, index, stride = "scratch", self.cells[graph.args[node][0]] + graph.data[node], self.lanes
        else:
            slot, index, stride = "scratch", self.cells[node], self.lanes
        wide = node in self.varying
        kind = graph.kinds[node]
        name = self.read(self._address(slot, index * stride), kind, wide)
        self.names[node] = name
        return name

    def _element_stride(self, name: str) -> int:
        slot = self.slots[name]
        return self.lanes if slot.per_lane else slot.stride

    def _address(self, slot: str, cell: int) -> str:
        if cell == 0:
            return f"%{slot}"
        address = self._new_name()
        self.lines.append(f"  {address} = getelementptr i64, ptr %{slot}, i64 {cell}")
        return address

    def _alignment(self, wide: bool) -> int:
        if wide and self.alignment is not None:
            return self.alignment
        return 8 * (self.lanes if wide else 1)

    def read(self, address: str, kind: str, wide: bool) -> str:
        """Load the value at an address."""
        cell = self._type(kind, wide, _CELL)
        name = self._new_name()
        self.lines.append(f"  {name} = load {cell}, ptr {address}, align {self._alignment(wide)}")
        if kind == BOOL:
            is_true = self._new_name()
            self.lines.append(f"  {is_true} = icmp ne {cell} {name}, {_zero(cell)}")
            return is_true
        return name

    def store(self, slot: str, index: int, node: int, *, wide: bool) -> None:
        """Store a value in a slot."""
        stride = self.lanes if slot == "scratch" else self._element_stride(slot)
        self.write(self._address(slot, index * stride), node, wide=wide)

    def write(self, address: str, node: int, *, wide: bool) -> None:
        """Store a value at an address."""
        kind = self.graph.kinds[node]
        value = self.operand(node, wide)
        cell = self._type(kind, wide, _CELL)
        if kind == BOOL:
            integer = self._new_name()
            self.lines.append(f"  {integer} = zext {self._type(kind, wide)} {value} to {cell}")
            value = integer
        self.lines.append(f"  store {cell} {value}, ptr {address}, align {self._alignment(wide)}")

    # operations

    def _emit_node(self, node: int, op: str) -> None:
        wide, args = node in self.varying, self.graph.args[node]
        kind = self.graph.kinds[args[-1]] if args else FLOAT
        self.names[node] = self._operation(op, kind, [self.operand(a, wide) for a in args], wide)

    def _operation(self, op: str, kind: str, operands: list[str], wide: bool) -> str:
        """Emit an operation whose last argument is of a kind; returns the name of its result."""
        type_ = self._type(kind, wide)
        if op in _FLOAT_OPS:
            code = f"{_FLOAT_OPS[op]} {type_} {operands[0]}, {operands[1]}"
        elif op == "fma":
            code = self._intrinsic("fma", wide, operands)
        elif op == "neg":
            code = f"fneg {type_} {operands[0]}"
        elif op == "select":
            code = f"select {self._type(BOOL, wide)} {operands[0]}, {type_} {operands[1]}, {type_} {operands[2]}"
        elif op in _FLOAT_COMPARISONS:
            if kind == FLOAT:
                code = f"fcmp {_FLOAT_COMPARISONS[op]} {type_} {operands[0]}, {operands[1]}"
            else:
                code = f"icmp {_INTEGER_COMPARISONS[op]} {type_} {operands[0]}, {operands[1]}"
        elif op in _LOGIC_OPS:
            code = f"{op} {type_} {operands[0]}, {operands[1]}"
        elif op == "not":
            code = f"xor {type_} {operands[0]}, {self._all_ones(wide)}"
        elif op in _INTRINSICS:
            code = self._intrinsic(_INTRINSICS[op], wide, operands)
        elif op in _INTEGER_OPS:
            code = f"{_INTEGER_OPS[op]} {type_} {operands[0]}, {operands[1]}"
        elif op in ("idiv", "irem"):
            code = self._integer_division(op, type_, wide, operands)
        elif op == "bits":
            code = f"bitcast {type_} {operands[0]} to {self._type(INT, wide)}"
        elif op == "from_bits":
            code = f"bitcast {type_} {operands[0]} to {self._type(FLOAT, wide)}"
        elif op == "to_float":
            code = f"sitofp {type_} {operands[0]} to {self._type(FLOAT, wide)}"
        elif op == "to_int":
            code = self._saturating_conversion(wide, operands)
        elif op == "float32":
            float_type = type_.replace("double", "float")
            truncated = self._new_name()
            self.lines.append(f"  {truncated} = fptrunc {type_} {operands[0]} to {float_type}")
            code = f"fpext {float_type} {truncated} to {type_}"
        else:
            return self._library_call(op, wide, operands)
        name = self._new_name()
        self.lines.append(f"  {name} = {code}")
        return name

    # superwords

    def _emit_superword(self, superword: Superword) -> None:
        """Emit a superword, as one node with as many lanes."""
        assert self.packing is not None and self.lanes == 1
        graph, first = self.graph, superword[0]
        rows = list(self.packing.operands(superword))
        operands = [self._vector(row) for row in rows]
        self.lanes = len(superword)
        name = self._operation(graph.ops[first], graph.kinds[rows[-1][0]], operands, True)
        vector = self._type(graph.kinds[first], True)
        self.lanes = 1
        self.vectors[superword] = name
        for lane, node in enumerate(superword):
            self.vector_elements[node] = vector, name, lane
        if first in self.cells and graph.kinds[first] == FLOAT:
            address = self._address("scratch", self.cells[first])
            self.lines.append(f"  store {vector} {name}, ptr {address}, align 8")
        elif first in self.cells:
            for node in superword:
                self.store("scratch", self.cells[node], node, wide=False)

    def _vector(self, row: Superword) -> str:
        """Name of a vector of values, which is loaded, broadcast or assembled from scalars if it does not exist yet."""
        assert self.packing is not None
        graph, first, count = self.graph, row[0], len(row)
        if row in self.vectors:
            return self.vectors[row]
        type_ = _SCALAR[graph.kinds[first]]
        vector = f"<{count} x {type_}>"
        if all(node in graph.constants for node in row):
            return f"<{', '.join(f'{type_} {_literal(graph.constants[node])}' for node in row)}>"
        if self.packing.superword_of.get(first) == row and graph.kinds[first] == FLOAT:
            address, name = self._address("scratch", self.cells[first]), self._new_name()  # spilled by an earlier block
            self.lines.append(f"  {name} = load {vector}, ptr {address}, align 8")
        elif all(node == first for node in row):
            self.lanes, text = count, self.operand(first, False)
            name = self._broadcast(first, text)
            self.lanes = 1
        else:
            name = "poison"
            for lane, node in enumerate(row):
                inserted, text = self._new_name(), self.operand(node, False)
                self.lines.append(f"  {inserted} = insertelement {vector} {name}, {type_} {text}, i64 {lane}")
                name = inserted
        self.vectors[row] = name
        return name

    def _extract(self, node: int) -> str:
        """Extract one element of a vector."""
        type_, vector, lane = self.vector_elements[node]
        name = self._new_name()
        self.lines.append(f"  {name} = extractelement {type_} {vector}, i64 {lane}")
        self.names[node] = name
        return name

    def _all_ones(self, wide: bool) -> str:
        return "splat (i1 true)" if wide and self.lanes > 1 else "true"

    def _intrinsic(self, name: str, wide: bool, operands: list[str]) -> str:
        type_ = self._type(FLOAT, wide)
        suffix = f"v{self.lanes}f64" if wide and self.lanes > 1 else "f64"
        self.declarations.add(f"declare {type_} @llvm.{name}.{suffix}({', '.join([type_] * len(operands))})")
        return f"call {type_} @llvm.{name}.{suffix}({', '.join(f'{type_} {o}' for o in operands)})"

    def _saturating_conversion(self, wide: bool, operands: list[str]) -> str:
        """Conversion to i64, truncating towards zero; values out of range saturate, and NaN becomes zero."""
        type_, result = self._type(FLOAT, wide), self._type(INT, wide)
        suffix = f"v{self.lanes}i64.v{self.lanes}f64" if wide and self.lanes > 1 else "i64.f64"
        self.declarations.add(f"declare {result} @llvm.fptosi.sat.{suffix}({type_})")
        return f"call {result} @llvm.fptosi.sat.{suffix}({type_} {operands[0]})"

    def _integer_division(self, op: str, type_: str, wide: bool, operands: list[str]) -> str:
        """Division without traps: for divisor 0 the quotient is -1 and the remainder the dividend, as in XLA."""
        negated, is_zero, is_minus_one, special, divisor, result = (self._new_name() for _ in range(6))
        bool_type = self._type(BOOL, wide)
        minus_one, one = (f"splat (i64 {v})" if wide and self.lanes > 1 else str(v) for v in (-1, 1))
        zero = _zero(type_)
        self.lines += [
            f"  {is_zero} = icmp eq {type_} {operands[1]}, {zero}",
            f"  {is_minus_one} = icmp eq {type_} {operands[1]}, {minus_one}",
            f"  {special} = or {bool_type} {is_zero}, {is_minus_one}",
            f"  {divisor} = select {bool_type} {special}, {type_} {one}, {type_} {operands[1]}",
            f"  {result} = {'sdiv' if op == 'idiv' else 'srem'} {type_} {operands[0]}, {divisor}",
            f"  {negated} = sub {type_} {zero}, {operands[0]}",
        ]
        by_minus_one, by_zero = (negated, minus_one) if op == "idiv" else (zero, operands[0])
        regular = self._new_name()
        self.lines.append(f"  {regular} = select {bool_type} {is_minus_one}, {type_} {by_minus_one}, {type_} {result}")
        return f"select {bool_type} {is_zero}, {type_} {by_zero}, {type_} {regular}"

    def _library_call(self, op: str, wide: bool, operands: list[str]) -> str:
        """Call the C library, lane by lane."""
        function = _LIBRARY.get(op, op)
        if op not in _C_FUNCTIONS:
            raise UnsupportedOperationError(f"the operation {op!r} is not supported by the native back-end")
        self.declarations.add(f"declare double @{function}({', '.join(['double'] * len(operands))})")
        if not wide or self.lanes == 1:
            name = self._new_name()
            self.lines.append(f"  {name} = call double @{function}({', '.join(f'double {o}' for o in operands)})")
            return name
        vector = self._type(FLOAT, True)
        result = "poison"
        for lane in range(self.lanes):
            arguments = []
            for o in operands:
                scalar = self._new_name()
                self.lines.append(f"  {scalar} = extractelement {vector} {o}, i64 {lane}")
                arguments.append(f"double {scalar}")
            value, inserted = self._new_name(), self._new_name()
            self.lines.append(f"  {value} = call double @{function}({', '.join(arguments)})")
            self.lines.append(f"  {inserted} = insertelement {vector} {result}, double {value}, i64 {lane}")
            result = inserted
        return result


_C_FUNCTIONS = {*(name for name, function in FUNCTIONS.items() if function.is_in_c), "pow", "atan2", "rem"}


def _zero(type_: str) -> str:
    return "zeroinitializer" if type_.startswith("<") else "0"


def _literal(value: float | int | bool) -> str:
    """LLVM literal of a constant; floats as bit patterns, which is exact."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"

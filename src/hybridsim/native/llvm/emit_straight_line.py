"""Straight code: nodes of a graph as LLVM instructions, each value one number or W of them side by side.

Text is written directly, because building it through an object model takes many times longer than compiling it.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hybridsim.core.errors import UnsupportedPrimitive
from hybridsim.native.graph.arrays import ArrayInput, Stack
from hybridsim.native.graph.graph import BOOL, FLOAT, INT, Graph
from hybridsim.native.graph.superword import Bundle, Packing

_SCALAR = {FLOAT: "double", INT: "i64", BOOL: "i1"}
_CELL = {FLOAT: "double", INT: "i64", BOOL: "i64"}
"""How values lie in memory: eight bytes each."""
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
"""Functions of the C library whose names differ; the others are called by their own."""


@dataclass(frozen=True)
class Slot:
    """An array that a function reads or writes."""

    name: str
    per_lane: bool
    """Has every lane its own numbers?"""
    stride: int = 1
    """Cells from one number to the next, for a uniform slot that is one lane of packed vectors."""


SCRATCH = Slot("scratch", True)
"""Memory for values that pass from piece to piece, and for arrays."""
RELOADED_OPS = ("const", "input", "part")
"""Operations that cost nothing but a load, so that each piece does them for itself."""


class StraightLineBlock:
    """Text of one straight-line function."""

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
        """Begin a piece.

        Args:
            graph: that its nodes are in.
            varying: nodes that differ between lanes.
            slots: of the function.
            lanes: W.
            cells: where in the scratch memory the values that pass from piece to piece and the arrays are.
            declarations: where to put those of the functions that it calls.
            prefix: of its names.
            alignment: of vectors in memory [bytes], if not their size.
            packing: values that are computed together; for a single lane.
        """
        self.graph, self.varying, self.lanes = graph, varying, lanes
        self.slots = {s.name: s for s in slots}
        self.slot_order = (*slots, SCRATCH)
        self.cells, self.declarations = cells, declarations
        self.prefix, self.alignment, self.packing = prefix, alignment, packing
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.splats: dict[tuple[int, int], str] = {}
        self.vectors: dict[Bundle, str] = {}
        """Bundles of values that are side by side in a vector."""
        self.places: dict[int, tuple[str, str, int]] = {}
        """Of values that are in a vector: its type, its name, and the lane."""
        self.count = 0

    def text(self, name: str, nodes: list[int], writes: Sequence[tuple[tuple[str, int], int]]) -> str:
        """A function that computes nodes and writes results."""
        self.compute(nodes)
        for (slot, index), node in writes:
            self.store(slot, index, node, wide=self.slots[slot].per_lane)
        arguments = ", ".join(f"ptr noalias %{s.name}" for s in self.slot_order)
        body = "\n".join(self.lines)
        return f"define void @{name}({arguments}) #0 {{\n{body}\n  ret void\n}}\n"

    def compute(self, nodes: Sequence[int]) -> None:
        """Write the instructions of nodes."""
        graph, bundle_of = self.graph, self.packing.bundle_of if self.packing else {}
        for node in nodes:
            op = graph.ops[node]
            if node in bundle_of:
                if node == bundle_of[node][0]:
                    self._compute_together(bundle_of[node])
                continue
            if op in RELOADED_OPS or isinstance(graph.data[node], ArrayInput):
                continue  # written where it is first used
            if isinstance(graph.data[node], Stack):
                for k, a in enumerate(graph.args[node]):
                    self.store("scratch", self.cells[node] + k, a, wide=True)
                continue
            self._compute(node, op)
            if node in self.cells:
                self.store("scratch", self.cells[node], node, wide=node in self.varying)

    # types and operands

    def _type(self, kind: str, wide: bool, table=_SCALAR) -> str:
        return f"<{self.lanes} x {table[kind]}>" if wide and self.lanes > 1 else table[kind]

    def _fresh(self) -> str:
        self.count += 1
        return f"%{self.prefix}{self.count}"

    def operand(self, node: int, wide: bool) -> str:
        """The text of a value, as a vector if asked."""
        constant = self.graph.constants.get(node)
        if constant is not None:
            text = _literal(constant)
            if wide and self.lanes > 1:
                return f"splat ({_SCALAR[self.graph.kinds[node]]} {text})"
            return text
        name = self.names.get(node)
        if name is None:
            name = self._taken_out(node) if node in self.places else self._loaded(node)
        if wide and self.lanes > 1 and node not in self.varying:
            return self._splat(node, name)
        return name

    def _splat(self, node: int, name: str) -> str:
        found = self.splats.get((node, self.lanes))
        if found is None:
            kind = _SCALAR[self.graph.kinds[node]]
            vector = f"<{self.lanes} x {kind}>"
            first, found = self._fresh(), self._fresh()
            self.lines.append(f"  {first} = insertelement {vector} poison, {kind} {name}, i64 0")
            self.lines.append(
                f"  {found} = shufflevector {vector} {first}, {vector} poison, <{self.lanes} x i32> zeroinitializer"
            )
            self.splats[node, self.lanes] = found
        return found

    def _loaded(self, node: int) -> str:
        """Read an input, or a value that another piece computed."""
        graph = self.graph
        if graph.ops[node] == "input":
            slot, index = graph.data[node]
            step = self._step(slot)
        elif graph.ops[node] == "part":
            slot, index, step = "scratch", self.cells[graph.args[node][0]] + graph.data[node], self.lanes
        else:
            slot, index, step = "scratch", self.cells[node], self.lanes
        wide = node in self.varying
        kind = graph.kinds[node]
        name = self.read(self._address(slot, index * step), kind, wide)
        self.names[node] = name
        return name

    def _step(self, slot: str) -> int:
        own = self.slots[slot]
        return self.lanes if own.per_lane else own.stride

    def _address(self, slot: str, cell: int) -> str:
        if cell == 0:
            return f"%{slot}"
        address = self._fresh()
        self.lines.append(f"  {address} = getelementptr i64, ptr %{slot}, i64 {cell}")
        return address

    def _alignment(self, wide: bool) -> int:
        if wide and self.alignment is not None:
            return self.alignment
        return 8 * (self.lanes if wide else 1)

    def read(self, address: str, kind: str, wide: bool) -> str:
        """The value at an address."""
        cell = self._type(kind, wide, _CELL)
        name = self._fresh()
        self.lines.append(f"  {name} = load {cell}, ptr {address}, align {self._alignment(wide)}")
        if kind == BOOL:
            truth = self._fresh()
            self.lines.append(f"  {truth} = icmp ne {cell} {name}, {_zero(cell)}")
            return truth
        return name

    def store(self, slot: str, index: int, node: int, *, wide: bool) -> None:
        """Write a value to a slot."""
        step = self.lanes if slot == "scratch" else self._step(slot)
        self.write(self._address(slot, index * step), node, wide=wide)

    def write(self, address: str, node: int, *, wide: bool) -> None:
        """Write a value to an address."""
        kind = self.graph.kinds[node]
        value = self.operand(node, wide)
        cell = self._type(kind, wide, _CELL)
        if kind == BOOL:
            number = self._fresh()
            self.lines.append(f"  {number} = zext {self._type(kind, wide)} {value} to {cell}")
            value = number
        self.lines.append(f"  store {cell} {value}, ptr {address}, align {self._alignment(wide)}")

    # operations

    def _compute(self, node: int, op: str) -> None:
        wide, args = node in self.varying, self.graph.args[node]
        kind = self.graph.kinds[args[-1]] if args else FLOAT
        self.names[node] = self._computed(op, kind, [self.operand(a, wide) for a in args], wide)

    def _computed(self, op: str, kind: str, operands: list[str], wide: bool) -> str:
        """Write an operation whose last argument is of a kind; returns the name of its result."""
        own = self._type(kind, wide)
        if op in _FLOAT_OPS:
            code = f"{_FLOAT_OPS[op]} {own} {operands[0]}, {operands[1]}"
        elif op == "fma":
            code = self._intrinsic("fma", wide, operands)
        elif op == "neg":
            code = f"fneg {own} {operands[0]}"
        elif op == "select":
            code = f"select {self._type(BOOL, wide)} {operands[0]}, {own} {operands[1]}, {own} {operands[2]}"
        elif op in _FLOAT_COMPARISONS:
            if kind == FLOAT:
                code = f"fcmp {_FLOAT_COMPARISONS[op]} {own} {operands[0]}, {operands[1]}"
            else:
                code = f"icmp {_INTEGER_COMPARISONS[op]} {own} {operands[0]}, {operands[1]}"
        elif op in _LOGIC_OPS:
            code = f"{op} {own} {operands[0]}, {operands[1]}"
        elif op == "not":
            code = f"xor {own} {operands[0]}, {self._all_ones(wide)}"
        elif op in _INTRINSICS:
            code = self._intrinsic(_INTRINSICS[op], wide, operands)
        elif op in _INTEGER_OPS:
            code = f"{_INTEGER_OPS[op]} {own} {operands[0]}, {operands[1]}"
        elif op in ("idiv", "irem"):
            code = self._integer_division(op, own, wide, operands)
        elif op == "bits":
            code = f"bitcast {own} {operands[0]} to {self._type(INT, wide)}"
        elif op == "from_bits":
            code = f"bitcast {own} {operands[0]} to {self._type(FLOAT, wide)}"
        elif op == "to_float":
            code = f"sitofp {own} {operands[0]} to {self._type(FLOAT, wide)}"
        elif op == "to_int":
            code = self._saturating(wide, operands)
        elif op == "single":
            short = own.replace("double", "float")
            cut = self._fresh()
            self.lines.append(f"  {cut} = fptrunc {own} {operands[0]} to {short}")
            code = f"fpext {short} {cut} to {own}"
        else:
            return self._library_call(op, wide, operands)
        name = self._fresh()
        self.lines.append(f"  {name} = {code}")
        return name

    # values side by side

    def _compute_together(self, bundle: Bundle) -> None:
        """Write the instructions of a bundle, as those of one node of that many lanes."""
        assert self.packing is not None and self.lanes == 1
        graph, first = self.graph, bundle[0]
        rows = list(self.packing.operands(bundle))
        operands = [self._side_by_side(row) for row in rows]
        self.lanes = len(bundle)
        name = self._computed(graph.ops[first], graph.kinds[rows[-1][0]], operands, True)
        vector = self._type(graph.kinds[first], True)
        self.lanes = 1
        self.vectors[bundle] = name
        for lane, node in enumerate(bundle):
            self.places[node] = vector, name, lane
        if first in self.cells and graph.kinds[first] == FLOAT:
            address = self._address("scratch", self.cells[first])
            self.lines.append(f"  store {vector} {name}, ptr {address}, align 8")
        elif first in self.cells:
            for node in bundle:
                self.store("scratch", self.cells[node], node, wide=False)

    def _side_by_side(self, row: Bundle) -> str:
        """A vector of values."""
        assert self.packing is not None
        graph, first, count = self.graph, row[0], len(row)
        if row in self.vectors:
            return self.vectors[row]
        kind = _SCALAR[graph.kinds[first]]
        vector = f"<{count} x {kind}>"
        if all(node in graph.constants for node in row):
            return f"<{', '.join(f'{kind} {_literal(graph.constants[node])}' for node in row)}>"
        if self.packing.bundle_of.get(first) == row and graph.kinds[first] == FLOAT:
            address, name = self._address("scratch", self.cells[first]), self._fresh()  # of an earlier piece
            self.lines.append(f"  {name} = load {vector}, ptr {address}, align 8")
        elif all(node == first for node in row):
            self.lanes, text = count, self.operand(first, False)
            name = self._splat(first, text)
            self.lanes = 1
        else:
            name = "poison"
            for lane, node in enumerate(row):
                joined, text = self._fresh(), self.operand(node, False)
                self.lines.append(f"  {joined} = insertelement {vector} {name}, {kind} {text}, i64 {lane}")
                name = joined
        self.vectors[row] = name
        return name

    def _taken_out(self, node: int) -> str:
        """One value of a vector."""
        vector, own, lane = self.places[node]
        name = self._fresh()
        self.lines.append(f"  {name} = extractelement {vector} {own}, i64 {lane}")
        self.names[node] = name
        return name

    def _all_ones(self, wide: bool) -> str:
        return "splat (i1 true)" if wide and self.lanes > 1 else "true"

    def _intrinsic(self, name: str, wide: bool, operands: list[str]) -> str:
        own = self._type(FLOAT, wide)
        suffix = f"v{self.lanes}f64" if wide and self.lanes > 1 else "f64"
        self.declarations.add(f"declare {own} @llvm.{name}.{suffix}({', '.join([own] * len(operands))})")
        return f"call {own} @llvm.{name}.{suffix}({', '.join(f'{own} {o}' for o in operands)})"

    def _saturating(self, wide: bool, operands: list[str]) -> str:
        """Cut towards zero; numbers too large become the largest, and NaN zero."""
        own, result = self._type(FLOAT, wide), self._type(INT, wide)
        suffix = f"v{self.lanes}i64.v{self.lanes}f64" if wide and self.lanes > 1 else "i64.f64"
        self.declarations.add(f"declare {result} @llvm.fptosi.sat.{suffix}({own})")
        return f"call {result} @llvm.fptosi.sat.{suffix}({own} {operands[0]})"

    def _integer_division(self, op: str, own: str, wide: bool, operands: list[str]) -> str:
        """Division that cannot trap: by 0 the quotient is -1 and the rest the dividend, as in XLA."""
        zero, is_zero, is_minus, special, divisor, result = (self._fresh() for _ in range(6))
        truth = self._type(BOOL, wide)
        minus, one = (f"splat (i64 {v})" if wide and self.lanes > 1 else str(v) for v in (-1, 1))
        nothing = _zero(own)
        self.lines += [
            f"  {is_zero} = icmp eq {own} {operands[1]}, {nothing}",
            f"  {is_minus} = icmp eq {own} {operands[1]}, {minus}",
            f"  {special} = or {truth} {is_zero}, {is_minus}",
            f"  {divisor} = select {truth} {special}, {own} {one}, {own} {operands[1]}",
            f"  {result} = {'sdiv' if op == 'idiv' else 'srem'} {own} {operands[0]}, {divisor}",
            f"  {zero} = sub {own} {nothing}, {operands[0]}",
        ]
        by_minus, by_zero = (zero, minus) if op == "idiv" else (nothing, operands[0])
        after = self._fresh()
        self.lines.append(f"  {after} = select {truth} {is_minus}, {own} {by_minus}, {own} {result}")
        return f"select {truth} {is_zero}, {own} {by_zero}, {own} {after}"

    def _library_call(self, op: str, wide: bool, operands: list[str]) -> str:
        """Call the C library, lane by lane."""
        function = _LIBRARY.get(op, op)
        if op not in _C_FUNCTIONS:
            raise UnsupportedPrimitive(f"the operation {op!r} has no native code")
        self.declarations.add(f"declare double @{function}({', '.join(['double'] * len(operands))})")
        if not wide or self.lanes == 1:
            name = self._fresh()
            self.lines.append(f"  {name} = call double @{function}({', '.join(f'double {o}' for o in operands)})")
            return name
        vector = self._type(FLOAT, True)
        result = "poison"
        for lane in range(self.lanes):
            parts = []
            for o in operands:
                part = self._fresh()
                self.lines.append(f"  {part} = extractelement {vector} {o}, i64 {lane}")
                parts.append(f"double {part}")
            value, joined = self._fresh(), self._fresh()
            self.lines.append(f"  {value} = call double @{function}({', '.join(parts)})")
            self.lines.append(f"  {joined} = insertelement {vector} {result}, double {value}, i64 {lane}")
            result = joined
        return result


_C_FUNCTIONS = {
    *"sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log1p cbrt erf erfc".split(),
    *"pow atan2 rem".split(),
}


def _zero(type_: str) -> str:
    return "zeroinitializer" if type_.startswith("<") else "0"


def _literal(value: float | int | bool) -> str:
    """A constant as LLVM writes it: floats as their bits, which loses nothing."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"

"""Loops over arrays as LLVM functions: an operation on each element, products, sums of outer products.

Lanes are trajectories, as everywhere; where there is one trajectory alone, several elements are computed side by side.
Every sum has the same order in both cases.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hybridsim.native.graph.arrays import ArrayInput, ElementwiseMap, MatrixVectorProduct, OuterProduct
from hybridsim.native.graph.graph import ARRAY, Graph
from hybridsim.native.graph.schedule import deepest_first
from hybridsim.native.llvm.code_writer import BLOCK, FunctionBuilder
from hybridsim.native.llvm.emit_straight_line import SCRATCH, Slot, StraightLineBlock

VECTOR_WIDTH = BLOCK
"""Elements side by side, where lanes are not trajectories."""
ACCUMULATORS = 48
"""Numbers that a product sums up at once: as many as registers have room for."""
MAX_ROWS = 12
"""Rows of a product that are summed up at once."""


class _Memory(NamedTuple):
    """Where the elements of an array lie."""

    base: str
    step: int
    """Cells from one to the next."""
    wide: bool
    """Has every lane its own?"""


class ArrayFunction:
    """Text of a function that computes or writes one array."""

    def __init__(
        self,
        graph: Graph,
        varying: set[int],
        slots: Sequence[Slot],
        lanes: int,
        cells: Mapping[int, int],
        declarations: set[str],
    ):
        """Begin a function; arguments as for `Piece`."""
        self.graph, self.varying, self.lanes, self.cells = graph, varying, lanes, cells
        self.slots, self.declarations = {s.name: s for s in slots}, declarations
        self.outer = StraightLineBlock(graph, varying, slots, lanes, cells, declarations)
        self.code = FunctionBuilder("", [])
        self.vector = f"<{lanes} x double>" if lanes > 1 else "double"

    def computed(self, name: str, node: int) -> str:
        """A function that computes an array."""
        self._begin(name)
        spec = self.graph.data[node]
        if isinstance(spec, ElementwiseMap):
            self._map(node, spec)
        elif isinstance(spec, MatrixVectorProduct):
            self._product(node, spec)
        else:
            self._outer(node, spec)
        return self.code.text()

    def repeated(self, name: str, node: int, body: str) -> str:
        """A function that computes the array of a loop by calling the function of its body."""
        self._begin(name)
        code, spec, lanes = self.code, self.graph.data[node], self.lanes
        first, *viewed = (self._memory(a) for a in self.graph.args[node])
        target, carried = self._memory(node).base, len(spec.carry_kinds)
        buffer = code.cell(target, spec.size * lanes)
        other = code.cell(buffer, carried * lanes)
        scratch = code.cell(other, carried * lanes)
        self._copy(first, buffer, carried)
        starts = [code.cell(m.base, v.offset * m.step) for m, v in zip(viewed, spec.views, strict=True)]
        results = [code.cell(target, start * lanes) for start in spec.result_offsets()]
        with code.loop(0, spec.trip_count) as turn:
            is_odd = code.value(f"trunc i64 {turn} to i1")
            old = code.value(f"select i1 {is_odd}, ptr {other}, ptr {buffer}")
            new = code.value(f"select i1 {is_odd}, ptr {buffer}, ptr {other}")
            row = code.sub(spec.trip_count - 1, turn) if spec.reverse else turn
            given = [
                code.cell(start, code.mul(row, v.stride * m.step)) if v.stride else start
                for start, v, m in zip(starts, spec.views, viewed, strict=True)
            ]
            out = [
                code.cell(start, code.mul(row, size * lanes))
                for start, (size, _) in zip(results, spec.result_rows, strict=True)
            ]
            code.call(body, [old, new, *given, *out, scratch])
        last = other if spec.trip_count % 2 else buffer
        self._copy(_Memory(last, lanes, True), target, carried)
        return code.text()

    def _copy(self, source: _Memory, target: str, count: int) -> None:
        """Copy cells to memory of all lanes."""
        with self.code.loop(0, count) as k:
            value = self._load(source, k)
            address = self.code.cell(target, self.code.mul(k, self.lanes))
            self.code.do(f"store {self.vector} {value}, ptr {address}, align {8 * self.lanes}")

    def written(self, name: str, place: tuple[str, int], node: int) -> str:
        """A function that writes an array to a slot; to `sums` it is added, over all lanes."""
        self._begin(name)
        slot, first = place
        own = self.slots[slot]
        step = self.lanes if own.per_lane else own.stride
        target = self.code.cell(f"%{slot}", first * step)
        spec = self.graph.data[node]
        if slot == "sums" and isinstance(spec, OuterProduct):
            turned = self.code.value(f"alloca [{self.lanes * spec.columns} x double], align 64")
            for left, right in self._pairs(node):
                self._add_outer(spec, left, right, turned, target)
            return self.code.text()
        source = self._memory(node)
        with self.code.loop(0, spec.size) as k:
            value = self._load(source, k)
            address = self.code.cell(target, self.code.mul(k, step))
            if slot == "sums":
                total = self.code.value(f"load double, ptr {address}, align 8")
                for number in self._numbers(self._masked(value)):
                    total = self.code.value(f"fadd double {total}, {number}")
                self.code.do(f"store double {total}, ptr {address}, align 8")
            else:
                self.code.do(f"store {self.vector} {value}, ptr {address}, align {8 * self.lanes}")
        return self.code.text()

    def _begin(self, name: str) -> None:
        slots = (*self.slots.values(), SCRATCH)
        self.code = FunctionBuilder(name, [("ptr noalias", slot.name) for slot in slots])
        self.outer.lines = self.code.lines

    # memory

    def _memory(self, array: int) -> _Memory:
        spec = self.graph.data[array]
        if isinstance(spec, ArrayInput):
            slot = self.slots[spec.slot]
            step = self.lanes if slot.per_lane else slot.stride
            return _Memory(self.code.cell(f"%{slot.name}", spec.offset * step), step, slot.per_lane)
        return _Memory(self.code.cell("%scratch", self.cells[array] * self.lanes), self.lanes, True)

    def _load(self, memory: _Memory, k: str | int) -> str:
        """An element, for all lanes."""
        code = self.code
        address = code.cell(memory.base, k * memory.step if isinstance(k, int) else code.mul(k, memory.step))
        if memory.wide or self.lanes == 1:
            return code.value(f"load {self.vector}, ptr {address}, align {8 * self.lanes}")
        return self._spread(code.value(f"load double, ptr {address}, align 8"), self.lanes)

    def _spread(self, number: str, width: int) -> str:
        """A number in every place of a vector."""
        if width == 1:
            return number
        vector = f"<{width} x double>"
        first = self.code.value(f"insertelement {vector} poison, double {number}, i64 0")
        return self.code.value(f"shufflevector {vector} {first}, {vector} poison, <{width} x i32> zeroinitializer")

    def _numbers(self, vector: str) -> list[str]:
        """The numbers in a vector."""
        if self.lanes == 1:
            return [vector]
        return [self.code.value(f"extractelement {self.vector} {vector}, i64 {k}") for k in range(self.lanes)]

    def _masked(self, value: str) -> str:
        """A value that is zero in the lanes that only repeat others."""
        if self.lanes == 1:
            return value
        mask = self.code.value(f"load {self.vector}, ptr %mask, align {8 * self.lanes}")
        is_own = self.code.value(f"fcmp une {self.vector} {mask}, zeroinitializer")
        return self.code.value(
            f"select <{self.lanes} x i1> {is_own}, {self.vector} {value}, {self.vector} zeroinitializer"
        )

    def _multiply_add(self, vector: str, width: int, a: str, b: str, c: str, *, fma: bool) -> str:
        if not fma:
            product = self.code.value(f"fmul {vector} {a}, {b}")
            return self.code.value(f"fadd {vector} {product}, {c}")
        suffix = f"v{width}f64" if width > 1 else "f64"
        self.declarations.add(f"declare {vector} @llvm.fma.{suffix}({vector}, {vector}, {vector})")
        return self.code.value(f"call {vector} @llvm.fma.{suffix}({vector} {a}, {vector} {b}, {vector} {c})")

    # an operation on each element

    def _map(self, node: int, spec: ElementwiseMap) -> None:
        args = self.graph.args[node]
        memory = {k: self._memory(a) for k, a in enumerate(args) if self.graph.kinds[a] == ARRAY}
        shared = {
            k: (self.outer.operand(a, a in self.varying), a in self.varying and self.lanes > 1)
            for k, a in enumerate(args)
            if k not in memory
        }
        target = self._memory(node)
        if self.lanes > 1:
            self._elements(spec, memory, shared, target, 0, spec.size, 1)
            return
        beside = VECTOR_WIDTH if all(m.step == 1 for m in memory.values()) else 1
        whole = spec.size - spec.size % beside
        self._elements(spec, memory, shared, target, 0, whole, beside)
        if whole < spec.size:
            self._elements(spec, memory, shared, target, whole, spec.size, 1)

    def _elements(
        self,
        spec: ElementwiseMap,
        memory: dict[int, _Memory],
        shared: dict[int, tuple[str, bool]],
        target: _Memory,
        start: int,
        end: int,
        beside: int,
    ) -> None:
        """A loop over elements, so many side by side."""
        body, code, width = spec.body, self.code, self.lanes * beside
        order = deepest_first(body, [spec.result])
        inputs = {n: int(body.data[n][0][1:]) for n in order if body.ops[n] == "input"}
        varying = {n for n, k in inputs.items() if (shared[k][1] if k in shared else memory[k].wide or self.lanes == 1)}
        for n in order:
            if any(a in varying for a in body.args[n]):
                varying.add(n)
        alignment = None if beside == 1 else 8
        piece = StraightLineBlock(
            body, varying, (), width, {}, self.declarations, prefix=f"b{start}_", alignment=alignment
        )
        piece.lines = code.lines
        with code.loop(start, end, step=beside) as i:
            for n, k in inputs.items():
                if k in shared:
                    piece.names[n] = shared[k][0]
                else:
                    address = code.cell(memory[k].base, code.mul(i, memory[k].step))
                    piece.names[n] = piece.read(address, body.kinds[n], n in varying)
            piece.compute(order)
            piece.write(code.cell(target.base, code.mul(i, target.step)), spec.result, wide=True)

    # products

    def _product(self, node: int, spec: MatrixVectorProduct) -> None:
        weights, vector = (self._memory(a) for a in self.graph.args[node])
        target = self._memory(node)
        weights = weights._replace(base=self.code.cell(weights.base, spec.offset * weights.step))
        if self.lanes == 1:
            self._product_alone(spec, weights, vector, target)
            return
        most = max(min(MAX_ROWS, ACCUMULATORS // self.lanes), 1)
        whole = spec.size - spec.size % most
        if whole:
            with self.code.loop(0, whole, step=most) as i:
                self._rows(spec, weights, vector, target, i, most)
        if whole < spec.size:
            self._rows(spec, weights, vector, target, str(whole), spec.size - whole)

    def _rows(
        self, spec: MatrixVectorProduct, weights: _Memory, vector: _Memory, target: _Memory, i: str, count: int
    ) -> None:
        """Some rows of a product, each lane by itself."""
        code = self.code
        first = code.cell(weights.base, code.mul(i, spec.row_stride * weights.step))

        def turn(k: str, sums: list[str]) -> list[str]:
            x = self._load(vector, k)
            column = code.cell(first, code.mul(k, spec.column_stride * weights.step))
            entries = [self._load(weights._replace(base=column), r * spec.row_stride) for r in range(count)]
            return [
                self._multiply_add(self.vector, self.lanes, w, x, total, fma=spec.fma)
                for w, total in zip(entries, sums, strict=True)
            ]

        sums = code.fold(spec.columns, self.vector, ["zeroinitializer"] * count, turn)
        start = code.cell(target.base, code.mul(i, self.lanes))
        for r, total in enumerate(sums):
            code.do(f"store {self.vector} {total}, ptr {code.cell(start, r * self.lanes)}, align {8 * self.lanes}")

    def _product_alone(self, spec: MatrixVectorProduct, weights: _Memory, vector: _Memory, target: _Memory) -> None:
        """A product of one trajectory: rows side by side."""
        done = 0
        for width, at_once in ((VECTOR_WIDTH, 4), (VECTOR_WIDTH, 1), (1, 1)):
            rows = width * at_once
            until = spec.size - (spec.size - done) % rows
            if until > done:
                with self.code.loop(done, until, step=rows) as i:
                    self._rows_beside(spec, weights, vector, target, i, width, at_once)
            done = until

    def _rows_beside(
        self,
        spec: MatrixVectorProduct,
        weights: _Memory,
        vector: _Memory,
        target: _Memory,
        i: str,
        width: int,
        at_once: int,
    ) -> None:
        """Some rows of a product of one trajectory, `at_once` vectors of `width` rows."""
        code = self.code
        kind = f"<{width} x double>" if width > 1 else "double"
        row, column = spec.row_stride * weights.step, spec.column_stride * weights.step
        first = code.cell(weights.base, code.mul(i, row))
        sums = ["zeroinitializer" if width > 1 else "0.0"] * at_once
        # rows that lie in memory along themselves are read four columns at a time and turned
        turning = width == VECTOR_WIDTH and column == 1
        columns = VECTOR_WIDTH if turning else 1

        def turn(k: str, sums: list[str]) -> list[str]:
            k = code.mul(k, columns)
            values = [self._spread(self._load(vector, code.add(k, c)), width) for c in range(columns)]
            start = code.cell(first, code.mul(k, column))
            results = []
            for g, total in enumerate(sums):
                address = code.cell(start, g * width * row)
                entries = self._turned(address, row) if turning else [self._column(kind, address, row, width)]
                for w, x in zip(entries, values, strict=True):
                    total = self._multiply_add(kind, width, w, x, total, fma=spec.fma)
                results.append(total)
            return results

        sums = code.fold(spec.columns // columns, kind, sums, turn)
        for k in range(spec.columns - spec.columns % columns, spec.columns):
            x = self._spread(self._load(vector, k), width)
            for g, total in enumerate(sums):
                entries = self._column(kind, code.cell(first, g * width * row + k * column), row, width)
                sums[g] = self._multiply_add(kind, width, entries, x, total, fma=spec.fma)
        start = code.cell(target.base, i)
        for g, total in enumerate(sums):
            code.do(f"store {kind} {total}, ptr {code.cell(start, g * width)}, align 8")

    def _column(self, kind: str, address: str, row: int, width: int) -> str:
        """Entries of one column, from neighbouring rows."""
        code = self.code
        if row == 1 or width == 1:
            return code.value(f"load {kind}, ptr {address}, align 8")
        result = "poison"
        for r in range(width):
            number = code.value(f"load double, ptr {code.cell(address, r * row)}, align 8")
            result = code.value(f"insertelement {kind} {result}, double {number}, i64 {r}")
        return result

    def _turned(self, address: str, row: int) -> list[str]:
        """Four columns of four rows, each row read as a whole."""
        code, kind = self.code, f"<{VECTOR_WIDTH} x double>"
        rows = [code.value(f"load {kind}, ptr {code.cell(address, r * row)}, align 8") for r in range(VECTOR_WIDTH)]
        return code.turned(rows, "double")

    # outer products

    def _pairs(self, node: int) -> list[tuple[_Memory, _Memory]]:
        args = [self._memory(a) for a in self.graph.args[node]]
        return list(zip(args[::2], args[1::2], strict=True))

    def _outer(self, node: int, spec: OuterProduct) -> None:
        """An outer product written down."""
        code, target, pairs = self.code, self._memory(node), self._pairs(node)
        with code.loop(0, spec.rows) as i:
            lefts = [self._load(left, i) for left, _ in pairs]
            row = code.cell(target.base, code.mul(i, spec.columns * self.lanes))
            with code.loop(0, spec.columns) as j:
                total = "zeroinitializer" if self.lanes > 1 else "0.0"
                for value, (_, right) in zip(lefts, pairs, strict=True):
                    other = self._load(right, j)
                    total = self._multiply_add(self.vector, self.lanes, value, other, total, fma=spec.fma)
                address = code.cell(row, code.mul(j, self.lanes))
                code.do(f"store {self.vector} {total}, ptr {address}, align {8 * self.lanes}")

    def _add_outer(self, spec: OuterProduct, left: _Memory, right: _Memory, turned: str, target: str) -> None:
        """Add an outer product to a matrix that all lanes share, one lane after the other.

        The right side is first turned to lie lane by lane in memory, so that a vector holds neighbours of one lane.
        """
        code, lanes, columns = self.code, self.lanes, spec.columns
        with code.loop(0, columns) as j:
            for lane, number in enumerate(self._numbers(self._load(right, j))):
                code.do(f"store double {number}, ptr {code.cell(code.cell(turned, lane * columns), j)}, align 8")
        at_once = 2 if spec.rows % 2 == 0 else 1
        with code.loop(0, spec.rows, step=at_once) as i:
            factors = [self._numbers(self._masked(self._load(left, code.add(i, r)))) for r in range(at_once)]
            first = code.cell(target, code.mul(i, columns))
            whole = columns - columns % VECTOR_WIDTH
            for start, end, width in ((0, whole, VECTOR_WIDTH), (whole, columns, 1)):
                if start == end:
                    continue
                kind = f"<{width} x double>" if width > 1 else "double"
                spread = [[self._spread(f, width) for f in row] for row in factors]
                with code.loop(start, end, step=width) as j:
                    beside = code.cell(turned, j)
                    others = [
                        code.value(f"load {kind}, ptr {code.cell(beside, lane * columns)}, align 8")
                        for lane in range(lanes)
                    ]
                    for r, row in enumerate(spread):
                        address = code.cell(code.cell(first, r * columns), j)
                        total = code.value(f"load {kind}, ptr {address}, align 8")
                        for factor, other in zip(row, others, strict=True):
                            total = self._multiply_add(kind, width, factor, other, total, fma=spec.fma)
                        code.do(f"store {kind} {total}, ptr {address}, align 8")

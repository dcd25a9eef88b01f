"""Loops over arrays as LLVM functions: elementwise maps, matrix-vector products, sums of outer products.

Lanes are trajectories; for a single trajectory they are elements of an array. The order of summation is the same in
both cases.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hybridsim.native.graph.arrays import ArrayInput, ElementwiseMap, MatrixVectorProduct, OuterProduct
from hybridsim.native.graph.graph import ARRAY, Graph
from hybridsim.native.graph.schedule import depth_first_schedule
from hybridsim.native.llvm.emit_straight_line import SCRATCH, Slot, StraightLineBlock
from hybridsim.native.llvm.function_builder import BLOCK, FunctionBuilder

VECTOR_WIDTH = BLOCK
"""Elements per vector for a single trajectory, whose lanes are elements."""
MAX_ACCUMULATORS = 48
"""Accumulators of a product [scalars]: as many as fit into registers."""
MAX_ROWS = 12
"""Maximum number of rows of a product accumulated in one loop."""


class _Memory(NamedTuple):
    """Location of the elements of an array."""

    base: str
    stride: int
    """Cells from one element to the next."""
    per_lane: bool
    """Whether elements are per lane."""


class ArrayFunction:
    """Function that computes or writes one array, under construction."""

    def __init__(
        self,
        graph: Graph,
        varying: set[int],
        slots: Sequence[Slot],
        lanes: int,
        cells: Mapping[int, int],
        declarations: set[str],
    ):
        """Open a function; arguments as for `StraightLineBlock`."""
        self.graph, self.varying, self.lanes, self.cells = graph, varying, lanes, cells
        self.slots, self.declarations = {s.name: s for s in slots}, declarations
        self.outer = StraightLineBlock(graph, varying, slots, lanes, cells, declarations)
        self.code = FunctionBuilder("", [])
        self.vector = f"<{lanes} x double>" if lanes > 1 else "double"

    def computation(self, name: str, node: int) -> str:
        """IR of a function that computes an array."""
        self._begin(name)
        spec = self.graph.data[node]
        if isinstance(spec, ElementwiseMap):
            self._emit_map(node, spec)
        elif isinstance(spec, MatrixVectorProduct):
            self._emit_matrix_vector(node, spec)
        else:
            self._emit_outer(node, spec)
        return self.code.text()

    def loop(self, name: str, node: int, body: str) -> str:
        """IR of a function that computes the array of a loop by calling the function of its body."""
        self._begin(name)
        code, spec, lanes = self.code, self.graph.data[node], self.lanes
        initial, *view_arrays = (self._memory(a) for a in self.graph.args[node])
        target, carry_cells = self._memory(node).base, len(spec.carry_kinds)
        buffer = code.cell(target, spec.size * lanes)
        other = code.cell(buffer, carry_cells * lanes)
        scratch = code.cell(other, carry_cells * lanes)
        self._copy(initial, buffer, carry_cells)
        views = [code.cell(m.base, v.offset * m.stride) for m, v in zip(view_arrays, spec.views, strict=True)]
        results = [code.cell(target, start * lanes) for start in spec.result_offsets()]
        with code.loop(0, spec.trip_count) as iteration:
            is_odd = code.value(f"trunc i64 {iteration} to i1")
            old = code.value(f"select i1 {is_odd}, ptr {other}, ptr {buffer}")
            new = code.value(f"select i1 {is_odd}, ptr {buffer}, ptr {other}")
            row = code.sub(spec.trip_count - 1, iteration) if spec.reverse else iteration
            inputs = [
                code.cell(base, code.mul(row, v.stride * m.stride)) if v.stride else base
                for base, v, m in zip(views, spec.views, view_arrays, strict=True)
            ]
            outputs = [
                code.cell(base, code.mul(row, size * lanes))
                for base, (size, _) in zip(results, spec.result_rows, strict=True)
            ]
            code.call(body, [old, new, *inputs, *outputs, scratch])
        last = other if spec.trip_count % 2 else buffer
        self._copy(_Memory(last, lanes, True), target, carry_cells)
        return code.text()

    def _copy(self, source: _Memory, target: str, count: int) -> None:
        """Copy cells to per-lane memory."""
        with self.code.loop(0, count) as k:
            value = self._load(source, k)
            address = self.code.cell(target, self.code.mul(k, self.lanes))
            self.code.emit(f"store {self.vector} {value}, ptr {address}, align {8 * self.lanes}")

    def write(self, name: str, target: tuple[str, int], node: int) -> str:
        """IR of a function that writes an array to a slot; in `sums` it is accumulated over all lanes."""
        self._begin(name)
        slot_name, first = target
        slot = self.slots[slot_name]
        stride = self.lanes if slot.per_lane else slot.stride
        base = self.code.cell(f"%{slot.name}", first * stride)
        spec = self.graph.data[node]
        if slot.name == "sums" and isinstance(spec, OuterProduct):
            transposed = self.code.value(f"alloca [{self.lanes * spec.columns} x double], align 64")
            for left, right in self._pairs(node):
                self._emit_update(spec, left, right, transposed, base)
            return self.code.text()
        source = self._memory(node)
        with self.code.loop(0, spec.size) as k:
            value = self._load(source, k)
            address = self.code.cell(base, self.code.mul(k, stride))
            if slot.name == "sums":
                total = self.code.value(f"load double, ptr {address}, align 8")
                for element in self._elements(self._mask(value)):
                    total = self.code.value(f"fadd double {total}, {element}")
                self.code.emit(f"store double {total}, ptr {address}, align 8")
            else:
                self.code.emit(f"store {self.vector} {value}, ptr {address}, align {8 * self.lanes}")
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
            stride = self.lanes if slot.per_lane else slot.stride
            return _Memory(self.code.cell(f"%{slot.name}", spec.offset * stride), stride, slot.per_lane)
        return _Memory(self.code.cell("%scratch", self.cells[array] * self.lanes), self.lanes, True)

    def _load(self, memory: _Memory, k: str | int) -> str:
        """Load an element for all lanes."""
        code = self.code
        address = code.cell(memory.base, k * memory.stride if isinstance(k, int) else code.mul(k, memory.stride))
        if memory.per_lane or self.lanes == 1:
            return code.value(f"load {self.vector}, ptr {address}, align {8 * self.lanes}")
        return code.broadcast(code.value(f"load double, ptr {address}, align 8"), self.lanes)

    def _elements(self, vector: str) -> list[str]:
        """Elements of a vector, as scalars."""
        if self.lanes == 1:
            return [vector]
        return [self.code.value(f"extractelement {self.vector} {vector}, i64 {k}") for k in range(self.lanes)]

    def _mask(self, value: str) -> str:
        """A value with its padding lanes set to zero."""
        if self.lanes == 1:
            return value
        mask = self.code.value(f"load {self.vector}, ptr %mask, align {8 * self.lanes}")
        is_valid = self.code.value(f"fcmp une {self.vector} {mask}, zeroinitializer")
        return self.code.value(
            f"select <{self.lanes} x i1> {is_valid}, {self.vector} {value}, {self.vector} zeroinitializer"
        )

    def _multiply_add(self, vector: str, width: int, a: str, b: str, c: str, *, fma: bool) -> str:
        if not fma:
            product = self.code.value(f"fmul {vector} {a}, {b}")
            return self.code.value(f"fadd {vector} {product}, {c}")
        suffix = f"v{width}f64" if width > 1 else "f64"
        self.declarations.add(f"declare {vector} @llvm.fma.{suffix}({vector}, {vector}, {vector})")
        return self.code.value(f"call {vector} @llvm.fma.{suffix}({vector} {a}, {vector} {b}, {vector} {c})")

    # elementwise maps

    def _emit_map(self, node: int, spec: ElementwiseMap) -> None:
        args = self.graph.args[node]
        memory = {k: self._memory(a) for k, a in enumerate(args) if self.graph.kinds[a] == ARRAY}
        scalar_operands = {
            k: (self.outer.operand(a, a in self.varying), a in self.varying and self.lanes > 1)
            for k, a in enumerate(args)
            if k not in memory
        }
        target = self._memory(node)
        if self.lanes > 1:
            self._emit_map_range(spec, memory, scalar_operands, target, 0, spec.size, 1)
            return
        width = VECTOR_WIDTH if all(m.stride == 1 for m in memory.values()) else 1
        main_end = spec.size - spec.size % width
        self._emit_map_range(spec, memory, scalar_operands, target, 0, main_end, width)
        if main_end < spec.size:
            self._emit_map_range(spec, memory, scalar_operands, target, main_end, spec.size, 1)

    def _emit_map_range(
        self,
        spec: ElementwiseMap,
        memory: dict[int, _Memory],
        scalar_operands: dict[int, tuple[str, bool]],
        target: _Memory,
        start: int,
        end: int,
        elements: int,
    ) -> None:
        """Loop over a range of elements, with `elements` of them per vector.

        Scalar operands are given as their names, and whether they are vectors.
        """
        body, code, width, is_single = spec.body, self.code, self.lanes * elements, self.lanes == 1
        order = depth_first_schedule(body, [spec.result])
        inputs = {n: int(body.data[n][0][1:]) for n in order if body.ops[n] == "input"}
        varying = {
            n
            for n, k in inputs.items()
            if (scalar_operands[k][1] if k in scalar_operands else memory[k].per_lane or is_single)
        }
        for n in order:
            if any(a in varying for a in body.args[n]):
                varying.add(n)
        alignment = None if elements == 1 else 8
        block = StraightLineBlock(
            body, varying, (), width, {}, self.declarations, prefix=f"b{start}_", alignment=alignment
        )
        block.lines = code.lines
        with code.loop(start, end, step=elements) as i:
            for n, k in inputs.items():
                if k in scalar_operands:
                    block.names[n] = scalar_operands[k][0]
                else:
                    address = code.cell(memory[k].base, code.mul(i, memory[k].stride))
                    block.names[n] = block.read(address, body.kinds[n], n in varying)
            block.emit_nodes(order)
            block.write(code.cell(target.base, code.mul(i, target.stride)), spec.result, wide=True)

    # matrix-vector products

    def _emit_matrix_vector(self, node: int, spec: MatrixVectorProduct) -> None:
        weights, vector = (self._memory(a) for a in self.graph.args[node])
        target = self._memory(node)
        weights = weights._replace(base=self.code.cell(weights.base, spec.offset * weights.stride))
        if self.lanes == 1:
            self._emit_matrix_vector_by_rows(spec, weights, vector, target)
            return
        max_rows = max(min(MAX_ROWS, MAX_ACCUMULATORS // self.lanes), 1)
        main_end = spec.size - spec.size % max_rows
        if main_end:
            with self.code.loop(0, main_end, step=max_rows) as i:
                self._emit_rows(spec, weights, vector, target, i, max_rows)
        if main_end < spec.size:
            self._emit_rows(spec, weights, vector, target, str(main_end), spec.size - main_end)

    def _emit_rows(
        self, spec: MatrixVectorProduct, weights: _Memory, vector: _Memory, target: _Memory, i: str, count: int
    ) -> None:
        """Compute `count` rows of a product from row i on, for all lanes."""
        code = self.code
        first = code.cell(weights.base, code.mul(i, spec.row_stride * weights.stride))

        def accumulate(k: str, sums: list[str]) -> list[str]:
            x = self._load(vector, k)
            column = code.cell(first, code.mul(k, spec.column_stride * weights.stride))
            entries = [self._load(weights._replace(base=column), r * spec.row_stride) for r in range(count)]
            return [
                self._multiply_add(self.vector, self.lanes, w, x, total, fma=spec.fma)
                for w, total in zip(entries, sums, strict=True)
            ]

        sums = code.fold(spec.columns, self.vector, ["zeroinitializer"] * count, accumulate)
        base = code.cell(target.base, code.mul(i, self.lanes))
        for r, total in enumerate(sums):
            code.emit(f"store {self.vector} {total}, ptr {code.cell(base, r * self.lanes)}, align {8 * self.lanes}")

    def _emit_matrix_vector_by_rows(
        self, spec: MatrixVectorProduct, weights: _Memory, vector: _Memory, target: _Memory
    ) -> None:
        """Compute a product for a single trajectory; lanes are rows."""
        start = 0
        for width, vectors in ((VECTOR_WIDTH, 4), (VECTOR_WIDTH, 1), (1, 1)):
            rows = width * vectors
            end = spec.size - (spec.size - start) % rows
            if end > start:
                with self.code.loop(start, end, step=rows) as i:
                    self._emit_row_vectors(spec, weights, vector, target, i, width, vectors)
            start = end

    def _emit_row_vectors(
        self,
        spec: MatrixVectorProduct,
        weights: _Memory,
        vector: _Memory,
        target: _Memory,
        i: str,
        width: int,
        vectors: int,
    ) -> None:
        """Compute rows of a product from row i on, for a single trajectory: `vectors` vectors of `width` rows."""
        code = self.code
        type_ = f"<{width} x double>" if width > 1 else "double"
        row, column = spec.row_stride * weights.stride, spec.column_stride * weights.stride
        first = code.cell(weights.base, code.mul(i, row))
        sums = ["zeroinitializer" if width > 1 else "0.0"] * vectors
        # weights stored row by row are read in blocks of four columns and transposed
        by_blocks = width == VECTOR_WIDTH and column == 1
        columns = VECTOR_WIDTH if by_blocks else 1

        def accumulate(k: str, sums: list[str]) -> list[str]:
            k = code.mul(k, columns)
            values = [code.broadcast(self._load(vector, code.add(k, c)), width) for c in range(columns)]
            block = code.cell(first, code.mul(k, column))
            results = []
            for g, total in enumerate(sums):
                address = code.cell(block, g * width * row)
                entries = (
                    self._transposed_block(address, row) if by_blocks else [self._column(type_, address, row, width)]
                )
                for w, x in zip(entries, values, strict=True):
                    total = self._multiply_add(type_, width, w, x, total, fma=spec.fma)
                results.append(total)
            return results

        sums = code.fold(spec.columns // columns, type_, sums, accumulate)
        for k in range(spec.columns - spec.columns % columns, spec.columns):
            x = code.broadcast(self._load(vector, k), width)
            for g, total in enumerate(sums):
                entries = self._column(type_, code.cell(first, g * width * row + k * column), row, width)
                sums[g] = self._multiply_add(type_, width, entries, x, total, fma=spec.fma)
        base = code.cell(target.base, i)
        for g, total in enumerate(sums):
            code.emit(f"store {type_} {total}, ptr {code.cell(base, g * width)}, align 8")

    def _column(self, type_: str, address: str, row: int, width: int) -> str:
        """Entries of one column in consecutive rows."""
        code = self.code
        if row == 1 or width == 1:
            return code.value(f"load {type_}, ptr {address}, align 8")
        result = "poison"
        for r in range(width):
            entry = code.value(f"load double, ptr {code.cell(address, r * row)}, align 8")
            result = code.value(f"insertelement {type_} {result}, double {entry}, i64 {r}")
        return result

    def _transposed_block(self, address: str, row: int) -> list[str]:
        """Columns of a 4×4 block, loaded row by row."""
        code, type_ = self.code, f"<{VECTOR_WIDTH} x double>"
        rows = [code.value(f"load {type_}, ptr {code.cell(address, r * row)}, align 8") for r in range(VECTOR_WIDTH)]
        return code.transpose(rows, "double")

    # outer products

    def _pairs(self, node: int) -> list[tuple[_Memory, _Memory]]:
        args = [self._memory(a) for a in self.graph.args[node]]
        return list(zip(args[::2], args[1::2], strict=True))

    def _emit_outer(self, node: int, spec: OuterProduct) -> None:
        """Compute an outer product, or a sum of them."""
        code, target, pairs = self.code, self._memory(node), self._pairs(node)
        with code.loop(0, spec.rows) as i:
            left_values = [self._load(left, i) for left, _ in pairs]
            row = code.cell(target.base, code.mul(i, spec.columns * self.lanes))
            with code.loop(0, spec.columns) as j:
                total = "zeroinitializer" if self.lanes > 1 else "0.0"
                for value, (_, right) in zip(left_values, pairs, strict=True):
                    factor = self._load(right, j)
                    total = self._multiply_add(self.vector, self.lanes, value, factor, total, fma=spec.fma)
                address = code.cell(row, code.mul(j, self.lanes))
                code.emit(f"store {self.vector} {total}, ptr {address}, align {8 * self.lanes}")

    def _emit_update(self, spec: OuterProduct, left: _Memory, right: _Memory, transposed: str, target: str) -> None:
        """Add an outer product to a matrix shared by all lanes, one lane after the other.

        The right factor is first transposed to be contiguous per lane, so that a vector holds elements of one lane.
        """
        code, lanes, columns = self.code, self.lanes, spec.columns
        with code.loop(0, columns) as j:
            for lane, element in enumerate(self._elements(self._load(right, j))):
                code.emit(f"store double {element}, ptr {code.cell(code.cell(transposed, lane * columns), j)}, align 8")
        unroll = 2 if spec.rows % 2 == 0 else 1
        with code.loop(0, spec.rows, step=unroll) as i:
            factors = [self._elements(self._mask(self._load(left, code.add(i, r)))) for r in range(unroll)]
            first = code.cell(target, code.mul(i, columns))
            main_end = columns - columns % VECTOR_WIDTH
            for start, end, width in ((0, main_end, VECTOR_WIDTH), (main_end, columns, 1)):
                if start == end:
                    continue
                type_ = f"<{width} x double>" if width > 1 else "double"
                broadcast = [[code.broadcast(f, width) for f in row] for row in factors]
                with code.loop(start, end, step=width) as j:
                    column = code.cell(transposed, j)
                    right_values = [
                        code.value(f"load {type_}, ptr {code.cell(column, lane * columns)}, align 8")
                        for lane in range(lanes)
                    ]
                    for r, row in enumerate(broadcast):
                        address = code.cell(code.cell(first, r * columns), j)
                        total = code.value(f"load {type_}, ptr {address}, align 8")
                        for factor, right_value in zip(row, right_values, strict=True):
                            total = self._multiply_add(type_, width, factor, right_value, total, fma=spec.fma)
                        code.emit(f"store {type_} {total}, ptr {address}, align 8")

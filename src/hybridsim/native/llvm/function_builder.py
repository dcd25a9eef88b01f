"""Builder of LLVM IR functions: control flow, address arithmetic, packing rows of memory into lanes and unpacking."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


class FunctionBuilder:
    """An LLVM function under construction, as text; values are operand strings."""

    def __init__(self, name: str, parameters: Sequence[tuple[str, str]]):
        """Open a function.

        Args:
            name: function name.
            parameters: type and name of each parameter.
        """
        self.head = (
            f"define void @{name}({', '.join(f'{type_} %{parameter}' for type_, parameter in parameters)}) #0 {{"
        )
        self.lines = ["entry:"]
        self.count = 0

    def text(self) -> str:
        """IR text of the complete function."""
        return "\n".join([self.head, *self.lines, "  ret void", "}", ""])

    def value(self, instruction: str) -> str:
        """Emit an instruction; returns the name of its result."""
        self.count += 1
        name = f"%c{self.count}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def emit(self, instruction: str) -> None:
        """Emit an instruction without a result."""
        self.lines.append(f"  {instruction}")

    # integers (i64) and addresses

    def add(self, a: str | int, b: str | int) -> str:
        return self.value(f"add i64 {a}, {b}")

    def sub(self, a: str | int, b: str | int) -> str:
        return self.value(f"sub i64 {a}, {b}")

    def mul(self, a: str | int, b: str | int) -> str:
        return self.value(f"mul i64 {a}, {b}")

    def minimum(self, a: str | int, b: str | int) -> str:
        smaller = self.value(f"icmp slt i64 {a}, {b}")
        return self.value(f"select i1 {smaller}, i64 {a}, i64 {b}")

    def cell(self, base: str, index: str | int) -> str:
        """Address of an eight-byte cell."""
        return base if index == 0 else self.value(f"getelementptr i64, ptr {base}, i64 {index}")

    def load_i64(self, address: str) -> str:
        """Load an i64."""
        return self.value(f"load i64, ptr {address}, align 8")

    def load_pointer(self, address: str) -> str:
        """Load a pointer."""
        return self.value(f"load ptr, ptr {address}, align 8")

    def call(self, function: str, arguments: Sequence[str]) -> None:
        self.emit(f"call void @{function}({', '.join(f'ptr {a}' for a in arguments)})")

    # control flow

    @contextmanager
    def loop(self, start: str | int, end: str | int, *, step: int = 1) -> Iterator[str]:
        """Loop over start, start+step, … below `end`; yields the counter."""
        self.count += 1
        label = f"loop{self.count}"
        counter = f"%{label}.i"
        before = f"{label}.before"
        self.lines += [
            f"  br label %{before}",
            f"{before}:",
            f"  br label %{label}",
            f"{label}:",
            f"  {counter} = phi i64 [ {start}, %{before} ], [ {counter}.next, %{label}.next ]",
            f"  {counter}.more = icmp slt i64 {counter}, {end}",
            f"  br i1 {counter}.more, label %{label}.body, label %{label}.end",
            f"{label}.body:",
        ]
        yield counter
        self.lines += [
            f"  br label %{label}.next",
            f"{label}.next:",
            f"  {counter}.next = add i64 {counter}, {step}",
            f"  br label %{label}",
            f"{label}.end:",
        ]

    def fold(self, count: int, type_: str, init: list[str], body: Callable[[str, list[str]], list[str]]) -> list[str]:
        """Loop-carried values after a loop.

        Args:
            count: number of iterations.
            type_: type of the values.
            init: initial values.
            body: emits one iteration; maps the counter and the carried values to their next values.
        """
        self.count += 1
        label = f"fold{self.count}"
        names = [f"%{label}.v{k}" for k in range(len(init))]
        self.lines += [
            f"  br label %{label}.before",
            f"{label}.before:",
            f"  br label %{label}",
            f"{label}:",
            f"  %{label}.i = phi i64 [ 0, %{label}.before ], [ %{label}.i.next, %{label}.next ]",
        ]
        phi_line = len(self.lines)
        self.lines += [
            f"  %{label}.i.more = icmp slt i64 %{label}.i, {count}",
            f"  br i1 %{label}.i.more, label %{label}.body, label %{label}.end",
            f"{label}.body:",
        ]
        new = body(f"%{label}.i", names)
        self.lines += [
            f"  br label %{label}.next",
            f"{label}.next:",
            f"  %{label}.i.next = add i64 %{label}.i, 1",
            f"  br label %{label}",
            f"{label}.end:",
        ]
        self.lines[phi_line:phi_line] = [
            f"  {name} = phi {type_} [ {first}, %{label}.before ], [ {value}, %{label}.next ]"
            for name, first, value in zip(names, init, new, strict=True)
        ]
        return names

    @contextmanager
    def if_then(self, condition: str) -> Iterator[None]:
        """Code that is executed only if an i1 is true."""
        self.count += 1
        label = f"then{self.count}"
        self.lines += [f"  br i1 {condition}, label %{label}, label %{label}.end", f"{label}:"]
        yield
        self.lines += [f"  br label %{label}.end", f"{label}.end:"]

    # memory

    def copy(self, source: str, target: str, cells: str | int) -> None:
        """Copy non-overlapping cells."""
        size = cells * 8 if isinstance(cells, int) else self.mul(cells, 8)
        self.emit(f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 {target}, ptr align 8 {source}, i64 {size}, i1 false)")

    def clear(self, target: str, cells: str | int) -> None:
        """Set cells to zero."""
        size = cells * 8 if isinstance(cells, int) else self.mul(cells, 8)
        self.emit(f"call void @llvm.memset.p0.i64(ptr align 8 {target}, i8 0, i64 {size}, i1 false)")

    def pack(self, sources: Sequence[str], target: str, cells: int, table: str | None = None) -> None:
        """Pack rows, one per lane, into vectors: cell k of every row becomes vector k.

        Args:
            sources: addresses of the rows.
            target: address of the first vector.
            cells: number of cells per row.
            table: address of the indices of the cells to gather; by default the leading cells.
        """
        lanes = len(sources)
        if lanes == 1 and table is None:
            self.copy(sources[0], target, cells)
            return

        def emit_block(k: str | int) -> None:
            for lane in range(0, lanes, BLOCK):
                rows = [self._load_block(source, k) for source in sources[lane : lane + BLOCK]]
                first = self.cell(self._vector(target, k, lanes), lane)
                for c, column in enumerate(self.transpose(rows, "i64")):
                    self.emit(f"store {_BLOCK_OF_CELLS} {column}, ptr {self.cell(first, c * lanes)}, align {8 * BLOCK}")

        def emit_single(k: str | int) -> None:
            vector = "poison"
            index = k if table is None else self.load_i64(self.cell(table, k))
            for lane, source in enumerate(sources):
                value = self.load_i64(self.cell(source, index))
                vector = self.value(f"insertelement <{lanes} x i64> {vector}, i64 {value}, i64 {lane}")
            self.emit(f"store <{lanes} x i64> {vector}, ptr {self._vector(target, k, lanes)}, align {8 * lanes}")

        self._emit_in_blocks(cells if table is None and lanes % BLOCK == 0 else 0, cells, emit_block, emit_single)

    def unpack(self, source: str, targets: Sequence[str], cells: int) -> None:
        """Unpack vectors into rows, one per lane."""
        lanes = len(targets)
        if lanes == 1:
            self.copy(source, targets[0], cells)
            return

        def emit_block(k: str | int) -> None:
            for lane in range(0, lanes, BLOCK):
                first = self.cell(self._vector(source, k, lanes), lane)
                columns = [self._load_block(first, c * lanes) for c in range(BLOCK)]
                for row, target in zip(self.transpose(columns, "i64"), targets[lane : lane + BLOCK], strict=True):
                    self.emit(f"store {_BLOCK_OF_CELLS} {row}, ptr {self.cell(target, k)}, align 8")

        def emit_single(k: str | int) -> None:
            address = self._vector(source, k, lanes)
            vector = self.value(f"load <{lanes} x i64>, ptr {address}, align {8 * lanes}")
            for lane, target in enumerate(targets):
                value = self.value(f"extractelement <{lanes} x i64> {vector}, i64 {lane}")
                self.emit(f"store i64 {value}, ptr {self.cell(target, k)}, align 8")

        self._emit_in_blocks(cells if lanes % BLOCK == 0 else 0, cells, emit_block, emit_single)

    def broadcast(self, scalar: str, width: int) -> str:
        """A vector of one scalar."""
        if width == 1:
            return scalar
        vector = f"<{width} x double>"
        first = self.value(f"insertelement {vector} poison, double {scalar}, i64 0")
        return self.value(f"shufflevector {vector} {first}, {vector} poison, <{width} x i32> zeroinitializer")

    def transpose(self, rows: Sequence[str], type_: str) -> list[str]:
        """Columns of a square block of elements of a type, from its rows as vectors."""
        vector = f"<{BLOCK} x {type_}>"

        def shuffle(a: str, b: str, indices: str) -> str:
            mask = ", ".join(f"i32 {p}" for p in indices)
            return self.value(f"shufflevector {vector} {a}, {vector} {b}, <{BLOCK} x i32> <{mask}>")

        even, odd = ([shuffle(rows[r], rows[r + 1], indices) for r in (0, 2)] for indices in ("0426", "1537"))
        return [shuffle(a, b, indices) for indices in ("0145", "2367") for a, b in (even, odd)]

    def _load_block(self, source: str, k: str | int) -> str:
        return self.value(f"load {_BLOCK_OF_CELLS}, ptr {self.cell(source, k)}, align 8")

    def _vector(self, base: str, k: str | int, lanes: int) -> str:
        """Address of a vector of cells."""
        return self.cell(base, k * lanes if isinstance(k, int) else self.mul(k, lanes))

    def _emit_in_blocks(self, blockable: int, count: int, block: Callable, single: Callable) -> None:
        """Emit code for `count` cells: whole blocks of the first `blockable`, then the others one by one."""
        blocked = blockable - blockable % BLOCK
        self._emit_for_each(0, blocked, BLOCK, block)
        self._emit_for_each(blocked, count, 1, single)

    def _emit_for_each(self, start: int, end: int, step: int, body: Callable[[str | int], None]) -> None:
        """Emit code for each index of a range, unrolled if it is short."""
        if end - start <= MAX_UNROLLED * step:
            for k in range(start, end, step):
                body(k)
        else:
            with self.loop(start, end, step=step) as counter:
                body(counter)


BLOCK = 4
"""Rows and columns of a block that is transposed in registers."""
_BLOCK_OF_CELLS = f"<{BLOCK} x i64>"
MAX_UNROLLED = 4
"""Maximum number of iterations of an unrolled loop over cells or blocks of them."""
DECLARATIONS = (
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\ndeclare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
)

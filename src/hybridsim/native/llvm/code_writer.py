"""Writing LLVM loops: counters, addresses, and moving rows of memory into lanes and back."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


class FunctionBuilder:
    """The text of an LLVM function, line by line; values are the text of operands."""

    def __init__(self, name: str, parameters: Sequence[tuple[str, str]]):
        """Begin a function.

        Args:
            name: of the function.
            parameters: type and name of each parameter.
        """
        self.head = f"define void @{name}({', '.join(f'{kind} %{own}' for kind, own in parameters)}) #0 {{"
        self.lines = ["entry:"]
        self.count = 0

    def text(self) -> str:
        """The finished function."""
        return "\n".join([self.head, *self.lines, "  ret void", "}", ""])

    def value(self, instruction: str) -> str:
        """Write an instruction and name its result."""
        self.count += 1
        name = f"%c{self.count}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {instruction}")

    # whole numbers and addresses

    def add(self, a: str | int, b: str | int) -> str:
        return self.value(f"add i64 {a}, {b}")

    def sub(self, a: str | int, b: str | int) -> str:
        return self.value(f"sub i64 {a}, {b}")

    def mul(self, a: str | int, b: str | int) -> str:
        return self.value(f"mul i64 {a}, {b}")

    def least(self, a: str | int, b: str | int) -> str:
        smaller = self.value(f"icmp slt i64 {a}, {b}")
        return self.value(f"select i1 {smaller}, i64 {a}, i64 {b}")

    def cell(self, base: str, index: str | int) -> str:
        """The address of a cell of eight bytes."""
        return base if index == 0 else self.value(f"getelementptr i64, ptr {base}, i64 {index}")

    def number(self, address: str) -> str:
        """The whole number at an address."""
        return self.value(f"load i64, ptr {address}, align 8")

    def pointer(self, address: str) -> str:
        """The pointer at an address."""
        return self.value(f"load ptr, ptr {address}, align 8")

    def call(self, function: str, arguments: Sequence[str]) -> None:
        self.do(f"call void @{function}({', '.join(f'ptr {a}' for a in arguments)})")

    # control flow

    @contextmanager
    def loop(self, start: str | int, end: str | int, *, step: int = 1) -> Iterator[str]:
        """A loop over start, start+step, … below `end`; yields the counter."""
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

    def fold(self, count: int, kind: str, start: list[str], turn: Callable[[str, list[str]], list[str]]) -> list[str]:
        """Values carried through a loop.

        Args:
            count: of turns.
            kind: type of the values.
            start: the values before the first turn.
            turn: from the counter and the values to the next values.
        """
        self.count += 1
        label = f"fold{self.count}"
        names = [f"%{label}.v{k}" for k in range(len(start))]
        self.lines += [
            f"  br label %{label}.before",
            f"{label}.before:",
            f"  br label %{label}",
            f"{label}:",
            f"  %{label}.i = phi i64 [ 0, %{label}.before ], [ %{label}.more, %{label}.next ]",
        ]
        place = len(self.lines)
        self.lines += [
            f"  %{label}.go = icmp slt i64 %{label}.i, {count}",
            f"  br i1 %{label}.go, label %{label}.body, label %{label}.end",
            f"{label}.body:",
        ]
        new = turn(f"%{label}.i", names)
        self.lines += [
            f"  br label %{label}.next",
            f"{label}.next:",
            f"  %{label}.more = add i64 %{label}.i, 1",
            f"  br label %{label}",
            f"{label}.end:",
        ]
        self.lines[place:place] = [
            f"  {name} = phi {kind} [ {first}, %{label}.before ], [ {value}, %{label}.next ]"
            for name, first, value in zip(names, start, new, strict=True)
        ]
        return names

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Code that runs only if an i1 is true."""
        self.count += 1
        label = f"when{self.count}"
        self.lines += [f"  br i1 {condition}, label %{label}, label %{label}.end", f"{label}:"]
        yield
        self.lines += [f"  br label %{label}.end", f"{label}.end:"]

    # memory

    def copy(self, source: str, target: str, cells: str | int) -> None:
        """Copy cells that do not overlap."""
        size = cells * 8 if isinstance(cells, int) else self.mul(cells, 8)
        self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 {target}, ptr align 8 {source}, i64 {size}, i1 false)")

    def clear(self, target: str, cells: str | int) -> None:
        """Set cells to zero."""
        size = cells * 8 if isinstance(cells, int) else self.mul(cells, 8)
        self.do(f"call void @llvm.memset.p0.i64(ptr align 8 {target}, i8 0, i64 {size}, i1 false)")

    def pack(self, sources: Sequence[str], target: str, cells: int, table: str | None = None) -> None:
        """Move rows, one per lane, into vectors: cell k of every row becomes vector k.

        Args:
            sources: addresses of the rows.
            target: where the vectors go.
            cells: how many.
            table: address of the numbers of the cells to take, if not the first ones.
        """
        lanes = len(sources)
        if lanes == 1 and table is None:
            self.copy(sources[0], target, cells)
            return

        def four(k: str | int) -> None:
            for lane in range(0, lanes, BLOCK):
                rows = [self._load_block(source, k) for source in sources[lane : lane + BLOCK]]
                start = self.cell(self._vector(target, k, lanes), lane)
                for c, column in enumerate(self.turned(rows, "i64")):
                    self.do(f"store {_BLOCK_OF_CELLS} {column}, ptr {self.cell(start, c * lanes)}, align {8 * BLOCK}")

        def one(k: str | int) -> None:
            vector = "poison"
            place = k if table is None else self.number(self.cell(table, k))
            for lane, source in enumerate(sources):
                number = self.number(self.cell(source, place))
                vector = self.value(f"insertelement <{lanes} x i64> {vector}, i64 {number}, i64 {lane}")
            self.do(f"store <{lanes} x i64> {vector}, ptr {self._vector(target, k, lanes)}, align {8 * lanes}")

        self._blocks(cells if table is None and lanes % BLOCK == 0 else 0, cells, four, one)

    def unpack(self, source: str, targets: Sequence[str], cells: int) -> None:
        """Move vectors out into rows, one per lane."""
        lanes = len(targets)
        if lanes == 1:
            self.copy(source, targets[0], cells)
            return

        def four(k: str | int) -> None:
            for lane in range(0, lanes, BLOCK):
                start = self.cell(self._vector(source, k, lanes), lane)
                columns = [self._load_block(start, c * lanes) for c in range(BLOCK)]
                for row, target in zip(self.turned(columns, "i64"), targets[lane : lane + BLOCK], strict=True):
                    self.do(f"store {_BLOCK_OF_CELLS} {row}, ptr {self.cell(target, k)}, align 8")

        def one(k: str | int) -> None:
            address = self._vector(source, k, lanes)
            vector = self.value(f"load <{lanes} x i64>, ptr {address}, align {8 * lanes}")
            for lane, target in enumerate(targets):
                number = self.value(f"extractelement <{lanes} x i64> {vector}, i64 {lane}")
                self.do(f"store i64 {number}, ptr {self.cell(target, k)}, align 8")

        self._blocks(cells if lanes % BLOCK == 0 else 0, cells, four, one)

    def turned(self, rows: Sequence[str], kind: str) -> list[str]:
        """The columns of a square of numbers, of which the rows are given as vectors."""
        vector = f"<{BLOCK} x {kind}>"

        def mixed(a: str, b: str, places: str) -> str:
            mask = ", ".join(f"i32 {p}" for p in places)
            return self.value(f"shufflevector {vector} {a}, {vector} {b}, <{BLOCK} x i32> <{mask}>")

        even, odd = ([mixed(rows[r], rows[r + 1], places) for r in (0, 2)] for places in ("0426", "1537"))
        return [mixed(a, b, places) for places in ("0145", "2367") for a, b in (even, odd)]

    def _load_block(self, source: str, k: str | int) -> str:
        return self.value(f"load {_BLOCK_OF_CELLS}, ptr {self.cell(source, k)}, align 8")

    def _vector(self, base: str, k: str | int, lanes: int) -> str:
        """The address of a vector of cells."""
        return self.cell(base, k * lanes if isinstance(k, int) else self.mul(k, lanes))

    def _blocks(self, in_blocks: int, count: int, block: Callable, one: Callable) -> None:
        """An action for each of several cells, the first of them in blocks."""
        whole = in_blocks - in_blocks % BLOCK
        self._for_each(0, whole, BLOCK, block)
        self._for_each(whole, count, 1, one)

    def _for_each(self, start: int, end: int, step: int, action: Callable[[str | int], None]) -> None:
        """An action for each of several numbers, written out if they are few."""
        if end - start <= FEW * step:
            for k in range(start, end, step):
                action(k)
        else:
            with self.loop(start, end, step=step) as counter:
                action(counter)


BLOCK = 4
"""Rows and columns that are turned at once."""
_BLOCK_OF_CELLS = f"<{BLOCK} x i64>"
FEW = 4
"""Cells, or blocks of them, that are moved without a loop."""
DECLARATIONS = (
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\ndeclare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
)

"""What all rollout kernels share: the record they are called with, groups of trajectories, parameters, one step.

The body of a rollout is `step(fixed, free, x, s) -> (x2, y)`: parameters that are only read, parameters that may be
differentiated, the carried state, and what is streamed in and out at every step. A kernel is a function of one
pointer, to a record of numbers and addresses (`FIELDS`), so that Python, threads and XLA call all kernels alike.

Lanes are trajectories; the last group repeats its last trajectory to be full. Parameters are written W times side by
side even where all trajectories share them, because reading a vector is cheaper than spreading a number.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

from hybridsim.native.graph.graph import Graph
from hybridsim.native.graph.partition import (
    PARAMETERS,
    STATE,
    GraphStage,
    Outputs,
    assign_stages,
    compact_slot,
    remap_slot,
    split_stages,
)
from hybridsim.native.llvm.code_writer import DECLARATIONS, FunctionBuilder
from hybridsim.native.llvm.emit import EmittedFunction, emit
from hybridsim.native.llvm.emit_straight_line import Slot

RECORD_FIELDS = (
    "first last batch steps fixed fixed_stride free free_stride x0 x0_stride s s_stride s_step x_end y work states"
    " segment chunk ct_end ct_end_stride ct_y ct_y_stride ct_y_step d_free d_x0 d_s"
    " directions t_free t_free_stride t_x0 t_x0_stride t_s t_s_stride t_s_direction t_s_step t_end t_y"
).split()
"""What the record holds: the range of groups, sizes, addresses, and strides in cells from trajectory to trajectory
(`_stride`) and from step to step (`_step`). Results are dense; those in `OPTIONAL` are not written if their address is
zero."""
POINTER_FIELDS = frozenset(
    "fixed free x0 s x_end y work states ct_end ct_y d_free d_x0 d_s t_free t_x0 t_s t_end t_y".split()
)

OPTIONAL_RESULTS = ("x_end", "y", "d_s")
"""Results that a caller may do without: in large batches, writing them takes longer than computing them."""
LARGE_PARAMETER_SLOTS = {"fixed_rows": "fixed", "free_rows": "free"}
"""Slots of large parameters, and the arrays that these are in; all trajectories of a group share them."""


@dataclass(frozen=True)
class StepSizes:
    """Cells of each array of a step."""

    fixed: int
    free: int
    x: int
    s: int
    y: int
    saved: int = 0
    """What a forward sweep keeps of a step, besides the state."""
    large: tuple[tuple[int, int], ...] = ()
    """First cell and size of the large ones among the free parameters."""
    in_place: bool = False
    """Are there large parameters, free or fixed? They are not packed into lanes but lie where the caller has them."""

    @property
    def small(self) -> list[int]:
        """Cells of the free parameters that are not large."""
        large = {k for first, size in self.large for k in range(first, first + size)}
        return [k for k in range(self.free) if k not in large]


def compact_parameters(
    sizes: StepSizes, *graphs: tuple[Graph, Outputs]
) -> tuple[list[int], list[tuple[Graph, Outputs]]]:
    """The cells of `fixed` that graphs need; and the graphs, reading these and small free parameters from such rows."""
    used, found = compact_slot("fixed", *graphs)
    if sizes.large:
        place = {cell: k for k, cell in enumerate(sizes.small)}
        found = [
            (
                remap_slot(graph, "free", place),
                {(s, place[k] if s == "contribution" else k): node for (s, k), node in outputs.items()},
            )
            for graph, outputs in found
        ]
    return used, found


@dataclass(frozen=True)
class Kernel:
    """The text of a kernel and the memory it needs."""

    name: str
    functions: tuple[EmittedFunction, ...]
    texts: tuple[str, ...]
    """What is beside the functions: the loop over them, and constants."""
    lanes: int
    """Trajectories per group."""
    width: int
    """Numbers per vector: trajectories, or steps or directions of one."""
    work: int
    """Cells of working memory, besides the states."""
    per_state: int = 0
    """Cells of memory per stored state."""
    per_direction: int = 0
    """Cells of memory per direction of differentiation."""


def split_step(graph: Graph, outputs: Outputs, passed: str) -> dict[int, GraphStage]:
    """A step cut into what needs parameters only and the rest."""
    stages = assign_stages(graph, outputs)
    nothing = GraphStage(Graph(), {}, 0)
    return {STATE: nothing} | split_stages(graph, outputs, stages, {PARAMETERS: passed}.get, lambda slot: STATE)


def lane_slots(names: str) -> list[Slot]:
    """Slots of lane-wise numbers."""
    return [Slot(name, True) for name in names.split()]


class KernelWriter:
    """Writes a kernel."""

    def __init__(
        self,
        name: str,
        sizes: StepSizes,
        used: Sequence[int],
        lanes: int,
        width: int,
        register: int,
        prologues: dict[str, GraphStage | None],
    ):
        """Begin a kernel.

        Args:
            name: of the kernel.
            sizes: of a step's arrays.
            used: the cells of `fixed` that are needed.
            lanes: trajectories per group.
            width: how often parameters stand side by side.
            register: numbers in a vector register.
            prologues: for each slot of values that need parameters only, how they are computed.
        """
        self.name, self.sizes, self.used_cells = name, sizes, used
        self.lanes, self.width, self.register = lanes, width, register
        self.code = FunctionBuilder(name, [("ptr", "record")])
        self.functions: dict[str, EmittedFunction] = {}
        self.areas: dict[str, tuple[int, int]] = {}
        self.used = 0
        self.prologues = {slot: stage for slot, stage in prologues.items() if stage is not None and stage.passed_cells}
        self.trajectories: list[str] = []
        self.streams: dict[str, list[str]] = {}
        """Where what is streamed begins, for every lane."""
        self.group = ""
        self.in_place: dict[str, str] = {}
        """Addresses of the rows of parameters, where there are large ones."""
        self.fields = {}
        for place, own in enumerate(RECORD_FIELDS):
            address = self.code.cell("%record", place)
            self.fields[own] = self.code.pointer(address) if own in POINTER_FIELDS else self.code.number(address)

    def field(self, name: str) -> str:
        """A number or address from the record."""
        return self.fields[name]

    # memory

    def area(self, name: str, cells: int, lanes: int | None = None) -> str:
        """The address of an area of working memory, of so many vectors."""
        size = max(cells, 1) * (self.lanes if lanes is None else lanes)
        if name not in self.areas:
            self.areas[name] = (self.used, size)
            self.used += size + -size % 16
        start, known = self.areas[name]
        assert size == known, f"area {name!r} has two sizes"
        return self.code.cell(self.field("work"), start)

    def ring(self, name: str, turn: str, cells: int, lanes: int | None = None) -> str:
        """One of the two halves of an area, by turns."""
        lanes = self.lanes if lanes is None else lanes
        half = self.code.mul(self.code.value(f"and i64 {turn}, 1"), cells * lanes)
        return self.code.cell(self.area(name, 2 * cells, lanes), half)

    # functions

    def parameter_slots(self, lanes: int) -> list[Slot]:
        """Slots of parameters, for a function with as many lanes as they have or one for a single lane."""
        own = Slot("", True) if lanes == self.width else Slot("", False, self.width)
        slots = [replace(own, name=name) for name in ("fixed", "free", *self.prologues)]
        return [*slots, *(Slot(name, False) for name in LARGE_PARAMETER_SLOTS)] if self.sizes.in_place else slots

    def add(self, name: str, stage: GraphStage, lanes: int, slots: Sequence[Slot]) -> None:
        """Emit a stage as a function."""
        all_slots = [*self.parameter_slots(lanes), *slots]
        self.functions[name] = emit(name, stage.graph, stage.outputs, all_slots, lanes, self.register)

    def call(self, name: str, addresses: dict[str, str], lanes: int | None = None) -> None:
        """Call a function with the addresses of its slots."""
        function = self.functions[name]
        known = self._parameters() | addresses
        scratch = self.area(f"scratch of {name}", function.scratch, self.lanes if lanes is None else lanes)
        self.code.call(name, [*(known[slot.name] for slot in function.slots), scratch])

    def _parameters(self) -> dict[str, str]:
        sizes = {"fixed": len(self.used_cells), "free": len(self.sizes.small)}
        sizes |= {slot: stage.passed_cells for slot, stage in self.prologues.items()}
        return self.in_place | {name: self.area(name, size, self.width) for name, size in sizes.items()}

    # groups of trajectories

    @contextmanager
    def groups(self, results: dict[str, int]) -> Iterator[None]:
        """A loop over groups of trajectories, with their parameters at hand.

        Args:
            results: cells per step of what is streamed out, by name.
        """
        code = self.code
        for slot, stage in self.prologues.items():
            self.add(f"prologue_{slot}", stage, self.width, [])
        with code.loop(self.field("first"), self.field("last")) as group:
            last = code.sub(self.field("batch"), 1)
            first = code.mul(group, self.lanes)
            self.group = group
            self.trajectories = [code.least(code.add(first, lane), last) for lane in range(self.lanes)]
            given = ["s", "ct_y"] if "d_s" in results else ["s"]
            self.streams = {name: self.rows(name) for name in given}
            for name, cells in results.items():
                self.streams[name] = self.rows(name, stride=code.mul(self.field("steps"), cells))
            if self.sizes.in_place:
                self.in_place = {slot: self.rows(name)[0] for slot, name in LARGE_PARAMETER_SLOTS.items()}
            small = "@small" if self.sizes.large else None
            for name, size, table in (
                ("fixed", len(self.used_cells), "@used"),
                ("free", len(self.sizes.small), small),
            ):
                rows = self.rows(name)
                code.pack(rows * (self.width // len(rows)), self.area(name, size, self.width), size, table)
            for slot in self.prologues:
                self.call(f"prologue_{slot}", {}, self.width)
            yield

    def rows(self, name: str, *, stride: str | None = None) -> list[str]:
        """The address of a row of an array for every lane."""
        code = self.code
        stride = self.field(f"{name}_stride") if stride is None else stride
        return [code.cell(self.field(name), code.mul(trajectory, stride)) for trajectory in self.trajectories]

    def rows_at(self, name: str, t: str, cells: int | None = None) -> list[str]:
        """The address of a row of what is streamed, for every lane; `cells` per step if it is a result."""
        offset = self.code.mul(t, self.field(f"{name}_step") if cells is None else cells)
        return [self.code.cell(row, offset) for row in self.streams[name]]

    def read(self, name: str, target: str, cells: int, t: str | None = None) -> None:
        """Pack rows of an array into lanes."""
        if cells:
            self.code.pack(self.rows(name) if t is None else self.rows_at(name, t), target, cells)

    def write(self, source: str, name: str, cells: int, t: str | None = None) -> None:
        """Unpack lanes into rows of an array of results."""
        if cells:
            with self.if_wanted(name):
                rows = self.rows(name, stride=str(cells)) if t is None else self.rows_at(name, t, cells)
                self.code.unpack(source, rows, cells)

    def if_wanted(self, name: str) -> AbstractContextManager[None]:
        """Code that is left out at run time if the caller does not want a result."""
        if name not in OPTIONAL_RESULTS:
            return nullcontext()
        return self.code.when(self.code.value(f"icmp ne ptr {self.field(name)}, null"))

    # one step

    def step(self, t: str, x: str, x2: str, *, keep: bool, more: dict[str, str] | None = None) -> None:
        """One step from a state in memory to the next; `keep` writes what is streamed out."""
        s, y = self.area("s", self.sizes.s), self.area("y", self.sizes.y)
        self.read("s", s, self.sizes.s, t)
        self.call("step", {"x": x, "s": s, "x2": x2, "y": y} | (more or {}))
        if keep:
            self.write(y, "y", self.sizes.y, t)

    def finished(self, *, per_state: int = 0, per_direction: int = 0) -> Kernel:
        """The whole kernel."""
        tables = [_table("used", self.used_cells)]
        if self.sizes.large:
            tables.append(_table("small", self.sizes.small))
        functions, texts = tuple(self.functions.values()), (DECLARATIONS, *tables, self.code.text())
        width = max(f.lanes for f in functions)
        return Kernel(self.name, functions, texts, self.lanes, width, self.used, per_state, per_direction)


def _table(name: str, cells: Sequence[int]) -> str:
    """Numbers of cells as a constant."""
    numbers = ", ".join(f"i64 {cell}" for cell in cells) or "i64 0"
    return f"@{name} = private constant [{max(len(cells), 1)} x i64] [{numbers}], align 8\n"

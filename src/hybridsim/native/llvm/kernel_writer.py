"""Common parts of all rollout kernels: the argument record, groups of trajectories, parameters, one step.

The body of a rollout is `step(fixed, free, x, s) -> (x2, y)`: fixed parameters; free parameters, with respect to which
the rollout is differentiated; the carried state; and the inputs and outputs of each step. A kernel is a function of one
pointer, to a record of integers and addresses (`RECORD_FIELDS`), so that Python, threads and XLA call all kernels in
the same way.

Lanes are trajectories; the last group is padded by repeating its last trajectory. Parameters are stored as vectors of
W lanes even where all trajectories share them, because loading a vector is cheaper than broadcasting a scalar.
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
from hybridsim.native.llvm.emit import EmittedFunction, emit
from hybridsim.native.llvm.emit_straight_line import Slot
from hybridsim.native.llvm.function_builder import DECLARATIONS, FunctionBuilder

RECORD_FIELDS = (
    "first last batch steps fixed fixed_stride free free_stride x0 x0_stride s s_stride s_step x_end y work states"
    " segment chunk ct_end ct_end_stride ct_y ct_y_stride ct_y_step d_free d_x0 d_s"
    " directions t_free t_free_stride t_x0 t_x0_stride t_s t_s_stride t_s_direction t_s_step t_end t_y"
).split()
"""Fields of the record: the range of groups, sizes (`segment` in steps, `chunk` in groups), addresses, and strides in
cells from trajectory to trajectory (`_stride`), direction to direction (`_direction`) and step to step (`_step`).
Results are contiguous; those in `OPTIONAL_RESULTS` are not written if their address is null."""
POINTER_FIELDS = frozenset(
    "fixed free x0 s x_end y work states ct_end ct_y d_free d_x0 d_s t_free t_x0 t_s t_end t_y".split()
)

OPTIONAL_RESULTS = ("x_end", "y", "d_s")
"""Results that a caller may omit: in large batches, writing them takes longer than computing them."""
LARGE_PARAMETER_SLOTS = {"fixed_rows": "fixed", "free_rows": "free"}
"""Slots of large parameters, and the arrays that contain them; all trajectories of a group share them."""


@dataclass(frozen=True)
class StepSizes:
    """Cells of each array of a step."""

    fixed: int
    """Fixed parameters."""
    free: int
    """Free parameters."""
    x: int
    """The state."""
    s: int
    """Inputs of a step."""
    y: int
    """Outputs of a step."""
    saved: int = 0
    """Saved values of a step, besides the state."""
    large_leaves: tuple[tuple[int, int], ...] = ()
    """First cell and size of each large free parameter."""
    has_large_parameters: bool = False
    """Whether there are large parameters, free or fixed; these are not packed into lanes but read in place."""

    @property
    def small_cells(self) -> list[int]:
        """Cells of the small free parameters."""
        large_cells = {k for first, size in self.large_leaves for k in range(first, first + size)}
        return [k for k in range(self.free) if k not in large_cells]


def compact_parameters(
    sizes: StepSizes, *graphs: tuple[Graph, Outputs]
) -> tuple[list[int], list[tuple[Graph, Outputs]]]:
    """Cells of `fixed` that graphs read; and the graphs, reading these and small free parameters from compact rows."""
    used, compact = compact_slot("fixed", *graphs)
    if sizes.large_leaves:
        new_index = {cell: k for k, cell in enumerate(sizes.small_cells)}
        compact = [
            (
                remap_slot(graph, "free", new_index),
                {(s, new_index[k] if s == "contribution" else k): node for (s, k), node in outputs.items()},
            )
            for graph, outputs in compact
        ]
    return used, compact


@dataclass(frozen=True)
class Kernel:
    """IR of a kernel and its memory requirements."""

    name: str
    functions: tuple[EmittedFunction, ...]
    texts: tuple[str, ...]
    """Declarations, constants and the driver loop."""
    group_size: int
    """Trajectories per group."""
    lanes: int
    """Lanes per vector: trajectories, or time steps or directions of a single trajectory."""
    work_cells: int
    """Cells of working memory, besides the states."""
    cells_per_state: int = 0
    """Cells of memory per stored state."""
    cells_per_direction: int = 0
    """Cells of memory per direction of differentiation."""


def split_step(graph: Graph, outputs: Outputs) -> dict[int, GraphStage]:
    """Stages of a step: operations on parameters only, hoisted out of the time loop, and the remainder."""
    stages = assign_stages(graph, outputs)
    empty = GraphStage(Graph(), {}, 0)
    slots = {PARAMETERS: "parameter_values"}
    return {STATE: empty} | split_stages(graph, outputs, stages, slots.get, lambda slot: STATE)


def lane_slots(names: str) -> list[Slot]:
    """Per-lane slots."""
    return [Slot(name, True) for name in names.split()]


class KernelWriter:
    """A kernel under construction."""

    def __init__(
        self,
        name: str,
        sizes: StepSizes,
        used_cells: Sequence[int],
        group_size: int,
        parameter_lanes: int,
        register_width: int,
        prologues: dict[str, GraphStage | None],
    ):
        """Open a kernel.

        Args:
            name: kernel name.
            sizes: sizes of a step's arrays.
            used_cells: cells of `fixed` that are read.
            group_size: trajectories per group.
            parameter_lanes: lanes of packed parameters.
            register_width: elements of a vector register.
            prologues: for each slot of values that depend on parameters only, the stage that computes them.
        """
        self.name, self.sizes, self.used_cells = name, sizes, used_cells
        self.group_size, self.parameter_lanes, self.register_width = group_size, parameter_lanes, register_width
        self.code = FunctionBuilder(name, [("ptr", "record")])
        self.functions: dict[str, EmittedFunction] = {}
        self.areas: dict[str, tuple[int, int]] = {}
        self.work_cells = 0
        self.prologues = {slot: stage for slot, stage in prologues.items() if stage is not None and stage.passed_cells}
        self.trajectories: list[str] = []
        self.streams: dict[str, list[str]] = {}
        """Base addresses of the streamed arrays, for every lane."""
        self.group = ""
        self.large_addresses: dict[str, str] = {}
        """Addresses of the slots of large parameters and of their accumulated gradients."""
        self.fields = {}
        for index, field in enumerate(RECORD_FIELDS):
            address = self.code.cell("%record", index)
            load = self.code.load_pointer if field in POINTER_FIELDS else self.code.load_i64
            self.fields[field] = load(address)

    def field(self, name: str) -> str:
        """Value of a field of the record."""
        return self.fields[name]

    # memory

    def area(self, name: str, cells: int, lanes: int | None = None) -> str:
        """Address of a named area of working memory, of `cells` vectors; allocated on first use."""
        size = max(cells, 1) * (self.group_size if lanes is None else lanes)
        if name not in self.areas:
            self.areas[name] = (self.work_cells, size)
            self.work_cells += size + -size % 16
        offset, allocated = self.areas[name]
        assert size == allocated, f"area {name!r} has two sizes"
        return self.code.cell(self.field("work"), offset)

    def double_buffer(self, name: str, index: str, cells: int, lanes: int | None = None) -> str:
        """Address of the half of a double buffer that belongs to an even or odd index."""
        lanes = self.group_size if lanes is None else lanes
        half = self.code.mul(self.code.value(f"and i64 {index}, 1"), cells * lanes)
        return self.code.cell(self.area(name, 2 * cells, lanes), half)

    # functions

    def parameter_slots(self, lanes: int) -> list[Slot]:
        """Slots of parameters, for a function with the lanes of packed parameters or with a single lane."""
        template = Slot("", True) if lanes == self.parameter_lanes else Slot("", False, self.parameter_lanes)
        slots = [replace(template, name=name) for name in ("fixed", "free", *self.prologues)]
        if self.sizes.has_large_parameters:
            slots += [Slot(name, False) for name in LARGE_PARAMETER_SLOTS]
        return slots

    def add_function(self, name: str, stage: GraphStage, lanes: int, slots: Sequence[Slot]) -> None:
        """Emit a stage of the step as a function."""
        all_slots = [*self.parameter_slots(lanes), *slots]
        self.functions[name] = emit(name, stage.graph, stage.outputs, all_slots, lanes, self.register_width)

    def call(self, name: str, addresses: dict[str, str], lanes: int | None = None) -> None:
        """Emit a call to a function, with the addresses of its slots."""
        function = self.functions[name]
        bound = self._parameters() | addresses
        scratch = self.area(f"scratch of {name}", function.scratch_cells, lanes)
        self.code.call(name, [*(bound[slot.name] for slot in function.slots), scratch])

    def _parameters(self) -> dict[str, str]:
        sizes = {"fixed": len(self.used_cells), "free": len(self.sizes.small_cells)}
        sizes |= {slot: stage.passed_cells for slot, stage in self.prologues.items()}
        return self.large_addresses | {
            name: self.area(name, size, self.parameter_lanes) for name, size in sizes.items()
        }

    # groups of trajectories

    @contextmanager
    def groups(self, results: dict[str, int]) -> Iterator[None]:
        """Loop over groups of trajectories, with their parameters packed.

        Args:
            results: cells per step of each streamed result, by name.
        """
        code = self.code
        for slot, stage in self.prologues.items():
            self.add_function(f"prologue_{slot}", stage, self.parameter_lanes, [])
        with code.loop(self.field("first"), self.field("last")) as group:
            last = code.sub(self.field("batch"), 1)
            first = code.mul(group, self.group_size)
            self.group = group
            self.trajectories = [code.minimum(code.add(first, lane), last) for lane in range(self.group_size)]
            inputs = ["s", "ct_y"] if "d_s" in results else ["s"]
            self.streams = {name: self.rows(name) for name in inputs}
            for name, cells in results.items():
                self.streams[name] = self.rows(name, stride=code.mul(self.field("steps"), cells))
            if self.sizes.has_large_parameters:
                self.large_addresses = {slot: self.rows(name)[0] for slot, name in LARGE_PARAMETER_SLOTS.items()}
            small = "@small" if self.sizes.large_leaves else None
            for name, size, table in (
                ("fixed", len(self.used_cells), "@used"),
                ("free", len(self.sizes.small_cells), small),
            ):
                rows = self.rows(name)
                packed = self.area(name, size, self.parameter_lanes)
                code.pack(rows * (self.parameter_lanes // len(rows)), packed, size, table)
            for slot in self.prologues:
                self.call(f"prologue_{slot}", {}, self.parameter_lanes)
            yield

    def rows(self, name: str, *, stride: str | None = None) -> list[str]:
        """Address of the row of an array for every lane."""
        code = self.code
        stride = self.field(f"{name}_stride") if stride is None else stride
        return [code.cell(self.field(name), code.mul(trajectory, stride)) for trajectory in self.trajectories]

    def rows_at(self, name: str, t: str, cells: int | None = None) -> list[str]:
        """Address of the row of a streamed array at step t, for every lane; a result has `cells` per step."""
        offset = self.code.mul(t, self.field(f"{name}_step") if cells is None else cells)
        return [self.code.cell(row, offset) for row in self.streams[name]]

    def read(self, name: str, target: str, cells: int, t: str | None = None) -> None:
        """Pack rows of an array into lanes; with `t`, those of a step."""
        if cells:
            self.code.pack(self.rows(name) if t is None else self.rows_at(name, t), target, cells)

    def write(self, source: str, name: str, cells: int, t: str | None = None) -> None:
        """Unpack lanes into rows of a result."""
        if cells:
            with self.skip_unless_requested(name):
                rows = self.rows(name, stride=str(cells)) if t is None else self.rows_at(name, t, cells)
                self.code.unpack(source, rows, cells)

    def skip_unless_requested(self, name: str) -> AbstractContextManager[None]:
        """Code that is skipped at run time if the caller omits a result."""
        if name not in OPTIONAL_RESULTS:
            return nullcontext()
        return self.code.if_then(self.code.value(f"icmp ne ptr {self.field(name)}, null"))

    # one step

    def step(self, t: str, x: str, x2: str, *, write_outputs: bool, extra: dict[str, str] | None = None) -> None:
        """Emit one step from the state at address x to that at x2."""
        s, y = self.area("s", self.sizes.s), self.area("y", self.sizes.y)
        self.read("s", s, self.sizes.s, t)
        self.call("step", {"x": x, "s": s, "x2": x2, "y": y} | (extra or {}))
        if write_outputs:
            self.write(y, "y", self.sizes.y, t)

    def kernel(self, *, cells_per_state: int = 0, cells_per_direction: int = 0) -> Kernel:
        """The complete kernel."""
        tables = [_table("used", self.used_cells)]
        if self.sizes.large_leaves:
            tables.append(_table("small", self.sizes.small_cells))
        functions, texts = tuple(self.functions.values()), (DECLARATIONS, *tables, self.code.text())
        lanes = max(f.lanes for f in functions)
        return Kernel(
            self.name, functions, texts, self.group_size, lanes, self.work_cells, cells_per_state, cells_per_direction
        )


def _table(name: str, cells: Sequence[int]) -> str:
    """Cell indices as a constant array."""
    indices = ", ".join(f"i64 {cell}" for cell in cells) or "i64 0"
    return f"@{name} = private constant [{max(len(cells), 1)} x i64] [{indices}], align 8\n"

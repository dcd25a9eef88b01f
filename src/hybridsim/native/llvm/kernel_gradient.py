"""Gradient kernel: a rollout, then a reverse sweep that propagates cotangents through the steps.

The forward sweep stores the states of one segment, the saved values of its steps (`rematerialization.py`), and a
checkpoint at the beginning of every segment. Usually all steps form one segment; if that exceeds the memory budget,
segments have about √T steps, and the reverse sweep recomputes their states from the checkpoints.

For a single trajectory the lanes of the reverse sweep are W time steps, except in the recursion itself. Everything
independent of cotangents is computed for W steps in parallel (`state_stage`), then the cotangents are propagated
through them one by one (`cotangent_stage`), then the gradients with respect to parameters and inputs follow, again for
W steps in parallel (`gradient_stage`). These are the same operations on the same values as for many trajectories, so
the results are bitwise identical.
"""

from hybridsim.native.graph.arrays import ArrayInput, add_to_input
from hybridsim.native.graph.graph import ARRAY, Graph
from hybridsim.native.graph.partition import (
    COTANGENT,
    GRADIENT,
    PARAMETERS,
    STATE,
    GraphStage,
    Outputs,
    assign_stages,
    split_stages,
)
from hybridsim.native.llvm.emit_straight_line import Slot
from hybridsim.native.llvm.kernel_writer import (
    Kernel,
    KernelWriter,
    StepSizes,
    compact_parameters,
    lane_slots,
    split_step,
)


def gradient_kernel(
    step: tuple[Graph, Outputs],
    vjp: tuple[Graph, Outputs],
    sizes: StepSizes,
    group_size: int,
    time_lanes: int,
    register_width: int,
) -> Kernel:
    """Kernel of a rollout and its reverse sweep.

    Args:
        step: graph of a step and its outputs `x2`, `y` and `saved` (saved values).
        vjp: graph of its vector-Jacobian product, which also reads `saved` and the cotangents `ct` (of x2) and `ct_y`,
            and writes `ct2` (of x), `contribution` (to the gradient with respect to free parameters) and `d_s`.
        sizes: sizes of the arrays.
        group_size: trajectories per group, one per lane; 1 for a kernel of one trajectory.
        time_lanes: time steps per vector where `group_size` is 1.
        register_width: elements of a vector register.
    """
    used, (step, vjp) = compact_parameters(sizes, step, vjp)
    forward = split_step(*step)
    by_time = group_size == 1 and not sizes.has_large_parameters
    stages = _stages(*vjp, by_time=by_time)
    parameter_lanes = time_lanes if by_time else group_size
    prologues = {"parameter_values": forward.get(PARAMETERS), "parameter_values_vjp": stages.get(PARAMETERS)}
    writer = KernelWriter("gradient", sizes, used, group_size, parameter_lanes, register_width, prologues)
    writer.add_function("step", forward[STATE], group_size, lane_slots("x s x2 y saved"))
    sweep = _Sweep(writer)
    segment_sweep = _TimeLanes(sweep, stages, time_lanes) if by_time else _TrajectoryLanes(sweep, stages)
    accumulator = _GradientAccumulator(writer)
    with writer.groups({"y": sizes.y, "d_s": sizes.s}):
        sweep.forward()
        writer.read("ct_end", writer.area("ct", 2 * sizes.x), sizes.x)
        accumulator.clear()
        sweep.reverse(segment_sweep)
        writer.write(writer.double_buffer("ct", writer.field("steps"), sizes.x), "d_x0", sizes.x)
        accumulator.write()
    return writer.kernel(cells_per_state=(sizes.x + sizes.saved) * group_size)


def _stages(graph: Graph, outputs: Outputs, *, by_time: bool) -> dict[int, GraphStage]:
    """Stages of the derivative of a step: two for many trajectories, four for a single one."""
    slots = {PARAMETERS: "parameter_values_vjp", STATE: "state_values", COTANGENT: "cotangent_values"}
    if not by_time:
        outputs = _accumulate_contributions(graph, outputs)
        stage_of = {n: min(k, STATE) for n, k in assign_stages(graph, outputs).items()}
        return split_stages(graph, outputs, stage_of, slots.get, lambda slot: STATE)
    recursion = set(graph.live_nodes(node for (slot, _), node in outputs.items() if slot == "ct2"))
    stage_of = {
        n: GRADIENT if k == COTANGENT and n not in recursion else k for n, k in assign_stages(graph, outputs).items()
    }
    stages = split_stages(graph, outputs, stage_of, slots.get, lambda slot: COTANGENT if slot == "ct2" else GRADIENT)
    empty = GraphStage(Graph(), {}, 0)
    return {k: stages.get(k, empty) for k in (PARAMETERS, STATE, COTANGENT, GRADIENT)}


def _accumulate_contributions(graph: Graph, outputs: Outputs) -> Outputs:
    """Replace contributions by their sum with the accumulator.

    The addition is not contracted to a fused multiply-add, so that the rounding is the same as where
    contributions are computed separately.
    """
    result = {}
    for (slot, index), node in outputs.items():
        if slot != "contribution":
            result[slot, index] = node
        elif graph.kinds[node] == ARRAY:
            result["acc", index] = add_to_input(graph, ArrayInput("acc", index, graph.data[node].size), node)
        elif graph.constants.get(node) != 0.0:
            result["acc", index] = graph.node("add", graph.input("acc", index), node)
    return result


class _GradientAccumulator:
    """The gradient with respect to free parameters, accumulated over the steps.

    With large parameters, a kernel with several lanes accumulates it over trajectories too, in one row per `chunk` of
    groups; the number of rows is small and independent of the number of threads.
    """

    def __init__(self, writer: KernelWriter):
        self.writer, self.over_trajectories = writer, bool(writer.sizes.large_leaves)
        self.small_count = len(writer.sizes.small_cells)

    def _area(self) -> str:
        return self.writer.area("acc", self.small_count)

    def clear(self) -> None:
        writer, code, group_size = self.writer, self.writer.code, self.writer.group_size
        code.clear(self._area(), self.small_count * group_size)
        if not self.over_trajectories:
            return
        chunk, free = writer.field("chunk"), writer.sizes.free
        row = code.cell(writer.field("d_free"), code.mul(code.value(f"udiv i64 {writer.group}, {chunk}"), free))
        is_first = code.value(f"icmp eq i64 {code.value(f'urem i64 {writer.group}, {chunk}')}, 0")
        with code.if_then(is_first):
            code.clear(row, free)
        mask = writer.area("mask", 1)
        for lane in range(group_size):
            trajectory = code.add(code.mul(writer.group, group_size), lane)
            is_valid = code.value(f"icmp slt i64 {trajectory}, {writer.field('batch')}")
            weight = code.value(f"uitofp i1 {is_valid} to double")
            code.emit(f"store double {weight}, ptr {code.cell(mask, lane)}, align 8")
        writer.large_addresses |= {"sums": row, "mask": mask}

    def write(self) -> None:
        writer, code, group_size = self.writer, self.writer.code, self.writer.group_size
        if not self.over_trajectories:
            writer.write(self._area(), "d_free", self.small_count)
            return
        with code.loop(0, self.small_count) as k:
            target = code.cell(writer.large_addresses["sums"], code.load_i64(code.cell("@small", k)))
            total = code.value(f"load double, ptr {target}, align 8")
            for lane in range(group_size):
                address = code.cell(code.cell(self._area(), code.mul(k, group_size)), lane)
                term = code.value(f"load double, ptr {address}, align 8")
                mask = code.value(f"load double, ptr {code.cell(writer.large_addresses['mask'], lane)}, align 8")
                is_valid = code.value(f"fcmp une double {mask}, 0.0")
                term = code.value(f"select i1 {is_valid}, double {term}, double 0.0")
                total = code.value(f"fadd double {total}, {term}")
            code.emit(f"store double {total}, ptr {target}, align 8")


class _Sweep:
    """Forward and reverse sweep over segments."""

    def __init__(self, writer: KernelWriter):
        self.writer = writer
        code, cells = writer.code, writer.sizes.x * writer.group_size
        self.state_cells, self.saved_cells = cells, writer.sizes.saved * writer.group_size
        self.states = writer.field("states")
        self.checkpoints = code.cell(self.states, code.mul(code.add(writer.field("segment"), 1), cells))
        rounded = code.add(writer.field("steps"), code.sub(writer.field("segment"), 1))
        self.segments = code.value(f"udiv i64 {rounded}, {writer.field('segment')}")
        self.saved_values = code.cell(self.checkpoints, code.mul(code.add(self.segments, 1), cells))

    def saved_address(self, step: str) -> str:
        """Address of the saved values of a step of the current segment."""
        return self.writer.code.cell(self.saved_values, self.writer.code.mul(step, self.saved_cells))

    def state_address(self, step: str) -> str:
        """Address of a state of the current segment."""
        return self.writer.code.cell(self.states, self.writer.code.mul(step, self.state_cells))

    def forward(self) -> None:
        writer, code = self.writer, self.writer.code
        writer.read("x0", self.checkpoints, writer.sizes.x)
        with code.loop(0, self.segments) as k:
            first, length = self._bounds(k)
            checkpoint = code.cell(self.checkpoints, code.mul(k, self.state_cells))
            self._simulate(checkpoint, first, length, write_outputs=True)
            code.copy(self.state_address(length), code.cell(checkpoint, self.state_cells), self.state_cells)
        end = code.cell(self.checkpoints, code.mul(self.segments, self.state_cells))
        writer.write(end, "x_end", writer.sizes.x)

    def reverse(self, segment_sweep: "_TimeLanes | _TrajectoryLanes") -> None:
        code = self.writer.code
        with code.loop(0, self.segments) as reverse_index:
            k = code.sub(code.sub(self.segments, 1), reverse_index)
            first, length = self._bounds(k)
            # the states of the last segment are still in memory from the forward sweep
            with code.if_then(code.value(f"icmp sgt i64 {reverse_index}, 0")):
                checkpoint = code.cell(self.checkpoints, code.mul(k, self.state_cells))
                self._simulate(checkpoint, first, length, write_outputs=False)
            segment_sweep.segment(first, length)

    def _bounds(self, k: str) -> tuple[str, str]:
        """First step and length of a segment."""
        code, segment = self.writer.code, self.writer.field("segment")
        first = code.mul(k, segment)
        return first, code.minimum(segment, code.sub(self.writer.field("steps"), first))

    def _simulate(self, checkpoint: str, first: str, length: str, *, write_outputs: bool) -> None:
        """Compute the states and saved values of a segment from its checkpoint."""
        code = self.writer.code
        code.copy(checkpoint, self.states, self.state_cells)
        with code.loop(0, length) as j:
            x = self.state_address(j)
            extra = {"saved": self.saved_address(j)}
            t, x2 = code.add(first, j), code.cell(x, self.state_cells)
            self.writer.step(t, x, x2, write_outputs=write_outputs, extra=extra)


class _TrajectoryLanes:
    """Reverse sweep of a group of trajectories, one step at a time."""

    def __init__(self, sweep: _Sweep, stages: dict[int, GraphStage]):
        self.sweep, self.writer = sweep, sweep.writer
        slots = lane_slots("x s saved ct ct_y ct2 acc d_s")
        if self.writer.sizes.large_leaves:
            slots += [Slot("sums", False), Slot("mask", True)]
        self.writer.add_function("vjp", stages[STATE], self.writer.group_size, slots)

    def segment(self, first: str, length: str) -> None:
        writer, code, sizes = self.writer, self.writer.code, self.writer.sizes
        s, ct_y, d_s = (writer.area(*a) for a in (("s", sizes.s), ("ct_y", sizes.y), ("d_s", sizes.s)))
        acc = writer.area("acc", len(sizes.small_cells))
        with code.loop(0, length) as reverse_index:
            j = code.sub(code.sub(length, 1), reverse_index)
            t = code.add(first, j)
            steps_done = code.sub(code.sub(writer.field("steps"), 1), t)
            writer.read("s", s, sizes.s, t)
            writer.read("ct_y", ct_y, sizes.y, t)
            ct, ct2 = (
                writer.double_buffer("ct", steps_done, sizes.x),
                writer.double_buffer("ct", code.add(steps_done, 1), sizes.x),
            )
            arrays = {
                "x": self.sweep.state_address(j),
                "saved": self.sweep.saved_address(j),
                "s": s,
                "ct": ct,
                "ct_y": ct_y,
                "ct2": ct2,
                "acc": acc,
                "d_s": d_s,
            }
            writer.call("vjp", arrays)
            writer.write(d_s, "d_s", sizes.s, t)


class _TimeLanes:
    """Reverse sweep of a single trajectory, W steps at a time."""

    def __init__(self, sweep: _Sweep, stages: dict[int, GraphStage], lanes: int):
        self.sweep, self.writer, self.lanes = sweep, sweep.writer, lanes
        sizes, writer = self.writer.sizes, self.writer
        self.cells = {
            "x": sizes.x, "saved": sizes.saved, "s": sizes.s, "ct": sizes.x, "ct_y": sizes.y,
            "state_values": stages[STATE].passed_cells, "cotangent_values": stages[COTANGENT].passed_cells,
            "contribution": sizes.free, "d_s": sizes.s,
        }  # fmt: skip
        wide = [Slot(name, True) for name in self.cells]
        one_lane = [Slot(name, False, lanes) for name in self.cells if name != "ct"]
        one_lane += [Slot("ct", False), Slot("ct2", False)]
        writer.add_function("state_stage", stages[STATE], lanes, wide)
        writer.add_function("cotangent_stage", stages[COTANGENT], 1, one_lane)
        writer.add_function("gradient_stage", stages[GRADIENT], lanes, wide)
        self.copies_ct = "ct" in stages[GRADIENT].read_slots()

    def segment(self, first: str, length: str) -> None:
        writer, code, sizes, lanes = self.writer, self.writer.code, self.writer.sizes, self.lanes
        areas = {name: writer.area(f"wide {name}", cells, lanes) for name, cells in self.cells.items()}
        blocks = code.value(f"udiv i64 {code.add(length, lanes - 1)}, {lanes}")
        with code.loop(0, blocks) as reverse_index:
            begin = code.mul(code.sub(code.sub(blocks, 1), reverse_index), lanes)
            count = code.minimum(code.sub(length, begin), lanes)
            indices = [code.add(begin, code.minimum(lane, code.sub(count, 1))) for lane in range(lanes)]
            code.pack([self.sweep.state_address(p) for p in indices], areas["x"], sizes.x)
            code.pack([self.sweep.saved_address(p) for p in indices], areas["saved"], sizes.saved)
            for name, cells in (("s", sizes.s), ("ct_y", sizes.y)):
                if cells:
                    rows = [writer.rows_at(name, code.add(first, p))[0] for p in indices]
                    code.pack(rows, areas[name], cells)
            writer.call("state_stage", areas, lanes)
            self._propagate(areas, code.add(first, begin), count)
            writer.call("gradient_stage", areas, lanes)
            self._accumulate(areas["contribution"], count)
            self._write_input_gradient(areas["d_s"], code.add(first, begin), count)

    def _propagate(self, areas: dict[str, str], first: str, count: str) -> None:
        """Propagate the cotangent through the steps of a block, from the last to the first."""
        writer, code, cells = self.writer, self.writer.code, self.writer.sizes.x
        with code.loop(0, count) as reverse_index:
            lane = code.sub(code.sub(count, 1), reverse_index)
            steps_done = code.sub(code.sub(writer.field("steps"), 1), code.add(first, lane))
            columns = {name: code.cell(address, lane) for name, address in areas.items()}
            ct = writer.double_buffer("ct", steps_done, cells)
            if self.copies_ct:
                for k in range(cells):
                    value = code.load_i64(code.cell(ct, k))
                    code.emit(f"store i64 {value}, ptr {code.cell(columns['ct'], k * self.lanes)}, align 8")
            ct2 = writer.double_buffer("ct", code.add(steps_done, 1), cells)
            writer.call("cotangent_stage", columns | {"ct": ct, "ct2": ct2}, 1)

    def _accumulate(self, contribution: str, count: str) -> None:
        """Accumulate the contributions of the steps in the same order as a kernel with lanes of trajectories."""
        code, acc = self.writer.code, self.writer.area("acc", self.writer.sizes.free)
        with code.loop(0, self.writer.sizes.free) as k:
            target = code.cell(acc, k)
            row = code.cell(contribution, code.mul(k, self.lanes))
            with code.loop(0, count) as reverse_index:
                lane = code.sub(code.sub(count, 1), reverse_index)
                total = code.value(f"load double, ptr {target}, align 8")
                term = code.value(f"load double, ptr {code.cell(row, lane)}, align 8")
                total = code.value(f"fadd double {total}, {term}")
                code.emit(f"store double {total}, ptr {target}, align 8")

    def _write_input_gradient(self, d_s: str, first: str, count: str) -> None:
        """Write the gradient with respect to the inputs."""
        writer, code, cells = self.writer, self.writer.code, self.writer.sizes.s
        if not cells:
            return
        with writer.skip_unless_requested("d_s"), code.loop(0, count) as lane:
            (target,) = writer.rows_at("d_s", code.add(first, lane), cells)
            with code.loop(0, cells) as k:
                value = code.load_i64(code.cell(d_s, code.add(code.mul(k, self.lanes), lane)))
                code.emit(f"store i64 {value}, ptr {code.cell(target, k)}, align 8")

"""The gradient kernel: a rollout, then a sweep backwards that carries cotangents through the steps.

The forward sweep keeps the states of one segment, those values of its steps that would take long to compute again
(`keeping.py`), and the start of every segment. As a rule all steps are one segment;
beyond a budget of memory segments have about √T steps, and the reverse sweep computes their states once more.

For one trajectory alone the reverse sweep takes W time steps as lanes wherever it does not have to wait. Everything
that needs no cotangent is computed for W steps at once (`mid`), then the cotangents run through them one by one
(`late`), then all that nobody waits for, the gradients of parameters and inputs, again for W steps at once. These are
the same operations on the same numbers as for many trajectories, so the result is the same bit by bit.
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
    lanes: int,
    time_lanes: int,
    register: int,
) -> Kernel:
    """A rollout and its reverse sweep.

    Args:
        step: graph of a step and its outputs `x2`, `y` and `kept`.
        vjp: graph of its derivative, which also reads `kept` and the cotangents `ct` (of x2) and `ct_y`, and writes
            `ct2` (of x), `contribution` (to the gradient of free parameters) and `d_s`.
        sizes: of the arrays.
        lanes: trajectories per vector; 1 for a kernel of one trajectory.
        time_lanes: time steps per vector where lanes is 1.
        register: numbers in a vector register.
    """
    used, (step, vjp) = compact_parameters(sizes, step, vjp)
    forward = split_step(*step, "pre")
    by_time = lanes == 1 and not sizes.in_place
    stages = _stages(*vjp, by_time=by_time)
    width = time_lanes if by_time else lanes
    prologues = {"pre": forward.get(PARAMETERS), "pre_vjp": stages.get(PARAMETERS)}
    writer = KernelWriter("gradient", sizes, used, lanes, width, register, prologues)
    writer.add("step", forward[STATE], lanes, lane_slots("x s x2 y kept"))
    sweep = _Sweep(writer)
    reverse = _TimeLanes(sweep, stages, time_lanes) if by_time else _TrajectoryLanes(sweep, stages)
    sums = _Sums(writer)
    with writer.groups({"y": sizes.y, "d_s": sizes.s}):
        sweep.forward()
        writer.read("ct_end", writer.area("ct", 2 * sizes.x), sizes.x)
        sums.start()
        sweep.backward(reverse)
        writer.write(writer.ring("ct", writer.field("steps"), sizes.x), "d_x0", sizes.x)
        sums.finish()
    return writer.finished(per_state=(sizes.x + sizes.saved) * lanes)


def _stages(graph: Graph, outputs: Outputs, *, by_time: bool) -> dict[int, GraphStage]:
    """The derivative of a step cut into stages: two of them for many trajectories, four for one alone."""
    names = {PARAMETERS: "pre_vjp", STATE: "mid", COTANGENT: "late"}
    if not by_time:
        outputs = _accumulated(graph, outputs)
        marks = {n: min(k, STATE) for n, k in assign_stages(graph, outputs).items()}
        return split_stages(graph, outputs, marks, names.get, lambda slot: STATE)
    waiting = set(graph.live(node for (slot, _), node in outputs.items() if slot == "ct2"))
    marks = {
        n: GRADIENT if k == COTANGENT and n not in waiting else k for n, k in assign_stages(graph, outputs).items()
    }
    stages = split_stages(graph, outputs, marks, names.get, lambda slot: COTANGENT if slot == "ct2" else GRADIENT)
    nothing = GraphStage(Graph(), {}, 0)
    return {k: stages.get(k, nothing) for k in (PARAMETERS, STATE, COTANGENT, GRADIENT)}


def _accumulated(graph: Graph, outputs: Outputs) -> Outputs:
    """Outputs in which contributions are added to what has been summed so far.

    The sum is not fused with anything, so that it is the same sum where contributions are computed apart from it.
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


class _Sums:
    """The gradient of free parameters, summed over the steps.

    Where there are large parameters it is summed over trajectories too, in a row for every `chunk` of groups: so many
    rows are few, and they are the same whatever the number of threads.
    """

    def __init__(self, writer: KernelWriter):
        self.writer, self.over_trajectories = writer, bool(writer.sizes.large)
        self.small = len(writer.sizes.small)

    def _area(self) -> str:
        return self.writer.area("acc", self.small)

    def start(self) -> None:
        writer, code, lanes = self.writer, self.writer.code, self.writer.lanes
        code.clear(self._area(), self.small * lanes)
        if not self.over_trajectories:
            return
        chunk, free = writer.field("chunk"), writer.sizes.free
        row = code.cell(writer.field("d_free"), code.mul(code.value(f"udiv i64 {writer.group}, {chunk}"), free))
        is_first = code.value(f"icmp eq i64 {code.value(f'urem i64 {writer.group}, {chunk}')}, 0")
        with code.when(is_first):
            code.clear(row, free)
        mask = writer.area("mask", 1)
        for lane in range(lanes):
            here = code.add(code.mul(writer.group, lanes), lane)
            is_own = code.value(f"icmp slt i64 {here}, {writer.field('batch')}")
            number = code.value(f"uitofp i1 {is_own} to double")
            code.do(f"store double {number}, ptr {code.cell(mask, lane)}, align 8")
        writer.in_place |= {"sums": row, "mask": mask}

    def finish(self) -> None:
        writer, code, lanes = self.writer, self.writer.code, self.writer.lanes
        if not self.over_trajectories:
            writer.write(self._area(), "d_free", self.small)
            return
        with code.loop(0, self.small) as k:
            place = code.cell(writer.in_place["sums"], code.number(code.cell("@small", k)))
            total = code.value(f"load double, ptr {place}, align 8")
            for lane in range(lanes):
                address = code.cell(code.cell(self._area(), code.mul(k, lanes)), lane)
                number = code.value(f"load double, ptr {address}, align 8")
                mask = code.value(f"load double, ptr {code.cell(writer.in_place['mask'], lane)}, align 8")
                is_own = code.value(f"fcmp une double {mask}, 0.0")
                number = code.value(f"select i1 {is_own}, double {number}, double 0.0")
                total = code.value(f"fadd double {total}, {number}")
            code.do(f"store double {total}, ptr {place}, align 8")


class _Sweep:
    """The two sweeps over segments."""

    def __init__(self, writer: KernelWriter):
        self.writer = writer
        code, cells = writer.code, writer.sizes.x * writer.lanes
        self.cells, self.kept_cells = cells, writer.sizes.saved * writer.lanes
        self.inside = writer.field("states")
        self.starts = code.cell(self.inside, code.mul(code.add(writer.field("segment"), 1), cells))
        whole = code.add(writer.field("steps"), code.sub(writer.field("segment"), 1))
        self.segments = code.value(f"udiv i64 {whole}, {writer.field('segment')}")
        self.all_kept = code.cell(self.starts, code.mul(code.add(self.segments, 1), cells))

    def kept(self, place: str) -> str:
        """What was kept of a step of the present segment."""
        return self.writer.code.cell(self.all_kept, self.writer.code.mul(place, self.kept_cells))

    def state(self, place: str) -> str:
        """A state of the present segment."""
        return self.writer.code.cell(self.inside, self.writer.code.mul(place, self.cells))

    def forward(self) -> None:
        writer, code = self.writer, self.writer.code
        writer.read("x0", self.starts, writer.sizes.x)
        with code.loop(0, self.segments) as k:
            first, length = self._span(k)
            start = code.cell(self.starts, code.mul(k, self.cells))
            self._run(start, first, length, keep=True)
            code.copy(self.state(length), code.cell(start, self.cells), self.cells)
        end = code.cell(self.starts, code.mul(self.segments, self.cells))
        writer.write(end, "x_end", writer.sizes.x)

    def backward(self, reverse: "_TimeLanes | _TrajectoryLanes") -> None:
        code = self.writer.code
        with code.loop(0, self.segments) as back:
            k = code.sub(code.sub(self.segments, 1), back)
            first, length = self._span(k)
            # the last segment is still there from the forward sweep
            with code.when(code.value(f"icmp sgt i64 {back}, 0")):
                self._run(code.cell(self.starts, code.mul(k, self.cells)), first, length, keep=False)
            reverse.segment(first, length)

    def _span(self, k: str) -> tuple[str, str]:
        """First step and length of a segment."""
        code, segment = self.writer.code, self.writer.field("segment")
        first = code.mul(k, segment)
        return first, code.least(segment, code.sub(self.writer.field("steps"), first))

    def _run(self, start: str, first: str, length: str, *, keep: bool) -> None:
        """Compute the states of a segment."""
        code = self.writer.code
        code.copy(start, self.inside, self.cells)
        with code.loop(0, length) as j:
            x = self.state(j)
            more = {"kept": self.kept(j)}
            self.writer.step(code.add(first, j), x, code.cell(x, self.cells), keep=keep, more=more)


class _TrajectoryLanes:
    """The reverse sweep of a group of trajectories, step by step."""

    def __init__(self, sweep: _Sweep, stages: dict[int, GraphStage]):
        self.sweep, self.writer = sweep, sweep.writer
        slots = lane_slots("x s kept ct ct_y ct2 acc d_s")
        if self.writer.sizes.large:
            slots += [Slot("sums", False), Slot("mask", True)]
        self.writer.add("vjp", stages[STATE], self.writer.lanes, slots)

    def segment(self, first: str, length: str) -> None:
        writer, code, sizes = self.writer, self.writer.code, self.writer.sizes
        s, ct_y, d_s = (writer.area(*a) for a in (("s", sizes.s), ("ct_y", sizes.y), ("d_s", sizes.s)))
        acc = writer.area("acc", len(sizes.small))
        with code.loop(0, length) as back:
            j = code.sub(code.sub(length, 1), back)
            t = code.add(first, j)
            done = code.sub(code.sub(writer.field("steps"), 1), t)
            writer.read("s", s, sizes.s, t)
            writer.read("ct_y", ct_y, sizes.y, t)
            ct, ct2 = writer.ring("ct", done, sizes.x), writer.ring("ct", code.add(done, 1), sizes.x)
            arrays = {
                "x": self.sweep.state(j),
                "kept": self.sweep.kept(j),
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
    """The reverse sweep of one trajectory, W steps at a time."""

    def __init__(self, sweep: _Sweep, stages: dict[int, GraphStage], lanes: int):
        self.sweep, self.writer, self.lanes = sweep, sweep.writer, lanes
        sizes, writer = self.writer.sizes, self.writer
        self.cells = {
            "x": sizes.x, "kept": sizes.saved, "s": sizes.s, "ct": sizes.x, "ct_y": sizes.y,
            "mid": stages[STATE].passed_cells, "late": stages[COTANGENT].passed_cells,
            "contribution": sizes.free, "d_s": sizes.s,
        }  # fmt: skip
        wide = [Slot(name, True) for name in self.cells]
        one_lane = [Slot(name, False, lanes) for name in self.cells if name != "ct"]
        writer.add("mid", stages[STATE], lanes, wide)
        writer.add("late", stages[COTANGENT], 1, [*one_lane, Slot("ct", False), Slot("ct2", False)])
        writer.add("gradient_step", stages[GRADIENT], lanes, wide)
        self.keeps_ct = "ct" in stages[GRADIENT].reads()

    def segment(self, first: str, length: str) -> None:
        writer, code, sizes, lanes = self.writer, self.writer.code, self.writer.sizes, self.lanes
        areas = {name: writer.area(f"wide {name}", cells, lanes) for name, cells in self.cells.items()}
        blocks = code.value(f"udiv i64 {code.add(length, lanes - 1)}, {lanes}")
        with code.loop(0, blocks) as back:
            begin = code.mul(code.sub(code.sub(blocks, 1), back), lanes)
            count = code.least(code.sub(length, begin), lanes)
            places = [code.add(begin, code.least(lane, code.sub(count, 1))) for lane in range(lanes)]
            code.pack([self.sweep.state(p) for p in places], areas["x"], sizes.x)
            code.pack([self.sweep.kept(p) for p in places], areas["kept"], sizes.saved)
            for name, cells in (("s", sizes.s), ("ct_y", sizes.y)):
                if cells:
                    rows = [writer.rows_at(name, code.add(first, p))[0] for p in places]
                    code.pack(rows, areas[name], cells)
            writer.call("mid", areas, lanes)
            self._run_through(areas, code.add(first, begin), count)
            writer.call("gradient_step", areas, lanes)
            self._add_up(areas["contribution"], count)
            self._write_inputs(areas["d_s"], code.add(first, begin), count)

    def _run_through(self, areas: dict[str, str], first: str, count: str) -> None:
        """Carry the cotangent through the steps of a block, from the last to the first."""
        writer, code, cells = self.writer, self.writer.code, self.writer.sizes.x
        with code.loop(0, count) as turn:
            lane = code.sub(code.sub(count, 1), turn)
            done = code.sub(code.sub(writer.field("steps"), 1), code.add(first, lane))
            own = {name: code.cell(address, lane) for name, address in areas.items()}
            ct = writer.ring("ct", done, cells)
            if self.keeps_ct:
                for k in range(cells):
                    number = code.number(code.cell(ct, k))
                    code.do(f"store i64 {number}, ptr {code.cell(own['ct'], k * self.lanes)}, align 8")
            writer.call("late", own | {"ct": ct, "ct2": writer.ring("ct", code.add(done, 1), cells)}, 1)

    def _add_up(self, contribution: str, count: str) -> None:
        """Add what the steps contribute in the order in which a lane of trajectories would."""
        code, acc = self.writer.code, self.writer.area("acc", self.writer.sizes.free)
        with code.loop(0, self.writer.sizes.free) as k:
            place = code.cell(acc, k)
            row = code.cell(contribution, code.mul(k, self.lanes))
            with code.loop(0, count) as turn:
                lane = code.sub(code.sub(count, 1), turn)
                total = code.value(f"load double, ptr {place}, align 8")
                more = code.value(f"load double, ptr {code.cell(row, lane)}, align 8")
                total = code.value(f"fadd double {total}, {more}")
                code.do(f"store double {total}, ptr {place}, align 8")

    def _write_inputs(self, d_s: str, first: str, count: str) -> None:
        """Write the gradient of what is streamed in."""
        writer, code, cells = self.writer, self.writer.code, self.writer.sizes.s
        if not cells:
            return
        with writer.if_wanted("d_s"), code.loop(0, count) as lane:
            (target,) = writer.rows_at("d_s", code.add(first, lane), cells)
            with code.loop(0, cells) as k:
                number = code.number(code.cell(d_s, code.add(code.mul(k, self.lanes), lane)))
                code.do(f"store i64 {number}, ptr {code.cell(target, k)}, align 8")

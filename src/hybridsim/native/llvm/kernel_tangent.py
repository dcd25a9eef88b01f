"""Tangent kernel: a rollout and its directional derivatives, by forward sensitivities.

Everything independent of the direction is computed once per step. For many trajectories lanes are trajectories and the
kernel loops over directions; for few, lanes are directions. Both do the same operations on the same values.
"""

from hybridsim.native.graph.graph import Graph
from hybridsim.native.graph.partition import PARAMETERS, STATE, TANGENT, Outputs, assign_stages, split_stages
from hybridsim.native.llvm.emit_straight_line import Slot
from hybridsim.native.llvm.kernel_writer import (
    Kernel,
    KernelWriter,
    StepSizes,
    compact_parameters,
    lane_slots,
)


def tangent_kernel(
    jvp: tuple[Graph, Outputs], sizes: StepSizes, lanes: int, direction_lanes: int, register_width: int
) -> Kernel:
    """Kernel of a rollout with directional derivatives.

    Args:
        jvp: graph of a step and its Jacobian-vector product, which also reads the tangents `t_free`, `t_x`, `t_s`, and
            its outputs: `x2`, `y` and their tangents `t_x2`, `t_y`.
        sizes: sizes of the arrays.
        lanes: trajectories per vector; 1 to use lanes for directions.
        direction_lanes: directions per vector where lanes is 1.
        register_width: elements of a vector register.
    """
    used, ((graph, outputs),) = compact_parameters(sizes, jvp)
    names = {PARAMETERS: "pre", STATE: "mid"}
    stages = split_stages(
        graph,
        outputs,
        assign_stages(graph, outputs),
        names.get,
        lambda slot: TANGENT if slot.startswith("t_") else STATE,
    )
    width = direction_lanes if lanes == 1 else lanes
    writer = KernelWriter("tangent", sizes, used, lanes, lanes, register_width, {"pre": stages.get(PARAMETERS)})
    passed = stages[STATE].passed_cells
    writer.add("step", stages[STATE], lanes, lane_slots("x s x2 y mid"))
    common = [Slot(name, lanes > 1) for name in ("x", "s", "mid")]
    writer.add("tangent_step", stages[TANGENT], width, [*common, *lane_slots("t_free t_x t_s t_x2 t_y")])
    sweep = _Directions(writer, width)
    code, steps = writer.code, writer.field("steps")
    with writer.groups({"y": sizes.y}):
        writer.read("x0", writer.area("x", 2 * sizes.x), sizes.x)
        sweep.read()
        mid = writer.area("mid", passed)
        with code.loop(0, steps) as t:
            x, x2 = writer.double_buffer("x", t, sizes.x), writer.double_buffer("x", code.add(t, 1), sizes.x)
            writer.step(t, x, x2, write_outputs=True, extra={"mid": mid})
            sweep.step(t, {"x": x, "s": writer.area("s", sizes.s), "mid": mid})
        writer.write(writer.double_buffer("x", steps, sizes.x), "x_end", sizes.x)
        sweep.write()
    return writer.kernel(cells_per_direction=(2 * sizes.x + sizes.free) * (1 if lanes == 1 else lanes))


class _Directions:
    """Tangents along all directions.

    The memory for states holds, for every direction, the tangents of the parameters and a double buffer of those of the
    state.
    """

    def __init__(self, writer: KernelWriter, width: int):
        self.writer, self.width = writer, width
        self.by_direction = writer.lanes == 1
        code = writer.code
        count = writer.field("directions")
        if self.by_direction:
            count = code.value(f"udiv i64 {code.add(count, width - 1)}, {width}")
        self.count = count

    def _loop(self):
        return self.writer.code.loop(0, self.count)

    def _memory(self, k: str) -> tuple[str, str]:
        """Addresses of the tangents of parameters and states, for the k-th direction or group of directions."""
        code, sizes = self.writer.code, self.writer.sizes
        base = code.cell(self.writer.field("states"), code.mul(k, (sizes.free + 2 * sizes.x) * self.width))
        return base, code.cell(base, sizes.free * self.width)

    def _lanes(self, k: str) -> list[tuple[str, str]]:
        """Trajectory and direction of every lane."""
        code, writer = self.writer.code, self.writer
        if not self.by_direction:
            return [(trajectory, k) for trajectory in writer.trajectories]
        first, last = code.mul(k, self.width), code.sub(writer.field("directions"), 1)
        directions = [code.minimum(code.add(first, lane), last) for lane in range(self.width)]
        return [(writer.trajectories[0], d) for d in directions]

    def _arguments(self, name: str, k: str, cells: int) -> list[str]:
        """Rows of tangents of the arguments."""
        code, writer = self.writer.code, self.writer
        rows = []
        for trajectory, direction in self._lanes(k):
            offset = code.add(code.mul(trajectory, writer.field(f"{name}_stride")), code.mul(direction, cells))
            rows.append(code.cell(writer.field(name), offset))
        return rows

    def _results(self, name: str, k: str, cells: int, t: str | None = None) -> list[str]:
        """Rows of a result, indexed by trajectory, direction and, if streamed, step."""
        code, writer = self.writer.code, self.writer
        rows = []
        for trajectory, direction in self._lanes(k):
            row = code.add(code.mul(trajectory, writer.field("directions")), direction)
            if t is not None:
                row = code.add(code.mul(row, writer.field("steps")), t)
            rows.append(code.cell(writer.field(name), code.mul(row, cells)))
        return rows

    def read(self) -> None:
        code, sizes = self.writer.code, self.writer.sizes
        with self._loop() as k:
            free, states = self._memory(k)
            code.pack(self._arguments("t_free", k, sizes.free), free, sizes.free)
            code.pack(self._arguments("t_x0", k, sizes.x), states, sizes.x)

    def step(self, t: str, common: dict[str, str]) -> None:
        writer, code, sizes = self.writer, self.writer.code, self.writer.sizes
        t_s, t_y = writer.area("t_s", sizes.s, self.width), writer.area("t_y", sizes.y, self.width)
        with self._loop() as k:
            free, states = self._memory(k)
            if sizes.s:
                rows = []
                for trajectory, direction in self._lanes(k):
                    offset = code.add(
                        code.mul(trajectory, writer.field("t_s_stride")),
                        code.mul(direction, writer.field("t_s_direction")),
                    )
                    offset = code.add(offset, code.mul(t, writer.field("t_s_step")))
                    rows.append(code.cell(writer.field("t_s"), offset))
                code.pack(rows, t_s, sizes.s)
            arrays = {"t_free": free, "t_s": t_s, "t_y": t_y}
            arrays |= {"t_x": self._double_buffer(states, t), "t_x2": self._double_buffer(states, code.add(t, 1))}
            writer.call("tangent_step", common | arrays, self.width)
            if sizes.y:
                code.unpack(t_y, self._results("t_y", k, sizes.y, t), sizes.y)

    def write(self) -> None:
        code, sizes = self.writer.code, self.writer.sizes
        with self._loop() as k:
            _, states = self._memory(k)
            end = self._double_buffer(states, self.writer.field("steps"))
            code.unpack(end, self._results("t_end", k, sizes.x), sizes.x)

    def _double_buffer(self, states: str, t: str) -> str:
        code = self.writer.code
        half = code.mul(code.value(f"and i64 {t}, 1"), self.writer.sizes.x * self.width)
        return code.cell(states, half)

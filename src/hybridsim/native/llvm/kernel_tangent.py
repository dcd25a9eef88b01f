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
    jvp: tuple[Graph, Outputs], sizes: StepSizes, group_size: int, direction_lanes: int, register_width: int
) -> Kernel:
    """Kernel of a rollout with directional derivatives.

    Args:
        jvp: graph of a step and its Jacobian-vector product, which also reads the tangents `t_free`, `t_x`, `t_s`, and
            its outputs: `x2`, `y` and their tangents `t_x2`, `t_y`.
        sizes: sizes of the arrays.
        group_size: trajectories per group, one per lane; 1 to use lanes for directions.
        direction_lanes: directions per vector where `group_size` is 1.
        register_width: elements of a vector register.
    """
    used, ((graph, outputs),) = compact_parameters(sizes, jvp)
    slots = {PARAMETERS: "parameter_values", STATE: "state_values"}
    stages = split_stages(
        graph,
        outputs,
        assign_stages(graph, outputs),
        slots.get,
        lambda slot: TANGENT if slot.startswith("t_") else STATE,
    )
    lanes = direction_lanes if group_size == 1 else group_size
    prologues = {"parameter_values": stages.get(PARAMETERS)}
    writer = KernelWriter("tangent", sizes, used, group_size, group_size, register_width, prologues)
    writer.add_function("step", stages[STATE], group_size, lane_slots("x s x2 y state_values"))
    common = [Slot(name, group_size > 1) for name in ("x", "s", "state_values")]
    writer.add_function("tangent_stage", stages[TANGENT], lanes, [*common, *lane_slots("t_free t_x t_s t_x2 t_y")])
    sweep = _Directions(writer, lanes)
    code, steps = writer.code, writer.field("steps")
    with writer.groups({"y": sizes.y}):
        writer.read("x0", writer.area("x", 2 * sizes.x), sizes.x)
        sweep.read()
        state_values = writer.area("state_values", stages[STATE].passed_cells)
        with code.loop(0, steps) as t:
            x, x2 = writer.double_buffer("x", t, sizes.x), writer.double_buffer("x", code.add(t, 1), sizes.x)
            writer.step(t, x, x2, write_outputs=True, extra={"state_values": state_values})
            sweep.step(t, {"x": x, "s": writer.area("s", sizes.s), "state_values": state_values})
        writer.write(writer.double_buffer("x", steps, sizes.x), "x_end", sizes.x)
        sweep.write()
    return writer.kernel(cells_per_direction=(2 * sizes.x + sizes.free) * group_size)


class _Directions:
    """Tangents along all directions.

    The memory for states or tangents holds, for every direction, the tangents of the parameters and a double buffer of
    those of the state.
    """

    def __init__(self, writer: KernelWriter, lanes: int):
        self.writer, self.lanes = writer, lanes
        self.by_direction = writer.group_size == 1
        code = writer.code
        count = writer.field("directions")
        if self.by_direction:
            count = code.value(f"udiv i64 {code.add(count, lanes - 1)}, {lanes}")
        self.count = count

    def _loop(self):
        return self.writer.code.loop(0, self.count)

    def _memory(self, k: str) -> tuple[str, str]:
        """Addresses of the tangents of parameters and states, for the k-th direction or group of directions."""
        code, sizes = self.writer.code, self.writer.sizes
        base = code.cell(self.writer.field("states"), code.mul(k, (sizes.free + 2 * sizes.x) * self.lanes))
        return base, code.cell(base, sizes.free * self.lanes)

    def _lane_indices(self, k: str) -> list[tuple[str, str]]:
        """Trajectory and direction of every lane."""
        code, writer = self.writer.code, self.writer
        if not self.by_direction:
            return [(trajectory, k) for trajectory in writer.trajectories]
        first, last = code.mul(k, self.lanes), code.sub(writer.field("directions"), 1)
        directions = [code.minimum(code.add(first, lane), last) for lane in range(self.lanes)]
        return [(writer.trajectories[0], d) for d in directions]

    def _arguments(self, name: str, k: str, cells: int) -> list[str]:
        """Rows of tangents of the arguments."""
        code, writer = self.writer.code, self.writer
        rows = []
        for trajectory, direction in self._lane_indices(k):
            offset = code.add(code.mul(trajectory, writer.field(f"{name}_stride")), code.mul(direction, cells))
            rows.append(code.cell(writer.field(name), offset))
        return rows

    def _results(self, name: str, k: str, cells: int, t: str | None = None) -> list[str]:
        """Rows of a result, indexed by trajectory, direction and, if streamed, step."""
        code, writer = self.writer.code, self.writer
        rows = []
        for trajectory, direction in self._lane_indices(k):
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
        t_s, t_y = writer.area("t_s", sizes.s, self.lanes), writer.area("t_y", sizes.y, self.lanes)
        with self._loop() as k:
            free, states = self._memory(k)
            if sizes.s:
                rows = []
                for trajectory, direction in self._lane_indices(k):
                    offset = code.add(
                        code.mul(trajectory, writer.field("t_s_stride")),
                        code.mul(direction, writer.field("t_s_direction")),
                    )
                    offset = code.add(offset, code.mul(t, writer.field("t_s_step")))
                    rows.append(code.cell(writer.field("t_s"), offset))
                code.pack(rows, t_s, sizes.s)
            arrays = {"t_free": free, "t_s": t_s, "t_y": t_y}
            arrays |= {"t_x": self._double_buffer(states, t), "t_x2": self._double_buffer(states, code.add(t, 1))}
            writer.call("tangent_stage", common | arrays, self.lanes)
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
        half = code.mul(code.value(f"and i64 {t}, 1"), self.writer.sizes.x * self.lanes)
        return code.cell(states, half)

"""The forward kernel: a rollout without derivatives."""

from hybridsim.native.graph.graph import Graph
from hybridsim.native.graph.partition import PARAMETERS, STATE, Outputs
from hybridsim.native.llvm.kernel_writer import (
    Kernel,
    KernelWriter,
    StepSizes,
    compact_parameters,
    lane_slots,
    split_step,
)


def forward_kernel(step: tuple[Graph, Outputs], sizes: StepSizes, lanes: int, register: int) -> Kernel:
    """A rollout.

    Args:
        step: graph of a step and its outputs: `x2`, the next state, and `y`, what is streamed out.
        sizes: of its arrays.
        lanes: trajectories per vector.
        register: numbers in a vector register.
    """
    used, (step,) = compact_parameters(sizes, step)
    stages = split_step(*step, "pre")
    writer = KernelWriter("forward", sizes, used, lanes, lanes, register, {"pre": stages.get(PARAMETERS)})
    writer.add("step", stages[STATE], lanes, lane_slots("x s x2 y"))
    code, steps = writer.code, writer.field("steps")
    with writer.groups({"y": sizes.y}):
        writer.read("x0", writer.area("x", 2 * sizes.x), sizes.x)
        with code.loop(0, steps) as t:
            writer.step(t, writer.ring("x", t, sizes.x), writer.ring("x", code.add(t, 1), sizes.x), keep=True)
        writer.write(writer.ring("x", steps, sizes.x), "x_end", sizes.x)
    return writer.finished()

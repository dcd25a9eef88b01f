"""Forward kernel: a rollout without derivatives."""

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


def forward_kernel(step: tuple[Graph, Outputs], sizes: StepSizes, group_size: int, register_width: int) -> Kernel:
    """Kernel of a rollout.

    Args:
        step: graph of a step and its outputs: `x2`, the next state, and `y`, the outputs of the step.
        sizes: sizes of its arrays.
        group_size: trajectories per group, one per lane.
        register_width: elements of a vector register.
    """
    used, (step,) = compact_parameters(sizes, step)
    stages = split_step(*step)
    prologues = {"parameter_values": stages.get(PARAMETERS)}
    writer = KernelWriter("forward", sizes, used, group_size, group_size, register_width, prologues)
    writer.add_function("step", stages[STATE], group_size, lane_slots("x s x2 y"))
    code, steps = writer.code, writer.field("steps")
    with writer.groups({"y": sizes.y}):
        writer.read("x0", writer.area("x", 2 * sizes.x), sizes.x)
        with code.loop(0, steps) as t:
            x = writer.double_buffer("x", t, sizes.x)
            x2 = writer.double_buffer("x", code.add(t, 1), sizes.x)
            writer.step(t, x, x2, write_outputs=True)
        writer.write(writer.double_buffer("x", steps, sizes.x), "x_end", sizes.x)
    return writer.kernel()

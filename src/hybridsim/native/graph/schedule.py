"""Instruction scheduling."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from hybridsim.native.graph.graph import Graph


def depth_first_schedule(
    graph: Graph, outputs: Iterable[int], superword_of: Mapping[int, tuple[int, ...]] = MappingProxyType({})
) -> list[int]:
    """Live nodes in depth-first postorder from the outputs, operands of greatest depth first.

    Values are computed shortly before their use, which shortens live ranges and reduces spills.

    Args:
        graph: graph to schedule.
        outputs: its output nodes.
        superword_of: superwords of packed nodes, whose members are scheduled consecutively.
    """
    outputs = list(outputs)
    depth: dict[int, int] = {}
    for node in graph.live_nodes(outputs):
        depth[node] = 1 + max((depth[a] for a in graph.args[node]), default=0)

    def operands_of(node: int) -> Iterator[int]:
        args = dict.fromkeys(a for member in superword_of.get(node, (node,)) for a in graph.args[member])
        return iter(sorted(args, key=lambda a: -depth[a]))

    order: list[int] = []
    scheduled: set[int] = set()
    for output in sorted(dict.fromkeys(outputs), key=lambda n: -depth[n]):
        stack = [] if output in scheduled else [(output, operands_of(output))]
        scheduled.update(superword_of.get(output, (output,)))
        while stack:
            node, operands = stack[-1]
            operand = next((a for a in operands if a not in scheduled), None)
            if operand is None:
                order += superword_of.get(node, (node,))
                stack.pop()
            else:
                scheduled.update(superword_of.get(operand, (operand,)))
                stack.append((operand, operands_of(operand)))
    return order

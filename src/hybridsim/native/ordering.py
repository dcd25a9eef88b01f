"""The order in which a kernel computes its values."""

from collections.abc import Iterable, Iterator

from hybridsim.native.graph import Graph


def deepest_first(graph: Graph, outputs: Iterable[int]) -> list[int]:
    """The nodes that outputs depend on, in the order of a walk from the outputs that takes the longest chain first.

    A value is then computed shortly before it is used, so that more of them stay in registers.
    """
    outputs = list(outputs)
    depth: dict[int, int] = {}
    for node in graph.live(outputs):
        depth[node] = 1 + max((depth[a] for a in graph.args[node]), default=0)

    def arguments(node: int) -> Iterator[int]:
        return iter(sorted(graph.args[node], key=lambda a: -depth[a]))

    order: list[int] = []
    seen: set[int] = set()
    for output in sorted(dict.fromkeys(outputs), key=lambda n: -depth[n]):
        stack = [] if output in seen else [(output, arguments(output))]
        seen.add(output)
        while stack:
            node, waiting = stack[-1]
            argument = next((a for a in waiting if a not in seen), None)
            if argument is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(argument)
                stack.append((argument, arguments(argument)))
    return order

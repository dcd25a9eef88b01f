"""The order in which a kernel computes its values."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from hybridsim.native.graph.graph import Graph


def deepest_first(
    graph: Graph, outputs: Iterable[int], bundle_of: Mapping[int, tuple[int, ...]] = MappingProxyType({})
) -> list[int]:
    """The nodes that outputs depend on, in the order of a walk from the outputs that takes the longest chain first.

    A value is then computed shortly before it is used, so that more of them stay in registers.

    Args:
        graph: what to compute.
        outputs: the nodes that are wanted.
        bundle_of: nodes that are computed together; they follow each other.
    """
    outputs = list(outputs)
    depth: dict[int, int] = {}
    for node in graph.live(outputs):
        depth[node] = 1 + max((depth[a] for a in graph.args[node]), default=0)

    def arguments(node: int) -> Iterator[int]:
        args = dict.fromkeys(a for one in bundle_of.get(node, (node,)) for a in graph.args[one])
        return iter(sorted(args, key=lambda a: -depth[a]))

    order: list[int] = []
    seen: set[int] = set()
    for output in sorted(dict.fromkeys(outputs), key=lambda n: -depth[n]):
        stack = [] if output in seen else [(output, arguments(output))]
        seen.update(bundle_of.get(output, (output,)))
        while stack:
            node, waiting = stack[-1]
            argument = next((a for a in waiting if a not in seen), None)
            if argument is None:
                order += bundle_of.get(node, (node,))
                stack.pop()
            else:
                seen.update(bundle_of.get(argument, (argument,)))
                stack.append((argument, arguments(argument)))
    return order

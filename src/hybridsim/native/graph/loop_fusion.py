"""Loop fusion: an elementwise map is merged with the maps of which it is the only user."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hybridsim.native.graph.arrays import ElementwiseMap, Loop, MatrixVectorProduct, OuterProduct, operand_slot
from hybridsim.native.graph.graph import Graph

Optimize = Callable[[Graph, Sequence[int]], tuple[Graph, list[int]]]


def fuse_loops(graph: Graph, outputs: Sequence[int], optimize: Optimize, *, fma: bool) -> tuple[Graph, list[int]]:
    """Fuse elementwise maps and optimize loop bodies.

    Args:
        graph: graph to rewrite.
        outputs: its output nodes.
        optimize: pass applied to loop bodies.
        fma: whether the target has fused multiply-add.
    """
    order = graph.live_nodes(outputs)
    if not any(graph.ops[n] == "array" for n in order):
        return graph, list(outputs)
    fused = _fusible_maps(graph, order, outputs)
    new, node_map = Graph(), {}
    for node in order:
        if node in fused:
            continue
        if node in graph.constants:
            node_map[node] = new.constant(graph.constants[node])
            continue
        spec, args = graph.data[node], graph.args[node]
        if isinstance(spec, ElementwiseMap):
            spec, args = _fuse_producers(graph, node, fused)
            body, (result,) = optimize(spec.body, [spec.result])
            spec = ElementwiseMap(body, result, spec.size, spec.kind)
        elif isinstance(spec, Loop):
            body, results = optimize(spec.body, [n for _, n in spec.outputs])
            targets = (target for target, _ in spec.outputs)
            spec = replace(spec, body=body, outputs=tuple(zip(targets, results, strict=True)))
        elif isinstance(spec, MatrixVectorProduct | OuterProduct):
            spec = replace(spec, fma=fma)
        node_map[node] = new.node(graph.ops[node], *(node_map[a] for a in args), data=spec, kind=graph.kinds[node])
    return new, [node_map[n] for n in outputs]


def _fusible_maps(graph: Graph, order: Sequence[int], outputs: Sequence[int]) -> set[int]:
    """Maps whose only user is another map of the same size."""
    users: dict[int, set[int]] = {node: set() for node in order}
    for node in outputs:
        users[node].add(-1)
    fusible = set()
    for node in reversed(order):
        spec = graph.data[node]
        consumer = node
        if isinstance(spec, ElementwiseMap) and len(users[node]) == 1:
            (user,) = users[node]
            if user >= 0 and isinstance(graph.data[user], ElementwiseMap) and graph.data[user].size == spec.size:
                fusible.add(node)
                consumer = user
        for a in graph.args[node]:
            users[a].add(consumer)
    return fusible


def _fuse_producers(graph: Graph, node: int, fused: set[int]) -> tuple[ElementwiseMap, list[int]]:
    """A map with its fused producers inlined, and its operands."""
    body = Graph()
    args: list[int] = []
    results: dict[int, int] = {}

    def inline(array: int) -> int:
        """The result of a map's body, copied into the fused body."""
        if array in results:
            return results[array]
        spec, operands = graph.data[array], graph.args[array]
        source, node_map = spec.body, {}
        for n in source.live_nodes([spec.result]):
            if n in source.constants:
                node_map[n] = body.constant(source.constants[n])
            elif source.ops[n] == "input":
                operand = operands[int(source.data[n][0][1:])]
                if operand in fused:
                    node_map[n] = inline(operand)
                    continue
                if operand not in args:
                    args.append(operand)
                node_map[n] = body.input(operand_slot(args.index(operand)), 0, source.kinds[n])
            else:
                new = (node_map[a] for a in source.args[n])
                node_map[n] = body.node(source.ops[n], *new, data=source.data[n], kind=source.kinds[n])
        results[array] = node_map[spec.result]
        return results[array]

    result = inline(node)
    spec = graph.data[node]
    return ElementwiseMap(body, result, spec.size, spec.kind), args

"""Joining loops: an operation on each element takes in the ones whose results nobody else needs."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hybridsim.native.graph.arrays import ElementwiseMap, Loop, MatrixVectorProduct, OuterProduct, operand_slot
from hybridsim.native.graph.graph import Graph

Optimize = Callable[[Graph, Sequence[int]], tuple[Graph, list[int]]]


def fuse_loops(graph: Graph, outputs: Sequence[int], optimize: Optimize, *, fma: bool) -> tuple[Graph, list[int]]:
    """A graph with fewer and longer loops.

    Args:
        graph: what to compute.
        outputs: the nodes that are wanted.
        optimize: for the operations inside of the loops.
        fma: does the machine have fused multiply-add?
    """
    order = graph.live(outputs)
    if not any(graph.ops[n] == "array" for n in order):
        return graph, list(outputs)
    inner = _fusible_maps(graph, order, outputs)
    new, renamed = Graph(), {}
    for node in order:
        if node in inner:
            continue
        if node in graph.constants:
            renamed[node] = new.constant(graph.constants[node])
            continue
        spec, args = graph.data[node], graph.args[node]
        if isinstance(spec, ElementwiseMap):
            spec, args = _fuse_producers(graph, node, inner)
            body, (result,) = optimize(spec.body, [spec.result])
            spec = ElementwiseMap(body, result, spec.size, spec.kind)
        elif isinstance(spec, Loop):
            body, results = optimize(spec.body, [n for _, n in spec.outputs])
            places = (place for place, _ in spec.outputs)
            spec = replace(spec, body=body, outputs=tuple(zip(places, results, strict=True)))
        elif isinstance(spec, MatrixVectorProduct | OuterProduct):
            spec = replace(spec, fma=fma)
        renamed[node] = new.node(graph.ops[node], *(renamed[a] for a in args), data=spec, kind=graph.kinds[node])
    return new, [renamed[n] for n in outputs]


def _fusible_maps(graph: Graph, order: Sequence[int], outputs: Sequence[int]) -> set[int]:
    """Maps that become part of the only loop that needs them."""
    loops: dict[int, set[int]] = {node: set() for node in order}
    for node in outputs:
        loops[node].add(-1)
    inner = set()
    for node in reversed(order):
        spec = graph.data[node]
        own = node
        if isinstance(spec, ElementwiseMap) and len(loops[node]) == 1:
            (loop,) = loops[node]
            if loop >= 0 and isinstance(graph.data[loop], ElementwiseMap) and graph.data[loop].size == spec.size:
                inner.add(node)
                own = loop
        for a in graph.args[node]:
            loops[a].add(own)
    return inner


def _fuse_producers(graph: Graph, node: int, inner: set[int]) -> tuple[ElementwiseMap, list[int]]:
    """A map with everything it takes in, and its arguments."""
    body = Graph()
    args: list[int] = []
    results: dict[int, int] = {}

    def inside(array: int) -> int:
        """The result of an operation, in the joint body."""
        if array in results:
            return results[array]
        spec, given = graph.data[array], graph.args[array]
        own, renamed = spec.body, {}
        for n in own.live([spec.result]):
            if n in own.constants:
                renamed[n] = body.constant(own.constants[n])
            elif own.ops[n] == "input":
                operand = given[int(own.data[n][0][1:])]
                if operand in inner:
                    renamed[n] = inside(operand)
                    continue
                if operand not in args:
                    args.append(operand)
                renamed[n] = body.input(operand_slot(args.index(operand)), 0, own.kinds[n])
            else:
                new = (renamed[a] for a in own.args[n])
                renamed[n] = body.node(own.ops[n], *new, data=own.data[n], kind=own.kinds[n])
        results[array] = renamed[spec.result]
        return results[array]

    result = inside(node)
    spec = graph.data[node]
    return ElementwiseMap(body, result, spec.size, spec.kind), args

"""Lowering rules of small dense factorizations and solves, fully unrolled."""

from typing import Any

import numpy as np

from hybridsim.native.lowering.lower import Lowering, Nodes


def _map_over_matrices(function):
    """Lift a rule for single matrices to stacks of matrices."""

    def rule(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
        params, leading = equation.params, arguments[0].shape[:-2]
        parts = [function(lowering, params, *(a[position] for a in arguments)) for position in np.ndindex(leading)]
        return [
            np.array([part[k] for part in parts], dtype=np.int64).reshape(v.aval.shape)
            for k, v in enumerate(equation.outvars)
        ]

    return rule


def _cholesky(lowering: Lowering, params: dict, A: Nodes) -> list[Nodes]:
    graph = lowering.graph
    n = A.shape[0]
    L = np.full((n, n), graph.constant(0.0), dtype=np.int64)
    half = graph.constant(0.5)
    for j in range(n):
        for i in range(j, n):
            # only the lower triangle is used, unless JAX asks to symmetrize
            entry = int(A[i, j])
            if params.get("symmetrize_input") and i != j:
                entry = graph.mul(half, graph.add(int(A[i, j]), int(A[j, i])))
            products = graph.sum([graph.mul(int(L[i, k]), int(L[j, k])) for k in range(j)])
            remainder = graph.sub(entry, products)
            L[i, j] = graph.sqrt(remainder) if i == j else graph.div(remainder, int(L[j, j]))
    return [L]


def _triangular_solve(lowering: Lowering, params: dict, A: Nodes, B: Nodes) -> list[Nodes]:
    lower = params["lower"]
    if params["transpose_a"]:
        A, lower = A.T, not lower
    if not params["left_side"]:
        # X A = B is equivalent to Aᵀ Xᵀ = Bᵀ
        return [_substitute(lowering, A.T, B.T, not lower, params["unit_diagonal"]).T]
    return [_substitute(lowering, A, B, lower, params["unit_diagonal"])]


def _substitute(lowering: Lowering, A: Nodes, B: Nodes, lower: bool, unit_diagonal: bool) -> Nodes:
    """Solution X of `A X = B` for a triangular A, by forward or back substitution."""
    graph = lowering.graph
    n, columns = B.shape
    X = np.empty((n, columns), dtype=np.int64)
    order = range(n) if lower else range(n - 1, -1, -1)
    for i in order:
        solved = range(i) if lower else range(i + 1, n)
        for c in range(columns):
            products = graph.sum([graph.mul(int(A[i, k]), int(X[k, c])) for k in solved])
            remainder = graph.sub(int(B[i, c]), products)
            X[i, c] = remainder if unit_diagonal else graph.div(remainder, int(A[i, i]))
    return X


def _lu(lowering: Lowering, params: dict, A: Nodes) -> list[Nodes]:
    """LU with partial pivoting; rows are exchanged by selects."""
    graph = lowering.graph
    A = np.array(A)
    m, n = A.shape
    pivots, order = [], lowering.constants(np.arange(m))
    for k in range(min(m, n)):
        largest, pivot_row = graph.abs(int(A[k, k])), graph.constant(k)
        for i in range(k + 1, m):
            magnitude = graph.abs(int(A[i, k]))
            is_larger = graph.less(largest, magnitude)
            largest, pivot_row = (
                graph.select(is_larger, magnitude, largest),
                graph.select(is_larger, graph.constant(i), pivot_row),
            )
        pivots.append(pivot_row)
        for i in range(k + 1, m):
            is_pivot_row = graph.equal(pivot_row, graph.constant(i))
            for array in (*A.T, order):
                a, b = int(array[k]), int(array[i])
                array[k], array[i] = graph.select(is_pivot_row, b, a), graph.select(is_pivot_row, a, b)
        # the sequence of conditional exchanges is correct because at most one condition holds
        pivot = int(A[k, k])
        divisor = graph.select(graph.equal(pivot, graph.constant(0.0)), graph.constant(1.0), pivot)
        for i in range(k + 1, m):
            # a pivot of zero means that the whole column is zero
            factor = graph.div(int(A[i, k]), divisor)
            A[i, k] = factor
            for j in range(k + 1, n):
                A[i, j] = graph.sub(int(A[i, j]), graph.mul(factor, int(A[k, j])))
    return [A, np.array(pivots, dtype=np.int64), order]


def _pivots_to_permutation(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """Permutation from the pivots of a factorization."""
    graph, size = lowering.graph, equation.params["permutation_size"]
    (pivots,) = arguments
    result = np.empty((*pivots.shape[:-1], size), dtype=np.int64)
    for position in np.ndindex(*pivots.shape[:-1]):
        order = [graph.constant(k) for k in range(size)]
        for k, pivot in enumerate(pivots[position].tolist()):
            for i in range(k + 1, size):
                is_pivot_row = graph.equal(pivot, graph.constant(i))
                order[k], order[i] = (
                    graph.select(is_pivot_row, order[i], order[k]),
                    graph.select(is_pivot_row, order[k], order[i]),
                )
        result[position] = order
    return [result]


RULES = {
    "cholesky": _map_over_matrices(_cholesky),
    "triangular_solve": _map_over_matrices(_triangular_solve),
    "lu": _map_over_matrices(_lu),
    "lu_pivots_to_permutation": _pivots_to_permutation,
}

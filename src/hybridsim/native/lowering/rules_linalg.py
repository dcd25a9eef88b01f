"""Rules of small dense factorisations and solves, written out number by number."""

from typing import Any

import numpy as np

from hybridsim.native.lowering.lower import Lowering, Nodes


def _per_matrix(function):
    """A rule that applies a function of matrices to each matrix of a stack."""

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
            # jax hands over a matrix whose lower half counts, symmetrised if asked
            entry = int(A[i, j])
            if params.get("symmetrize_input") and i != j:
                entry = graph.mul(half, graph.add(int(A[i, j]), int(A[j, i])))
            rest = graph.sum([graph.mul(int(L[i, k]), int(L[j, k])) for k in range(j)])
            left = graph.sub(entry, rest)
            L[i, j] = graph.sqrt(left) if i == j else graph.div(left, int(L[j, j]))
    return [L]


def _triangular_solve(lowering: Lowering, params: dict, A: Nodes, B: Nodes) -> list[Nodes]:
    lower = params["lower"]
    if params["transpose_a"]:
        A, lower = A.T, not lower
    if not params["left_side"]:
        # X A = B is Aᵀ Xᵀ = Bᵀ
        return [_substitute(lowering, A.T, B.T, not lower, params["unit_diagonal"]).T]
    return [_substitute(lowering, A, B, lower, params["unit_diagonal"])]


def _substitute(lowering: Lowering, A: Nodes, B: Nodes, lower: bool, unit: bool) -> Nodes:
    graph = lowering.graph
    n, columns = B.shape
    X = np.empty((n, columns), dtype=np.int64)
    order = range(n) if lower else range(n - 1, -1, -1)
    for i in order:
        done = range(i) if lower else range(i + 1, n)
        for c in range(columns):
            rest = graph.sum([graph.mul(int(A[i, k]), int(X[k, c])) for k in done])
            left = graph.sub(int(B[i, c]), rest)
            X[i, c] = left if unit else graph.div(left, int(A[i, i]))
    return X


def _lu(lowering: Lowering, params: dict, A: Nodes) -> list[Nodes]:
    """LU with partial pivoting; rows are exchanged by choices."""
    graph = lowering.graph
    A = np.array(A)
    m, n = A.shape
    pivots, order = [], lowering.constants(np.arange(m))
    for k in range(min(m, n)):
        best, place = graph.abs(int(A[k, k])), graph.constant(k)
        for i in range(k + 1, m):
            size = graph.abs(int(A[i, k]))
            larger = graph.less(best, size)
            best, place = graph.select(larger, size, best), graph.select(larger, graph.constant(i), place)
        pivots.append(place)
        for i in range(k + 1, m):
            here = graph.equal(place, graph.constant(i))
            for array in (*A.T, order):
                a, b = int(array[k]), int(array[i])
                array[k], array[i] = graph.select(here, b, a), graph.select(here, a, b)
        # exchanging row k with each candidate in turn leaves it right only if at most one condition holds: it does
        pivot = int(A[k, k])
        divisor = graph.select(graph.equal(pivot, graph.constant(0.0)), graph.constant(1.0), pivot)
        for i in range(k + 1, m):
            # a pivot of zero is the largest of a column of zeros
            factor = graph.div(int(A[i, k]), divisor)
            A[i, k] = factor
            for j in range(k + 1, n):
                A[i, j] = graph.sub(int(A[i, j]), graph.mul(factor, int(A[k, j])))
    return [A, np.array(pivots, dtype=np.int64), order]


def _pivots_to_permutation(lowering: Lowering, equation: Any, arguments: list[Nodes]) -> list[Nodes]:
    """Pivots of a factorisation as a permutation."""
    graph, size = lowering.graph, equation.params["permutation_size"]
    (pivots,) = arguments
    result = np.empty((*pivots.shape[:-1], size), dtype=np.int64)
    for position in np.ndindex(*pivots.shape[:-1]):
        order = [graph.constant(k) for k in range(size)]
        for k, pivot in enumerate(pivots[position].tolist()):
            for i in range(k + 1, size):
                here = graph.equal(pivot, graph.constant(i))
                order[k], order[i] = graph.select(here, order[i], order[k]), graph.select(here, order[k], order[i])
        result[position] = order
    return [result]


RULES = {
    "cholesky": _per_matrix(_cholesky),
    "triangular_solve": _per_matrix(_triangular_solve),
    "lu": _per_matrix(_lu),
    "lu_pivots_to_permutation": _pivots_to_permutation,
}

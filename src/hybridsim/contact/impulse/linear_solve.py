"""Gauss–Jordan elimination without pivoting, for the linear systems of contact derivatives.

Each row of these systems is a row of a positive definite matrix, of the identity, or a combination of both where a
contact slides, so the diagonal entry is a safe pivot. Pivoting would cost more than the elimination itself.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray

MIN_PIVOT = 1e-12
"""Replacement for a vanishing pivot, which arises from redundant contacts without a unique solution."""


def solve_without_pivoting(G: Float[AnyArray, "n n"], b: Float[AnyArray, " n"]) -> Float[AnyArray, " n"]:
    """Solution x of G x = b; linear in b, differentiable in forward and reverse mode."""
    return jax.lax.custom_linear_solve(
        lambda x: G @ x, b, lambda _, b: _gauss_jordan(G, b), lambda _, b: _gauss_jordan(G.T, b)
    )


def _gauss_jordan(G: Float[AnyArray, "n n"], b: Float[AnyArray, " n"]) -> Float[AnyArray, " n"]:
    """Solution by elimination of one unknown after another from all other rows.

    The current unknown is always first and moves to the end with its row, so no index depends on the loop counter.
    """
    n = b.shape[0]

    def eliminate(state, _):
        columns, b = state  # columns of the remaining unknowns, then zeros
        pivot = columns[0, 0]
        pivot = jnp.where(jnp.abs(pivot) < MIN_PIVOT, MIN_PIVOT, pivot)
        row, value = columns[0, 1:] / pivot, b[0] / pivot
        factors = columns[1:, 0]
        columns = jnp.concatenate([columns[1:, 1:] - factors[:, None] * row[None], row[None]])
        b = jnp.concatenate([b[1:] - factors * value, value[None]])
        return (jnp.concatenate([columns, np.zeros((n, 1))], axis=1), b), None

    (_, x), _ = jax.lax.scan(eliminate, (G, b), None, length=n)
    return x

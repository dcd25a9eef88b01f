"""Linear systems whose diagonal bears them, by elimination without exchanging rows.

A row of what contact problems lead to is a row of a positive definite matrix, or one of the identity, or a mixture of
the two where a contact slides; its own entry is the one to divide by. Pivoting would cost more than all the rest.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray

SMALLEST_PIVOT = 1e-12
"""What a vanishing pivot is replaced by: contacts that hold each other in a way that has no unique answer."""


def solve_without_pivoting(G: Float[AnyArray, "n n"], b: Float[AnyArray, " n"]) -> Float[AnyArray, " n"]:
    """X with G x = b; linear in b, forwards and backwards."""
    return jax.lax.custom_linear_solve(
        lambda x: G @ x, b, lambda _, b: _gauss_jordan(G, b), lambda _, b: _gauss_jordan(G.T, b)
    )


def _gauss_jordan(G: Float[AnyArray, "n n"], b: Float[AnyArray, " n"]) -> Float[AnyArray, " n"]:
    """Eliminate one unknown after the other from all rows.

    The unknown whose turn it is stands first and goes to the end with its row, so that no index depends on the loop.
    """
    n = b.shape[0]

    def turn(state, _):
        rest, b = state  # columns of the unknowns that are left, then zeros
        pivot = rest[0, 0]
        pivot = jnp.where(jnp.abs(pivot) < SMALLEST_PIVOT, SMALLEST_PIVOT, pivot)
        row, own = rest[0, 1:] / pivot, b[0] / pivot
        factors = rest[1:, 0]
        rest = jnp.concatenate([rest[1:, 1:] - factors[:, None] * row[None], row[None]])
        b = jnp.concatenate([b[1:] - factors * own, own[None]])
        return (jnp.concatenate([rest, np.zeros((n, 1))], axis=1), b), None

    (_, x), _ = jax.lax.scan(turn, (G, b), None, length=n)
    return x

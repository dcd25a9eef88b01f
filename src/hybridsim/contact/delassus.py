"""Impulses and velocities of a mechanism: A = J M⁻¹ Jᵀ and M⁻¹ Jᵀ x.

M is factored from the leaves of the tree to its root. In that order a factor has no entry where M has none
(Featherstone 2008, section 6.5), so that native code, which leaves zeros out, works on branches of the tree only.
"""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from hybridsim.core.types import AnyArray

Matrix = Float[AnyArray, "nv nv"]
Rows = Float[AnyArray, "n nv"]


def factor(M: Matrix) -> Matrix:
    """L with L Lᵀ = M in the reverse order of rows and columns."""
    return jnp.linalg.cholesky(M[::-1, ::-1], symmetrize_input=False)


def divided(L: Matrix, b: Float[AnyArray, " nv *k"]) -> Float[AnyArray, " nv *k"]:
    """M⁻¹ b."""
    half = solve_triangular(L, b[::-1], lower=True)
    return solve_triangular(L, half, lower=True, trans=1)[::-1]


@jax.custom_jvp
def delassus(M: Matrix, J: Rows) -> Float[AnyArray, "n n"]:
    """A = J M⁻¹ Jᵀ: the velocities of rows after unit impulses along each of them."""
    half = solve_triangular(factor(M), J.T[::-1], lower=True)
    return half.T @ half


@delassus.defjvp
def _change_of_delassus(primals, tangents):
    (M, J), (dM, dJ) = primals, tangents
    X = divided(factor(M), J.T)
    one_side = dJ @ X
    return delassus(M, J), one_side + one_side.T - X.T @ (dM @ X)


def velocity_change(M: Matrix, J: Rows, x: Float[AnyArray, " n"]) -> Float[AnyArray, " nv"]:
    """M⁻¹ Jᵀ x: what impulses along the rows do to the velocities."""
    L = factor(M)
    return jax.lax.custom_linear_solve(lambda v: M @ v, J.T @ x, lambda _, p: divided(L, p), symmetric=True)

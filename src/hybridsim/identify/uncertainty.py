"""Standard errors of estimated parameters, from the Jacobian of the residuals at the estimate (Gauss–Newton)."""

import numpy as np
from jaxtyping import Float

from hybridsim.core.blas import limit_blas_to_one_thread
from hybridsim.identify.identifiability import MIN_SENSITIVITY, RANK_TOLERANCE, reduced_jacobian
from hybridsim.identify.objective import Objective, Point
from hybridsim.params.space import ParameterSpace

Array = np.ndarray
MAX_PARAMETERS = 500
"""Number of entries of θ beyond which no standard errors are computed: the Jacobian has one column for each."""
RELATIVE_STEP = 1e-6
"""Step of the differences of displayed values, relative to max(|θ|, 1)."""


@limit_blas_to_one_thread()
def standard_errors(objective: Objective, point: Point, normalized_cost: float) -> dict[str, float]:
    """Standard error of every displayed value of common parameters, by name; infinite if the data do not determine it.

    Initial states are eliminated. Where residuals exceed the noise, the noise is taken to be as large as they are.

    Args:
        objective: objective of the last stage.
        point: its solution.
        normalized_cost: root mean square residual, in standard deviations of the noise.
    """
    layout = objective.layout
    if layout.size > MAX_PARAMETERS:
        return {}
    covariance, null = _covariance(reduced_jacobian(objective, point))
    space, theta = layout.space, layout.common_theta(point.theta[0])
    names, gradients = _value_gradients(space, theta)
    common = np.flatnonzero(~space.is_per_run)
    # common parameters come first in stacked θ
    stacked = np.zeros((len(names), layout.size))
    stacked[:, : len(common)] = gradients[:, common]
    variance = np.einsum("vi,ij,vj->v", stacked, covariance, stacked)
    is_determined = np.linalg.norm(stacked @ null, axis=1) <= RANK_TOLERANCE**0.5 * np.linalg.norm(stacked, axis=1)
    errors = np.where(is_determined, max(normalized_cost, 1.0) * np.sqrt(np.maximum(variance, 0.0)), np.inf)
    return dict(zip(names, errors.tolist(), strict=True))


def _covariance(J: Float[Array, "k N"]) -> tuple[Float[Array, "N N"], Float[Array, "N m"]]:
    """Pseudoinverse of JᵀJ, and an orthonormal basis of the null space of J."""
    N = J.shape[1]
    length = np.linalg.norm(J, axis=0)
    scale = np.where(length > MIN_SENSITIVITY, length, 1.0)
    padded = np.concatenate([np.where(length > MIN_SENSITIVITY, J, 0.0) / scale, np.zeros((max(N - len(J), 0), N))])
    _, values, right_vectors = np.linalg.svd(padded, full_matrices=False)
    is_null = values <= RANK_TOLERANCE * values.max(initial=0.0)
    inverse = np.where(is_null, 0.0, 1.0 / np.where(is_null, 1.0, values))
    root = right_vectors.T * inverse / scale[:, None]
    null = right_vectors[is_null].T / scale[:, None]
    return root @ root.T, np.linalg.qr(null)[0] if null.shape[1] else null


def _value_gradients(space: ParameterSpace, theta: Float[Array, " n"]) -> tuple[list[str], Float[Array, "v n"]]:
    """Names of the displayed values, and their derivatives with respect to θ, by central differences."""
    per_run = space.run_values(theta)
    names = [name for name in space.values(theta) if name not in per_run]
    gradients = np.zeros((len(names), len(theta)))
    for k in range(len(theta)):
        step = RELATIVE_STEP * max(abs(theta[k]), 1.0)
        ends = []
        for sign in (1.0, -1.0):
            moved_theta = theta.copy()
            moved_theta[k] += sign * step
            values = space.values(moved_theta)
            ends.append(np.array([values[name] for name in names]))
        gradients[:, k] = (ends[0] - ends[1]) / (2.0 * step)
    return names, gradients

"""Standard errors of estimated parameters, from the Jacobian of the residuals at the estimate (Gauss–Newton).

With residuals in standard deviations of the noise, the covariance of θ is (s⁻² JᵀJ + P)⁻¹: J with the initial states
eliminated, P the precisions of priors and L2 penalties, and s² the residual variance per degree of freedom where it
exceeds one, because the noise was specified too small or the model lacks an effect. With priors, these are posterior
standard deviations.
"""

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
NULL_FRACTION = 1e-4
"""Part of a gradient in the null space, relative to its norm, above which a value is undetermined."""


@limit_blas_to_one_thread()
def standard_errors(objective: Objective, point: Point) -> dict[str, float]:
    """Standard error of every displayed value of common parameters; infinite if the data do not determine it.

    Empty where this linearization does not apply: with continuity between windows, with overlapping windows, whose
    samples count several times, and with measured initial states, whose errors it would neglect. Entries of θ at a
    bound are treated as fixed.

    Args:
        objective: objective of the last stage.
        point: its solution.
    """
    layout, settings = objective.layout, objective.settings
    windows = objective.windows
    overlap = (np.diff(windows.start) < windows.dt * (windows.steps - 1)) & (np.diff(windows.recording) == 0)
    is_linear = settings.continuity_std is None and settings.free_initial_states and not overlap.any()
    if layout.size > MAX_PARAMETERS or not is_linear:
        return {}
    theta = point.theta[0]
    is_free = (theta > layout.lower) & (theta < layout.upper)
    factor = reduced_jacobian(objective, point, priors=False) / _residual_std(objective, point, int(is_free.sum()))
    precision = np.diag(np.sqrt(np.square(layout.prior_weight) + layout.l2))
    covariance, null = _covariance(np.where(is_free, np.concatenate([factor, precision]), 0.0), is_free)
    space, common_theta = layout.space, layout.common_theta(theta)
    names, gradients = _value_gradients(space, common_theta)
    common = np.flatnonzero(~space.is_per_run)
    # common parameters come first in stacked θ
    stacked = np.zeros((len(names), layout.size))
    stacked[:, : len(common)] = gradients[:, common]
    stacked = np.where(is_free, stacked, 0.0)
    variance = np.einsum("vi,ij,vj->v", stacked, covariance, stacked)
    length = np.linalg.norm(stacked, axis=1)
    is_determined = np.linalg.norm(stacked @ null, axis=1) <= NULL_FRACTION * length
    errors = np.where(is_determined, np.sqrt(np.maximum(variance, 0.0)), np.inf)
    return {name: float(error) for name, error, norm in zip(names, errors, length, strict=True) if norm > 0.0}


def _residual_std(objective: Objective, point: Point, free: int) -> float:
    """Root of the residual variance per degree of freedom, in standard deviations of the noise; at least one."""
    sampled, ok = objective.sampled_readings(point)
    windows = objective.windows
    used = (windows.weight > 0.0) & ok[0][:, None]
    residual = (windows.weight * (sampled[0] - windows.value))[used]
    freedom = residual.size - free - int(ok[0].sum()) * objective.s
    return max(float(np.sqrt(residual @ residual / freedom)), 1.0) if freedom > 0 else 1.0


def _covariance(J: Float[Array, "k N"], is_free: Array) -> tuple[Float[Array, "N N"], Float[Array, "N m"]]:
    """Pseudoinverse of JᵀJ over free entries, and an orthonormal basis of their null space."""
    N = J.shape[1]
    length = np.linalg.norm(J, axis=0)
    is_sensitive = length > MIN_SENSITIVITY
    scale = np.where(is_sensitive, length, 1.0)
    padded = np.concatenate([np.where(is_sensitive, J, 0.0) / scale, np.zeros((max(N - len(J), 0), N))])
    _, values, right_vectors = np.linalg.svd(padded, full_matrices=False)
    is_null = values <= RANK_TOLERANCE * values.max(initial=0.0)
    inverse = np.where(is_null, 0.0, 1.0 / np.where(is_null, 1.0, values))
    root = right_vectors.T * inverse / scale[:, None]
    null = np.where(is_free[:, None], right_vectors[is_null].T / scale[:, None], 0.0)
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
            shifted = theta.copy()
            shifted[k] += sign * step
            values = space.values(shifted)
            ends.append(np.array([values[name] for name in names]))
        gradients[:, k] = (ends[0] - ends[1]) / (2.0 * step)
    return names, gradients

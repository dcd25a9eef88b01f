"""Standard errors of estimated parameters, from the Jacobian of the residuals at the estimate (Gauss–Newton).

With residuals in standard deviations of the noise, the covariance of θ is (s⁻² JᵀJ + P)⁻¹: J with the initial states
eliminated, P the precisions of priors and L2 penalties, and s² = Σψ² / (n − p) / mean(ψ′)², where ψ is the derivative
of the loss of a sample (Huber 1981, section 7.6). For the linear loss, ψ is the residual and s² the residual variance
per degree of freedom. Values of s below one count as one; s exceeds one if the noise was specified too small or the
model lacks an effect. With priors, these are posterior standard deviations.
"""

from copy import copy
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from hybridsim.core.blas import limit_blas_to_one_thread
from hybridsim.identify.identifiability import MIN_SENSITIVITY, RANK_TOLERANCE, reduced_jacobian
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.robust_loss import LOSSES
from hybridsim.identify.windows import SLACK, Windows
from hybridsim.params.space import ParameterSpace

Array = np.ndarray
MAX_PARAMETERS = 500
"""Number of entries of θ beyond which no standard errors are computed: the Jacobian has one column for each."""
RELATIVE_STEP = 1e-6
"""Step of the differences of displayed values, relative to max(|θ|, 1)."""
NULL_FRACTION = 1e-4
"""Part of a gradient in the null space, relative to its norm, above which a value is undetermined."""


def inapplicability(objective: Objective) -> str:
    """Why no standard errors can be computed for an objective; empty if they can."""
    settings = objective.settings
    if objective.layout.size > MAX_PARAMETERS:
        return f"more than {MAX_PARAMETERS} parameters and weights are free"
    if settings.continuity_std is not None:
        return "the windows of the last stage are joined by continuity constraints"
    if not settings.free_initial_states:
        return "the last stage takes initial states from measurements, whose errors would be neglected"
    if _have_common_samples(objective.windows):
        return "the windows of the last stage overlap, so that samples count several times"
    return ""


@limit_blas_to_one_thread()
def standard_errors(objective: Objective, point: Point) -> dict[str, float]:
    """Standard error of every displayed value of common parameters; infinite if the data do not determine it.

    Entries of θ at a bound, and those that a penalty has set to zero, are treated as fixed. Empty where this
    linearization does not apply (`inapplicability`).

    Args:
        objective: objective of the last stage.
        point: its solution.
    """
    if inapplicability(objective):
        return {}
    layout, theta, penalty = objective.layout, point.theta[0], objective.prior_terms.penalty
    is_penalized = penalty.l1 > 0.0
    for index, _ in penalty.groups:
        is_penalized[index] = True
    is_free = (theta > layout.lower) & (theta < layout.upper) & ~(is_penalized & (theta == 0.0))
    residual_std = _residual_std(objective, point, int(is_free.sum()))
    factor = reduced_jacobian(objective, point, parameter_priors=False, residual_std=residual_std)
    rows = np.concatenate([factor, np.sqrt(objective.prior_terms.theta_hessian())])[:, is_free]
    if not is_free.any() or not np.isfinite(rows).all():
        return {}
    covariance, null = _covariance(rows)
    space, common_theta = layout.space, layout.common_theta(theta)
    names, gradients = _value_gradients(space, common_theta)
    common = np.flatnonzero(~space.is_per_run)
    # common parameters come first in stacked θ
    stacked = np.zeros((len(names), layout.size))
    stacked[:, : len(common)] = gradients[:, common]
    stacked = stacked[:, is_free]
    variance = np.einsum("vi,ij,vj->v", stacked, covariance, stacked)
    length = np.linalg.norm(stacked, axis=1)
    is_determined = np.linalg.norm(stacked @ null, axis=1) <= NULL_FRACTION * length
    errors = np.where(is_determined, np.sqrt(np.maximum(variance, 0.0)), np.inf)
    return {name: float(error) for name, error, norm in zip(names, errors, length, strict=True) if norm > 0.0}


def _have_common_samples(windows: Windows) -> bool:
    """Whether a sample is part of two windows."""
    used = windows.weight > 0.0
    time = (windows.start[:, None] / windows.dt + windows.time_in_steps)[used]
    recording = np.broadcast_to(windows.recording[:, None], used.shape)[used]
    channel = windows.channel[used]
    order = np.lexsort((time, channel, recording))
    is_same_series = (np.diff(recording[order]) == 0) & (np.diff(channel[order]) == 0)
    return bool(np.any(is_same_series & (np.diff(time[order]) < SLACK)))


def _residual_std(objective: Objective, point: Point, free_parameters: int) -> float:
    """The factor s of the module's docstring; infinite where most samples are outliers of a concave loss."""
    sampled, ok = objective.sampled_readings(point)
    windows, settings = objective.windows, objective.settings
    used = (windows.weight > 0.0) & ok[0][:, None]
    residual = (windows.weight * (sampled[0] - windows.value))[used]
    z = np.square(residual / settings.loss_scale)
    _, first, second = LOSSES[settings.loss](z)
    slope = float(np.mean(first + 2.0 * second * z)) if residual.size else 0.0
    freedom = residual.size - free_parameters - _state_count(objective, point, ok[0])
    if freedom <= 0:
        return 1.0
    if slope <= 0.0:
        return np.inf
    return max(float(np.sqrt(np.sum(np.square(residual * first)) / freedom)) / slope, 1.0)


def _state_count(objective: Objective, point: Point, ok: Bool[Array, " W"]) -> float:
    """Number of degrees of freedom of the initial states; those with a prior count in part, as the data move them."""
    if not objective.prior_terms.has_initial_state_prior:
        return float(ok.sum() * objective.s)
    index = np.flatnonzero(ok)
    linear = copy(objective)
    linear.settings = replace(objective.settings, loss="linear")
    _, _, total = linear.initial_state_equations(point, (np.zeros_like(index), index))
    jacobian = objective.prior_terms.initial_state_residuals(point.q, point.qd)[1][0, index]
    prior_parts = np.linalg.solve(total, jacobian.transpose(0, 2, 1) @ jacobian)
    return len(index) * objective.s - float(np.trace(prior_parts, axis1=1, axis2=2).sum())


def _covariance(J: Float[Array, "k N"]) -> tuple[Float[Array, "N N"], Float[Array, "N m"]]:
    """Pseudoinverse of JᵀJ, and an orthonormal basis of the null space."""
    N = J.shape[1]
    length = np.linalg.norm(J, axis=0)
    is_sensitive = length > MIN_SENSITIVITY
    scale = np.where(is_sensitive, length, 1.0)
    padded = np.concatenate([np.where(is_sensitive, J, 0.0) / scale, np.zeros((max(N - len(J), 0), N))])
    _, values, right_vectors = np.linalg.svd(padded, full_matrices=False)
    is_null = values <= RANK_TOLERANCE * values.max(initial=0.0)
    inverse = np.where(is_null, 0.0, 1.0 / np.where(is_null, 1.0, values))
    root = right_vectors.T * inverse / scale[:, None]
    null = right_vectors[is_null].T / scale[:, None]
    return root @ root.T, np.linalg.qr(null)[0]


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

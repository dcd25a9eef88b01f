"""Robust losses, which limit the influence of outliers on a fit.

With residuals r and z = (r / scale)², a fit minimizes ½ Σ scale² ρ(z):

| name     | ρ(z)                              | growth of the cost for residuals beyond the scale |
|----------|-----------------------------------|---------------------------------------------------|
| linear   | z                                 | quadratic                                         |
| huber    | z, or 2√z − 1 where z > 1         | linear                                            |
| soft_l1  | 2 (√(1 + z) − 1)                  | linear, smooth transition                         |
| cauchy   | ln(1 + z)                         | logarithmic                                       |
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

MIN_CURVATURE_RATIO = 1e-3
"""Lower limit of the curvature of a Gauss–Newton step, relative to ρ′, where the loss is concave in r."""


class RobustResiduals(NamedTuple):
    """Residuals rescaled for a least-squares step."""

    cost: Float[np.ndarray, "..."]
    """scale² ρ(z) of each residual."""
    residual: Float[np.ndarray, "..."]
    """Rescaled residual; the gradient is its product with the rescaled Jacobian."""
    jacobian_scale: Float[np.ndarray, "..."]
    """Factor of the corresponding row of the Jacobian."""


def robust_residuals(loss: str, r: Float[np.ndarray, "..."], scale: float = 1.0) -> RobustResiduals:
    """Costs and rescaled residuals of a robust loss.

    The second derivative of ρ is taken into account (Triggs et al. 2000), limited so that no row's weight vanishes.

    Args:
        loss: name of the loss.
        r: residuals, in standard deviations.
        scale: residual beyond which the loss down-weights a sample.
    """
    if loss == "linear":
        return RobustResiduals(r * r, r, np.ones_like(r))
    z = np.square(r / scale)
    value, first, second = LOSSES[loss](z)
    curvature = np.maximum(first + 2.0 * second * z, MIN_CURVATURE_RATIO * first)
    jacobian_scale = np.sqrt(curvature)
    return RobustResiduals(scale**2 * value, r * first / jacobian_scale, jacobian_scale)


def _huber(z):
    is_outlier = z > 1.0
    root = np.sqrt(np.where(is_outlier, z, 1.0))
    value = np.where(is_outlier, 2.0 * root - 1.0, z)
    return value, np.where(is_outlier, 1.0 / root, 1.0), np.where(is_outlier, -0.5 / root**3, 0.0)


def _soft_l1(z):
    root = np.sqrt(1.0 + z)
    return 2.0 * (root - 1.0), 1.0 / root, -0.5 / root**3


def _cauchy(z):
    return np.log1p(z), 1.0 / (1.0 + z), -1.0 / np.square(1.0 + z)


def _linear(z):
    return z, np.ones_like(z), np.zeros_like(z)


LOSSES = {"linear": _linear, "huber": _huber, "soft_l1": _soft_l1, "cauchy": _cauchy}
"""Losses by name: ρ and its first two derivatives. ρ′ must be positive everywhere."""

"""Robust losses: how much a residual counts, so that a few bad samples do not decide a fit.

With z = r², where r is in standard deviations of the noise, a fit minimises ½ Σ ρ(z):

| name     | ρ(z)                              | beyond one standard deviation a residual counts |
|----------|-----------------------------------|--------------------------------------------------|
| linear   | z                                 | as its square                                    |
| huber    | z, or 2√z − 1 where z > 1         | as its size                                      |
| soft_l1  | 2 (√(1 + z) − 1)                  | as its size, smoothly                            |
| cauchy   | ln(1 + z)                         | hardly more than one that is half as large       |
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

LOSSES = ("linear", "huber", "soft_l1", "cauchy")
SMALLEST_CURVATURE = 1e-3
"""Share of a residual's own curvature that a Gauss–Newton step keeps where the loss bends down."""


class RobustResiduals(NamedTuple):
    """Residuals as a least-squares step should see them."""

    cost: Float[np.ndarray, "..."]
    """ρ(z) of each."""
    residual: Float[np.ndarray, "..."]
    """What to take for the residual, so that the gradient is Jᵀ residual."""
    slope: Float[np.ndarray, "..."]
    """What to multiply the row of the Jacobian by."""


def robust(loss: str, r: Float[np.ndarray, "..."], scale: float = 1.0) -> RobustResiduals:
    """Costs and rescaled residuals.

    The curvature of ρ is taken into account (Triggs et al. 2000), but never lets a row's weight vanish.

    Args:
        loss: name of the loss.
        r: residuals, in standard deviations.
        scale: size of a residual from which on it counts less.
    """
    if loss == "linear":
        return RobustResiduals(r * r, r, np.ones_like(r))
    z = np.square(r / scale)
    value, first, second = _RHO[loss](z)
    curvature = np.maximum(first + 2.0 * second * z, SMALLEST_CURVATURE * first)
    slope = np.sqrt(curvature)
    return RobustResiduals(scale**2 * value, r * first / slope, slope)


def _huber(z):
    far = z > 1.0
    root = np.sqrt(np.where(far, z, 1.0))
    value = np.where(far, 2.0 * root - 1.0, z)
    return value, np.where(far, 1.0 / root, 1.0), np.where(far, -0.5 / root**3, 0.0)


def _soft_l1(z):
    root = np.sqrt(1.0 + z)
    return 2.0 * (root - 1.0), 1.0 / root, -0.5 / root**3


def _cauchy(z):
    return np.log1p(z), 1.0 / (1.0 + z), -1.0 / np.square(1.0 + z)


_RHO = {"huber": _huber, "soft_l1": _soft_l1, "cauchy": _cauchy}

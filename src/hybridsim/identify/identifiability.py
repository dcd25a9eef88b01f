"""Local identifiability of parameters from data, before a fit: unidentifiable, confounded and weak parameters.

It follows from the Jacobian of all residuals, projected onto the orthogonal complement of its columns for the initial
states. A zero column belongs to a parameter that no sample depends on, or whose effect equals that of a change of
initial states; the null space consists of combinations of parameters that are confounded. Weak parameters are reported
with the standard deviation that noise alone causes.
"""

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.linalg import qr

from hybridsim.core.blas import limit_blas_to_one_thread
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.theta_layout import ThetaLayout

Array = np.ndarray
MIN_SENSITIVITY = 1e-6
"""Norm below which a column of the reduced Jacobian counts as zero [standard deviations of the noise per unit of θ]."""
RANK_TOLERANCE = 1e-7
"""Singular value of the scaled Jacobian, relative to the largest, below which a combination is in the null space."""
STATE_RANK_TOLERANCE = 1e-10
"""The same for the Jacobian with respect to initial states."""
MIN_ENTRY_RATIO = 0.05
"""Entry of a null vector, relative to its largest, above which a parameter is part of the combination."""


@dataclass(frozen=True, eq=False)
class Identifiability:
    """Identifiability of the parameters of a fit."""

    names: tuple[str, ...]
    sensitivity: Float[Array, " N"]
    """Norm of each column of the reduced Jacobian, in standard deviations of the noise per unit of θ."""
    singular_values: Float[Array, " n"]
    """Singular values of the Jacobian whose columns are scaled to unit length, without the columns of unidentifiable
    parameters."""
    unidentifiable: tuple[str, ...]
    """Parameters that no sample depends on, or whose effect equals that of a change of initial states."""
    confounded: tuple[dict[str, float], ...]
    """Basis of the null space: combinations of parameters, in units of θ, with largest entry one."""
    theta_std: Float[Array, " N"]
    """Standard deviation of each entry of θ due to noise; infinite if unidentifiable, or if any are confounded."""
    value_std: Float[Array, " N"]
    """Standard deviation of the parameter values."""
    units: tuple[str, ...]
    """Units of the parameter values."""
    weak: tuple[str, ...]
    """Parameters whose standard deviation exceeds half the range between their bounds, or their typical magnitude."""
    at_bounds: tuple[str, ...]
    """Parameters that are at a bound at the point of linearization."""

    @property
    def rank(self) -> int:
        """Number of identifiable combinations of parameters."""
        return len(self.names) - len(self.unidentifiable) - len(self.confounded)

    @property
    def condition_number(self) -> float:
        """Condition number of the scaled Jacobian; infinite if it is rank-deficient."""
        if not len(self.singular_values) or self.rank < len(self.names):
            return float("inf")
        return float(self.singular_values[0] / self.singular_values[-1])

    @property
    def is_identifiable(self) -> bool:
        """Whether all parameters are identifiable."""
        return self.rank == len(self.names)

    def messages(self) -> list[str]:
        """Warnings for users, most important first."""
        messages = [
            f"{name} is unidentifiable from this data: its effect on the samples is zero, or cannot be distinguished "
            "from that of the initial states; keep it fixed"
            for name in self.unidentifiable
        ]
        for combination in self.confounded:
            names = sorted(combination, key=lambda name: -abs(combination[name]))
            joined = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
            messages.append(f"{joined} are confounded in this data: fix {names[0]}, or give it a prior")
        for name in self.weak:
            k = self.names.index(name)
            std = f"{self.value_std[k]:.2g} {self.units[k]}".strip()
            messages.append(f"{name} is weakly identifiable: noise alone causes a standard deviation of {std}")
        messages += [f"{name} is at a bound" for name in self.at_bounds]
        return messages


@limit_blas_to_one_thread()
def identifiability(objective: Objective, point: Point) -> Identifiability:
    """Identifiability of the parameters of an objective, linearized at a point."""
    layout = objective.layout
    J = reduced_jacobian(objective, point)
    length = np.linalg.norm(J, axis=0)
    nonzero = length > MIN_SENSITIVITY
    scaled = J[:, nonzero] / length[nonzero]
    names = np.array(layout.names)
    values, null = _null_space(scaled)
    theta_std = np.full(len(names), np.inf)
    if len(values) and not null.shape[1]:
        inverse = np.linalg.pinv(scaled)
        theta_std[nonzero] = np.linalg.norm(inverse, axis=1) / length[nonzero]
    width = layout.upper - layout.lower
    # typical magnitude: one unit of θ, or |θ|
    limit = np.minimum(0.5 * width, np.maximum(np.abs(point.theta[0]), 1.0))
    is_weak = nonzero & np.isfinite(theta_std) & (theta_std > limit)
    at_bound = (point.theta[0] <= layout.lower) | (point.theta[0] >= layout.upper)
    return Identifiability(
        names=layout.names,
        sensitivity=length,
        singular_values=values,
        unidentifiable=tuple(names[~nonzero].tolist()),
        confounded=tuple(_combinations(null / length[nonzero][:, None], names[nonzero])),
        theta_std=theta_std,
        value_std=_value_std(layout, point.theta[0], theta_std),
        units=layout.units,
        weak=tuple(names[is_weak].tolist()),
        at_bounds=tuple(names[at_bound].tolist()),
    )


def reduced_jacobian(
    objective: Objective, point: Point, *, parameter_priors: bool = True, residual_std: float = 1.0
) -> Float[Array, "k N"]:
    """Triangular factor of the Jacobian with respect to θ, with the initial states eliminated.

    Its columns are projected onto the orthogonal complement of the columns for the initial states; a prior on initial
    states adds rows to both.

    Args:
        objective: the objective.
        point: point of linearization.
        parameter_priors: whether priors of parameters are additional rows.
        residual_std: standard deviation of the residuals, by which their rows are divided.
    """
    N, terms = objective.N, objective.prior_terms
    total = np.diag(objective.layout.prior_weight) if parameter_priors else np.zeros((0, N))
    # weights of a robust loss depend on residuals, which are meaningless before a fit
    linear = copy(objective)
    linear.settings = replace(objective.settings, loss="linear")
    state_priors = terms.initial_state_residuals(point.q, point.qd)[1] if terms.has_initial_state_prior else None
    for batch, _, _, _, J in linear.linearize(point):
        for index, rows in zip(batch.window, linear.stack_derivatives(J, batch), strict=True):
            J_theta, J_state = rows[:N].T / residual_std, rows[N:].T / residual_std
            if state_priors is not None:
                prior = state_priors[0, index]
                J_theta = np.concatenate([J_theta, np.zeros((len(prior), N))])
                J_state = np.concatenate([J_state, prior])
            if objective.s:
                basis = _basis(J_state)
                J_theta = J_theta - basis @ (basis.T @ J_theta)
            total = np.asarray(np.linalg.qr(np.concatenate([total, J_theta]), mode="r"))
    return total


def _value_std(layout: ThetaLayout, theta: Float[Array, " N"], theta_std: Float[Array, " N"]) -> Float[Array, " N"]:
    """Standard deviations of parameter values from those of stacked θ."""
    result = np.full(len(theta_std), np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        for index in layout.index:
            finite = np.where(np.isfinite(theta_std[index]), theta_std[index], 0.0)
            values = layout.space.value_std(theta[index], finite)
            result[index] = np.where(np.isfinite(theta_std[index]), values, np.inf)
    return result


def _basis(columns: Float[Array, "M s"]) -> Float[Array, "M r"]:
    """Orthonormal basis of the column space."""
    length = np.linalg.norm(columns, axis=0)
    left, values, _ = np.linalg.svd(columns / np.where(length > 0.0, length, 1.0), full_matrices=False)
    return left[:, values > STATE_RANK_TOLERANCE * max(values.max(initial=0.0), np.finfo(float).tiny)]


def _null_space(scaled: Float[Array, "k n"]) -> tuple[Float[Array, " n"], Float[Array, "n m"]]:
    """Singular values of a matrix, and a basis of its numerical null space."""
    n = scaled.shape[1]
    if not n:
        return np.zeros(0), np.zeros((0, 0))
    padded = np.concatenate([scaled, np.zeros((max(n - len(scaled), 0), n))])
    _, values, right_vectors = np.linalg.svd(padded, full_matrices=False)
    return values, right_vectors[values < RANK_TOLERANCE * values[0]].T


def _combinations(null: Float[Array, "n m"], names: Array) -> list[dict[str, float]]:
    """Sparse basis of a null space: each vector has one parameter that no other vector contains."""
    if not null.shape[1]:
        return []
    null = null / np.abs(null).max(axis=0)
    pivots = qr(null.T, mode="r", pivoting=True)[-1]
    pivot_rows = np.asarray(pivots)[: null.shape[1]]
    basis = null @ np.linalg.inv(null[pivot_rows])
    combinations = []
    for column in basis.T:
        column = column / np.abs(column).max()
        combinations.append({str(names[k]): float(column[k]) for k in np.flatnonzero(np.abs(column) > MIN_ENTRY_RATIO)})
    return combinations

"""What data can tell about parameters, found before a fit: which it does not see, which it cannot tell apart.

The Jacobian of all residuals, with everything taken out of it that other starts of the windows could explain as well,
says it: a column of zeros is a parameter that nothing depends on, and a combination of columns that vanishes is one of
parameters that can change together without anybody noticing. Weak ones are told by the standard deviation that noise
would leave them.
"""

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.linalg import qr

from hybridsim.core.blas import one_blas_thread
from hybridsim.identify.objective import Objective, Point
from hybridsim.identify.theta_layout import ThetaLayout

Array = np.ndarray
UNSEEN = 1e-6
"""Standard deviations of noise by which all samples together must change, along one unit of θ, for it to be seen."""
APART = 1e-7
"""Share of the largest singular value of the scaled Jacobian below which a combination counts as unseen."""
DEPENDENT = 1e-10
"""Share of the largest singular value below which starts cannot be told apart."""
PART = 0.05
"""Share of the largest entry from which on a parameter counts as part of a combination."""


@dataclass(frozen=True, eq=False)
class Identifiability:
    """What data can tell."""

    names: tuple[str, ...]
    sensitivity: Float[Array, " n"]
    """By how many standard deviations of noise all samples together change per unit of each entry of θ."""
    singular_values: Float[Array, " n"]
    """Of the Jacobian whose columns have unit length; those of unseen parameters are left out."""
    unseen: tuple[str, ...]
    """Parameters on which no sample depends."""
    confounded: tuple[dict[str, float], ...]
    """Combinations of parameters that no sample depends on: changes by the largest one, in units of θ."""
    deviation: Float[Array, " n"]
    """Standard deviation of each entry of θ by noise alone; infinite where it cannot be told."""
    uncertainty: Float[Array, " n"]
    """The same for the numbers themselves."""
    units: tuple[str, ...]
    """Of these."""
    weak: tuple[str, ...]
    """Parameters whose deviation is larger than half the range between their bounds, or than what is usual."""
    at_bounds: tuple[str, ...]
    """Parameters that start at a bound."""

    @property
    def rank(self) -> int:
        """How many independent combinations of parameters are seen."""
        return len(self.names) - len(self.unseen) - len(self.confounded)

    @property
    def condition(self) -> float:
        """Ratio of the largest singular value to the smallest; infinite if something is not seen."""
        if not len(self.singular_values) or self.rank < len(self.names):
            return float("inf")
        return float(self.singular_values[0] / self.singular_values[-1])

    @property
    def is_identifiable(self) -> bool:
        """Can every parameter be told?"""
        return self.rank == len(self.names)

    def sentences(self) -> list[str]:
        """Everything that deserves a word, most important first."""
        found = [f"{name} cannot be told by this data: no sample depends on it; leave it out" for name in self.unseen]
        for combination in self.confounded:
            parts = sorted(combination, key=lambda name: -abs(combination[name]))
            listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
            found.append(f"{listed} cannot be told apart by this data: leave out {parts[0]}, or give it a prior")
        for name in self.weak:
            k = self.names.index(name)
            uncertain = f"{self.uncertainty[k]:.2g} {self.units[k]}".strip()
            found.append(f"{name} is hardly seen: noise alone leaves it uncertain by {uncertain}")
        found += [f"{name} starts at a bound" for name in self.at_bounds]
        return found


@one_blas_thread()
def identifiability(objective: Objective, point: Point) -> Identifiability:
    """What the windows of an objective can tell, near a point."""
    layout = objective.layout
    J = reduced_jacobian(objective, point)
    length = np.linalg.norm(J, axis=0)
    seen = length > UNSEEN
    unit = J[:, seen] / length[seen]
    names = np.array(layout.names)
    values, null = _null_space(unit)
    deviation = np.full(len(names), np.inf)
    if len(values) and not null.shape[1]:
        inverse = np.linalg.pinv(unit)
        deviation[seen] = np.linalg.norm(inverse, axis=1) / length[seen]
    width = layout.upper - layout.lower
    # a unit of θ is what is usual for a number, and so is its own size
    most = np.minimum(0.5 * width, np.maximum(np.abs(point.theta[0]), 1.0))
    is_weak = seen & np.isfinite(deviation) & (deviation > most)
    at_bound = (point.theta[0] <= layout.lower) | (point.theta[0] >= layout.upper)
    return Identifiability(
        names=layout.names,
        sensitivity=length,
        singular_values=values,
        unseen=tuple(names[~seen].tolist()),
        confounded=tuple(_combinations(null / length[seen][:, None], names[seen])),
        deviation=deviation,
        uncertainty=_of_values(layout, point.theta[0], deviation),
        units=layout.units,
        weak=tuple(names[is_weak].tolist()),
        at_bounds=tuple(names[at_bound].tolist()),
    )


def reduced_jacobian(objective: Objective, point: Point) -> Float[Array, "k n"]:
    """A small matrix with the same products as the Jacobian by θ, less what other starts could explain as well.

    Priors of parameters are rows of it, too.
    """
    n = objective.n
    total = np.diag(objective.layout.prior_weight)
    # a robust loss tells how a fit weighs samples at a point that is not yet a fit, not what samples can tell
    plain = copy(objective)
    plain.terms = replace(objective.terms, loss="linear")
    for part, _, _, _, J in plain.linearized(point):
        for window in plain.by_long_theta(J, part):
            by_theta, by_start = window[:n].T, window[n:].T
            if objective.s:
                basis = _basis(by_start)
                by_theta = by_theta - basis @ (basis.T @ by_theta)
            total = np.asarray(np.linalg.qr(np.concatenate([total, by_theta]), mode="r"))
    return total


def _of_values(layout: ThetaLayout, theta: Float[Array, " N"], deviation: Float[Array, " N"]) -> Float[Array, " N"]:
    """Deviations of the long θ as those of values."""
    found = np.full(len(deviation), np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        for run in range(len(layout.runs)):
            own = layout.index[run]
            known = np.where(np.isfinite(deviation[own]), deviation[own], 0.0)
            values = layout.space.value_std(theta[own], known)
            found[own] = np.where(np.isfinite(deviation[own]), values, np.inf)
    return found


def _basis(columns: Float[Array, "M s"]) -> Float[Array, "M r"]:
    """Orthonormal columns that span what these do, as far as they are independent."""
    length = np.linalg.norm(columns, axis=0)
    left, values, _ = np.linalg.svd(columns / np.where(length > 0.0, length, 1.0), full_matrices=False)
    return left[:, values > DEPENDENT * max(values.max(initial=0.0), np.finfo(float).tiny)]


def _null_space(unit: Float[Array, "k n"]) -> tuple[Float[Array, " n"], Float[Array, "n m"]]:
    """Singular values of a matrix, and a basis of what it takes to nearly nothing."""
    n = unit.shape[1]
    if not n:
        return np.zeros(0), np.zeros((0, 0))
    padded = np.concatenate([unit, np.zeros((max(n - len(unit), 0), n))])
    _, values, right = np.linalg.svd(padded, full_matrices=False)
    return values, right[values < APART * values[0]].T


def _combinations(null: Float[Array, "n m"], names: Array) -> list[dict[str, float]]:
    """A basis of a null space in which each vector has few entries: each has one parameter for itself."""
    if not null.shape[1]:
        return []
    null = null / np.abs(null).max(axis=0)
    pivots = qr(null.T, mode="r", pivoting=True)[-1]
    own = np.asarray(pivots)[: null.shape[1]]
    basis = null @ np.linalg.inv(null[own])
    found = []
    for column in basis.T:
        column = column / np.abs(column).max()
        found.append({str(names[k]): float(column[k]) for k in np.flatnonzero(np.abs(column) > PART)})
    return found

"""Inertias that are always possible: the log-Cholesky map of a body's pseudo-inertia (Rucker & Wensing 2022).

A distribution of mass has the second moments Σ = ∫ r rᵀ dm / m about its centre of mass, a positive definite matrix,
and the inertia m (tr Σ · 1 − Σ). With a factor Σ₀ = F Fᵀ of the model's own moments, every other possible body is

    m = m₀ exp(a),    centre of mass = c₀ + scale · t,    Σ = F A Aᵀ Fᵀ,    A upper triangular, diagonal exp(d):

ten free numbers, all zero for the model's own body. Written with the upper triangular factor, the 4×4 pseudo-inertia
comes apart like this; the centre of mass moves along the body's axes and not, as there, along the columns of F, so that
its numbers have names. With `diagonal`, F has the principal axes as columns and A is diagonal: seven numbers.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from hybridsim.core.errors import ParameterError
from hybridsim.core.types import AnyArray
from hybridsim.model.inertial import inertia_matrix
from hybridsim.params.leaves import is_jax
from hybridsim.params.maps import power_of_two
from hybridsim.spatial.inertia import SYMMETRIC_ORDER

FLATTEST = 1e-9
"""Least second moment by the largest: in a flatter body, it drowns in the rounding of the inertia's entries."""

_UPPER = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Entries of A in the order of the coordinates."""


@dataclass(frozen=True)
class NominalBody:
    """Mass properties that others are measured from."""

    mass: float
    com: tuple[float, ...]
    inertia: tuple[float, ...]
    """xx, yy, zz, xy, xz, yz about the centre of mass [kg·m²]."""
    factor: tuple[tuple[float, ...], ...]
    """F, whose square are the second moments by mass [m]."""
    reach: float
    """Unit of the centre of mass [m]: about the body's radius of gyration."""
    diagonal: bool = False

    @property
    def size(self) -> int:
        """How many numbers describe a body."""
        return 7 if self.diagonal else 10

    def body(self, x: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Mass, centre of mass and inertia for the numbers log mass, centre of mass, diagonal of A, rest of A."""
        xp: Any = jnp if is_jax(x) else np
        ratio = xp.exp(x[0])
        # A Aᵀ − 1, so that nothing at all is added to the model's own inertia where x is zero
        if self.diagonal:
            change = np.eye(3) * xp.expm1(2.0 * x[4:7])[:, None]
        else:
            d, xy, xz, yz = xp.exp(x[4:7]), x[7], x[8], x[9]
            grown = xp.expm1(2.0 * x[4:7])
            off_xy, off_xz, off_yz = xy * d[1] + xz * yz, xz * d[2], yz * d[2]
            rows = [
                [grown[0] + xy * xy + xz * xz, off_xy, off_xz],
                [off_xy, grown[1] + yz * yz, off_yz],
                [off_xz, off_yz, grown[2]],
            ]
            change = xp.stack([xp.stack(row) for row in rows])
        F = np.array(self.factor)
        moments = F @ change @ F.T
        turned = xp.trace(moments) * np.eye(3) - moments
        entries = xp.stack([turned[i, j] for i, j in SYMMETRIC_ORDER])
        inertia = ratio * (np.array(self.inertia) + self.mass * entries)
        return self.mass * ratio, np.array(self.com) + self.reach * x[1:4], inertia

    def numbers(self, mass: float, com: np.ndarray, inertia: np.ndarray) -> np.ndarray:
        """The inverse of `body`; raises `LinAlgError` if there is none."""
        if not mass > 0.0:
            raise np.linalg.LinAlgError("no mass")
        inverse = np.linalg.inv(np.array(self.factor))
        square = inverse @ second_moments(inertia) @ inverse.T / mass
        start = [np.log(mass / self.mass), *((com - np.array(self.com)) / self.reach)]
        if self.diagonal:
            return np.array([*start, *(0.5 * np.log(np.diagonal(square)))])
        A = upper_factor(square)
        entries = [A[place] for place in _UPPER]
        return np.array([*start, *np.log(entries[:3]), *entries[3:]])


def nominal_body(name: str, mass: float, com: np.ndarray, inertia: np.ndarray, *, diagonal: bool) -> NominalBody:
    """A body to measure from; raises `ParameterError` if no distribution of mass is like it.

    Args:
        name: of the body, for messages.
        mass: [kg].
        com: centre of mass [m].
        inertia: about it [kg·m²]: xx, yy, zz, xy, xz, yz.
        diagonal: only second moments along its principal axes are to change.
    """
    if not (np.isfinite(mass) and np.isfinite(com).all() and np.isfinite(inertia).all()):
        raise ParameterError(f"mass, centre of mass or inertia of body {name!r} is not finite; correct the model")
    if not mass > 0.0:
        raise ParameterError(
            f"body {name!r} has the mass {mass:g} kg, and its inertia cannot be fitted; leave it out, or give it a mass"
        )
    values, axes = np.linalg.eigh(second_moments(inertia) / mass)
    if not values[0] > FLATTEST * values[-1]:
        small, middle, large = np.sort(values.sum() - values) * mass
        missing = large - small - middle
        raise ParameterError(
            f"no body has the inertia of body {name!r}: its principal moments {small:g}, {middle:g}, {large:g} kg·m² "
            f"break I1 + I2 > I3 by {missing:.3g} kg·m²; correct the model (raise I1 by more than "
            f"{missing + 2.0 * FLATTEST * values[-1] * mass:.3g} kg·m²), or free inertial[{name}].mass instead"
        )
    factor = axes * np.sqrt(values) if diagonal else upper_factor(second_moments(inertia) / mass)
    return NominalBody(
        mass=float(mass),
        com=tuple(com.tolist()),
        inertia=tuple(inertia.tolist()),
        factor=tuple(tuple(row) for row in factor.tolist()),
        reach=power_of_two(float(np.sqrt(values.sum()))),
        diagonal=diagonal,
    )


def second_moments(inertia: np.ndarray) -> np.ndarray:
    """∫ r rᵀ dm [kg·m²] from an inertia's six entries."""
    matrix = inertia_matrix(inertia)
    return 0.5 * np.trace(matrix) * np.eye(3) - matrix


def upper_factor(matrix: np.ndarray) -> np.ndarray:
    """The upper triangular U for which a positive definite matrix is U Uᵀ."""
    return np.linalg.cholesky(matrix[::-1, ::-1])[::-1, ::-1]

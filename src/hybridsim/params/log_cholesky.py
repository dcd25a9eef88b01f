"""Log-Cholesky parametrization of physically consistent inertias by the pseudo-inertia (Rucker & Wensing 2022).

A mass distribution has the second moments Σ = ∫ r rᵀ dm / m about its centre of mass, a positive definite matrix, and
the inertia m (tr Σ · 1 − Σ). With a factorization Σ₀ = F Fᵀ of the nominal body's moments, every consistent body is

    m = m₀ exp(a),    centre of mass = c₀ + scale · t,    Σ = F A Aᵀ Fᵀ,    A upper triangular, diagonal exp(d):

ten free parameters, all zero for the nominal body. This is the factorization of the 4×4 pseudo-inertia into upper
triangular factors, except that the centre of mass is parametrized along the body axes instead of the columns of F, so
that its components can be named. With `diagonal`, the columns of F are along the principal axes and A is diagonal:
seven parameters.
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

MIN_MOMENT_RATIO = 1e-9
"""Minimum ratio of the smallest to the largest principal second moment; below it, rounding of the inertia dominates."""

_UPPER_TRIANGLE = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Entries of A in the order of the parameters."""


@dataclass(frozen=True)
class NominalBody:
    """Mass properties at which all parameters are zero."""

    mass: float
    com: tuple[float, ...]
    inertia: tuple[float, ...]
    """xx, yy, zz, xy, xz, yz about the centre of mass [kg·m²]."""
    factor: tuple[tuple[float, ...], ...]
    """F, with F Fᵀ the second moments divided by the mass [m]."""
    length_scale: float
    """Length scale of the displacement of the centre of mass [m]: about the radius of gyration."""
    diagonal: bool = False

    @property
    def size(self) -> int:
        """Number of parameters."""
        return 7 if self.diagonal else 10

    def mass_properties(self, x: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Mass, centre of mass and inertia for x = (a, t, log diagonal of A, off-diagonal entries of A)."""
        xp: Any = jnp if is_jax(x) else np
        ratio = xp.exp(x[0])
        # A Aᵀ − 1, so that the nominal inertia is reproduced exactly at x = 0
        if self.diagonal:
            delta = np.eye(3) * xp.expm1(2.0 * x[4:7])[:, None]
        else:
            d, xy, xz, yz = xp.exp(x[4:7]), x[7], x[8], x[9]
            diagonal = xp.expm1(2.0 * x[4:7])
            off_xy, off_xz, off_yz = xy * d[1] + xz * yz, xz * d[2], yz * d[2]
            rows = [
                [diagonal[0] + xy * xy + xz * xz, off_xy, off_xz],
                [off_xy, diagonal[1] + yz * yz, off_yz],
                [off_xz, off_yz, diagonal[2]],
            ]
            delta = xp.stack([xp.stack(row) for row in rows])
        F = np.array(self.factor)
        moments = F @ delta @ F.T
        rotational = xp.trace(moments) * np.eye(3) - moments
        entries = xp.stack([rotational[i, j] for i, j in SYMMETRIC_ORDER])
        inertia = ratio * (np.array(self.inertia) + self.mass * entries)
        return self.mass * ratio, np.array(self.com) + self.length_scale * x[1:4], inertia

    def parameters(self, mass: float, com: np.ndarray, inertia: np.ndarray) -> np.ndarray:
        """Inverse of `mass_properties`; raises `LinAlgError` for inconsistent mass properties."""
        if not mass > 0.0:
            raise np.linalg.LinAlgError("mass is not positive")
        inverse = np.linalg.inv(np.array(self.factor))
        moments = inverse @ second_moments(inertia) @ inverse.T / mass
        mass_and_com = [np.log(mass / self.mass), *((com - np.array(self.com)) / self.length_scale)]
        if self.diagonal:
            return np.array([*mass_and_com, *(0.5 * np.log(np.diagonal(moments)))])
        A = upper_factor(moments)
        entries = [A[index] for index in _UPPER_TRIANGLE]
        return np.array([*mass_and_com, *np.log(entries[:3]), *entries[3:]])


def nominal_body(name: str, mass: float, com: np.ndarray, inertia: np.ndarray, *, diagonal: bool) -> NominalBody:
    """A nominal body; raises `ParameterError` if no mass distribution has these properties.

    Args:
        name: body name, for messages.
        mass: [kg].
        com: centre of mass [m].
        inertia: about the centre of mass [kg·m²]: xx, yy, zz, xy, xz, yz.
        diagonal: parametrize only the second moments along the principal axes.
    """
    if not (np.isfinite(mass) and np.isfinite(com).all() and np.isfinite(inertia).all()):
        raise ParameterError(f"mass, centre of mass or inertia of body {name!r} is not finite; correct the model")
    if not mass > 0.0:
        raise ParameterError(
            f"body {name!r} has mass {mass:g} kg, so its inertia cannot be fitted; leave it out, or give it a "
            "positive mass"
        )
    values, axes = np.linalg.eigh(second_moments(inertia) / mass)
    if not values[0] > MIN_MOMENT_RATIO * values[-1]:
        small, middle, large = np.sort(values.sum() - values) * mass
        violation = large - small - middle
        raise ParameterError(
            f"the inertia of body {name!r} is not physically consistent: its principal moments {small:g}, {middle:g}, "
            f"{large:g} kg·m² violate I1 + I2 > I3 by {violation:.3g} kg·m²; correct the model (raise I1 by more than "
            f"{violation + 2.0 * MIN_MOMENT_RATIO * values[-1] * mass:.3g} kg·m²), or free inertial[{name}].mass "
            "instead"
        )
    factor = axes * np.sqrt(values) if diagonal else upper_factor(second_moments(inertia) / mass)
    return NominalBody(
        mass=float(mass),
        com=tuple(com.tolist()),
        inertia=tuple(inertia.tolist()),
        factor=tuple(tuple(row) for row in factor.tolist()),
        length_scale=power_of_two(float(np.sqrt(values.sum()))),
        diagonal=diagonal,
    )


def second_moments(inertia: np.ndarray) -> np.ndarray:
    """Second moments ∫ r rᵀ dm [kg·m²] from the six entries of an inertia."""
    matrix = inertia_matrix(inertia)
    return 0.5 * np.trace(matrix) * np.eye(3) - matrix


def upper_factor(matrix: np.ndarray) -> np.ndarray:
    """Upper triangular U with U Uᵀ equal to a positive definite matrix."""
    return np.linalg.cholesky(matrix[::-1, ::-1])[::-1, ::-1]

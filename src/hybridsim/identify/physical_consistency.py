"""Least squares over physically consistent bodies and dissipative joints.

A body is physically consistent if its pseudo-inertia, the second moments ∫ x xᵀ dm of x = (r, 1), is positive definite
(Wensing, Kim & Slotine 2018): a convex set, with a projection that clips eigenvalues. The sum of squares is minimized
over it by the alternating direction method of multipliers (ADMM, Boyd et al. 2011), which reports how far from its
tolerance it ended.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from hybridsim.model.inertial import inertia_matrix
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import SYMMETRIC_ORDER

Array = np.ndarray
MIN_EIGENVALUE_RATIO = 1e-3
"""Lower limit of the eigenvalues of a body's pseudo-inertia, relative to the smallest one of the model's body."""
MAX_ITERATIONS = 2000
TOLERANCE = 1e-8
"""Tolerance on primal and dual residuals, scaled by the typical magnitude of each parameter."""


@dataclass(frozen=True, eq=False)
class ConsistentInertias:
    """Set of physically consistent inertial parameters, ten for each body with mass."""

    mass: Float[Array, " b"]
    gyration_radius: Float[Array, " b"]
    """Polar radius of gyration about the origin of the body frame: RMS distance of the mass from it [m]."""
    min_eigenvalue: Float[Array, " b"]
    """Lower limit of the eigenvalues of the normalized pseudo-inertia."""

    @classmethod
    def from_model(cls, model: Model, phi: Float[Array, "b 10"], has_mass: Bool[Array, " nb"]) -> "ConsistentInertias":
        """The set for a model's bodies with mass, whose inertial parameters are `phi`."""
        mass = np.asarray(model.body.mass, dtype=float)[has_mass]
        gyration_radius = np.sqrt(0.5 * phi[:, 4:7].sum(axis=1) / mass)
        unbounded = cls(mass, gyration_radius, np.zeros_like(mass))
        smallest = np.linalg.eigvalsh(unbounded.pseudo_inertias(phi))[:, 0]
        return cls(mass, gyration_radius, MIN_EIGENVALUE_RATIO * np.maximum(smallest, 1e-6))

    def pseudo_inertias(self, phi: Float[Array, "b 10"]) -> Float[Array, "b 4 4"]:
        """Pseudo-inertias, normalized by mass and radius of gyration."""
        pseudo = np.zeros((len(phi), 4, 4))
        for k, (body, mass, gyration_radius) in enumerate(zip(phi, self.mass, self.gyration_radius, strict=True)):
            I = inertia_matrix(body[4:])
            pseudo[k, :3, :3] = (0.5 * np.trace(I) * np.eye(3) - I) / gyration_radius**2
            pseudo[k, 3, :3] = pseudo[k, :3, 3] = body[1:4] / gyration_radius
            pseudo[k, 3, 3] = body[0]
            pseudo[k] /= mass
        return pseudo

    def parameters(self, pseudo: Float[Array, "b 4 4"]) -> Float[Array, "b 10"]:
        """Inertial parameters; the inverse of `pseudo_inertias`."""
        rows = []
        for body, gyration_radius in zip(pseudo * self.mass[:, None, None], self.gyration_radius, strict=True):
            moments = body[:3, :3] * gyration_radius**2
            I = np.trace(moments) * np.eye(3) - moments
            rows.append([body[3, 3], *(body[:3, 3] * gyration_radius), *(I[i, j] for i, j in SYMMETRIC_ORDER)])
        return np.array(rows).reshape(-1, 10)

    def project(self, pseudo: Float[Array, "b 4 4"]) -> Float[Array, "b 4 4"]:
        """Project onto the nearest physically consistent pseudo-inertias."""
        values, vectors = np.linalg.eigh(pseudo)
        return (vectors * np.maximum(values, self.min_eigenvalue[:, None])[:, None]) @ vectors.transpose(0, 2, 1)

    def is_consistent(self, phi: Float[Array, "b 10"]) -> Bool[Array, " b"]:
        """Which bodies are physically consistent."""
        return np.linalg.eigvalsh(self.pseudo_inertias(phi))[:, 0] >= self.min_eigenvalue * (1.0 - 1e-6)


class ConsistentEstimate(NamedTuple):
    """Result of `consistent_least_squares`."""

    parameters: Float[Array, " c"]
    """Physically consistent also without convergence."""
    residual: float
    """Larger of the primal and the dual residual of ADMM, scaled by the typical magnitude of each parameter: distance
    of the consistent parameters from those that minimize the augmented sum of squares, and last change of the former.
    """

    @property
    def has_converged(self) -> bool:
        """Whether the residual is below the tolerance, so that the parameters minimize the sum of squares."""
        return self.residual < TOLERANCE


def consistent_least_squares(
    bodies: ConsistentInertias,
    gram: Float[Array, "c c"],
    rhs: Float[Array, " c"],
    origin: Float[Array, " c"],
    scale: Float[Array, " c"],
) -> ConsistentEstimate:
    """Physically consistent parameters origin + scale · x that minimize ½ x·gram x − rhs·x.

    Args:
        bodies: set of consistent parameters.
        gram: positive-definite matrix.
        rhs: right-hand side of the unconstrained normal equations.
        origin: consistent parameters at x = 0.
        scale: typical magnitude of each parameter.
    """
    b = 10 * len(bodies.mass)

    def split_variables(parameters: Array) -> Array:
        """Coordinates of the projection: entries of pseudo-inertias, and scaled parameters of joints."""
        pseudo = bodies.pseudo_inertias(parameters[:b].reshape(-1, 10))
        return np.concatenate([pseudo.ravel(), parameters[b:] / scale[b:]])

    def project(z: Array) -> Array:
        pseudo = bodies.project(z[: b // 10 * 16].reshape(-1, 4, 4))
        return np.concatenate([pseudo.ravel(), np.maximum(z[b // 10 * 16 :], 0.0)])

    offset, zero = split_variables(origin), split_variables(np.zeros_like(origin))
    F = np.stack([split_variables(scale * e) - zero for e in np.eye(len(origin))], axis=1)
    weight = np.trace(gram) / np.trace(F.T @ F)
    inverse = np.linalg.inv(gram + weight * F.T @ F)
    z, u, residual = project(offset), np.zeros_like(offset), np.inf
    for _ in range(MAX_ITERATIONS):
        y = offset + F @ (inverse @ (rhs + weight * F.T @ (z - u - offset)))
        before, z = z, project(y + u)
        u = u + y - z
        residual = float(max(np.abs(y - z).max(), np.abs(z - before).max()))
        if residual < TOLERANCE:
            break
    phi = bodies.parameters(z[: b // 10 * 16].reshape(-1, 4, 4))
    return ConsistentEstimate(np.concatenate([phi.ravel(), z[b // 10 * 16 :] * scale[b:]]), residual)

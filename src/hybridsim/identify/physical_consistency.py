"""Least squares over bodies that can exist and joints that take energy.

A body exists if its pseudo-inertia, the second moments ∫ x xᵀ dm of x = (r, 1), is positive definite (Wensing, Kim &
Slotine 2018): a convex set, whose projection clips eigenvalues. The sum of squares and the set take turns until they
agree (alternating directions, Boyd et al. 2011).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from hybridsim.model.inertial import inertia_matrix
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import SYMMETRIC_ORDER

Array = np.ndarray
FLATTEST = 1e-3
"""Least eigenvalue of a body's pseudo-inertia, by that of the model's own body."""
TURNS = 2000
AGREED = 1e-8
"""Difference at which the turns end; numbers are counted by what is a large change of each."""


@dataclass(frozen=True, eq=False)
class ConsistentInertias:
    """Which numbers a model may have: ten inertial parameters of each body with mass, then those of joints."""

    mass: Float[Array, " b"]
    reach: Float[Array, " b"]
    """Root mean square distance of a body's mass from its frame's origin [m]."""
    least: Float[Array, " b"]
    """Least eigenvalue of the pseudo-inertia by mass, with lengths by reach."""

    @classmethod
    def of(cls, model: Model, phi: Float[Array, "b 10"], which: Bool[Array, " nb"]) -> "ConsistentInertias":
        """Those around a model's own bodies, of which `which` have a mass and the inertial parameters `phi`."""
        mass = np.asarray(model.body.mass, dtype=float)[which]
        reach = np.sqrt(0.5 * phi[:, 4:7].sum(axis=1) / mass)
        plain = cls(mass, reach, np.zeros_like(mass))
        own = np.linalg.eigvalsh(plain.pseudo_inertias(phi))[:, 0]
        return cls(mass, reach, FLATTEST * np.maximum(own, 1e-6))

    def pseudo_inertias(self, phi: Float[Array, "b 10"]) -> Float[Array, "b 4 4"]:
        """By mass, and with lengths by reach."""
        found = np.zeros((len(phi), 4, 4))
        for k, (numbers, mass, reach) in enumerate(zip(phi, self.mass, self.reach, strict=True)):
            I = inertia_matrix(numbers[4:])
            found[k, :3, :3] = (0.5 * np.trace(I) * np.eye(3) - I) / reach**2
            found[k, 3, :3] = found[k, :3, 3] = numbers[1:4] / reach
            found[k, 3, 3] = numbers[0]
            found[k] /= mass
        return found

    def parameters(self, pseudo: Float[Array, "b 4 4"]) -> Float[Array, "b 10"]:
        """The inverse of `pseudo_inertias`."""
        rows = []
        for one, reach in zip(pseudo * self.mass[:, None, None], self.reach, strict=True):
            moments = one[:3, :3] * reach**2
            I = np.trace(moments) * np.eye(3) - moments
            rows.append([one[3, 3], *(one[:3, 3] * reach), *(I[i, j] for i, j in SYMMETRIC_ORDER)])
        return np.array(rows).reshape(-1, 10)

    def nearest(self, pseudo: Float[Array, "b 4 4"]) -> Float[Array, "b 4 4"]:
        """The nearest pseudo-inertias of bodies that exist."""
        values, vectors = np.linalg.eigh(pseudo)
        return (vectors * np.maximum(values, self.least[:, None])[:, None]) @ vectors.transpose(0, 2, 1)

    def exist(self, phi: Float[Array, "b 10"]) -> Bool[Array, " b"]:
        """Which bodies can exist."""
        return np.linalg.eigvalsh(self.pseudo_inertias(phi))[:, 0] >= self.least * (1.0 - 1e-6)


def least_squares(
    bodies: ConsistentInertias,
    gram: Float[Array, "c c"],
    right: Float[Array, " c"],
    own: Float[Array, " c"],
    sizes: Float[Array, " c"],
) -> Float[Array, " c"]:
    """The possible numbers own + sizes · x at which ½ x·gram x − right·x is smallest.

    Args:
        bodies: which are possible.
        gram: positive definite.
        right: what x would be without bounds, times gram.
        own: numbers to count from, which are possible.
        sizes: what is a large change of each.
    """
    b = 10 * len(bodies.mass)

    def coordinates(numbers: Array) -> Array:
        """What is projected: entries of pseudo-inertias, and numbers of joints by size."""
        return np.concatenate([bodies.pseudo_inertias(numbers[:b].reshape(-1, 10)).ravel(), numbers[b:] / sizes[b:]])

    def projected(z: Array) -> Array:
        pseudo = bodies.nearest(z[: b // 10 * 16].reshape(-1, 4, 4))
        return np.concatenate([pseudo.ravel(), np.maximum(z[b // 10 * 16 :], 0.0)])

    start, zero = coordinates(own), coordinates(np.zeros_like(own))
    F = np.stack([coordinates(sizes * e) - zero for e in np.eye(len(own))], axis=1)
    weight = np.trace(gram) / np.trace(F.T @ F)
    inverse = np.linalg.inv(gram + weight * F.T @ F)
    z, u = projected(start), np.zeros_like(start)
    for _ in range(TURNS):
        reached = start + F @ (inverse @ (right + weight * F.T @ (z - u - start)))
        before, z = z, projected(reached + u)
        u = u + reached - z
        if max(np.abs(reached - z).max(), np.abs(z - before).max()) < AGREED:
            break
    phi = bodies.parameters(z[: b // 10 * 16].reshape(-1, 4, 4))
    return np.concatenate([phi.ravel(), z[b // 10 * 16 :] * sizes[b:]])

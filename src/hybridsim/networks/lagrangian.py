"""What is missing in a mechanism's Lagrangian: inertia that nobody modelled, and a potential.

    Graft("joint.qdd", ["joint.q", "joint.qd", "joint.qdd", "joint.mass_matrix"], Lagrangian(2), mode="replace")

The engine solves M q̈ = f. With kinetic energy ½ q̇ᵀ M_r(q) q̇ and potential V_r(q) added to the Lagrangian, motion obeys
(M + M_r) q̈' = f − Ṁ_r q̇ + ½ ∂(q̇ᵀ M_r q̇)/∂q − ∂V_r/∂q. M_r is never negative, so that q̈' always exists, and without
other forces the energy with both residuals in it is conserved. For joints whose coordinates are their velocities'
integrals (hinges and slides), and without contact by impulses, which knows nothing of M_r.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hybridsim.core.errors import TapError
from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.networks.frozen_fields import GIVEN, usual_size
from hybridsim.networks.mlp import MLP, Activation
from hybridsim.networks.passive import Conservative, lower_triangle, no_triangle
from hybridsim.taps.passivity import Wired


class Lagrangian(eqx.Module):
    """Accelerations of a mechanism with more inertia and another potential. Reads q, q̇, q̈ and M, row by row."""

    inertia: MLP
    """From coordinates to the entries of L, where M_r = L Lᵀ."""
    conservative: Conservative
    inertia_scale: Float[AnyArray, ""] = eqx.field(metadata=GIVEN)
    """Inertia of usual size [kg·m² or kg]; before a fit, M_r has a thousandth of it on its diagonal."""
    size: int = eqx.field(static=True)

    def __init__(
        self,
        size: int,
        *,
        hidden: Sequence[int] = (16, 16),
        activation: Activation = "tanh",
        seed: int = 0,
        input_shift: ArrayLike = 0.0,
        input_scale: ArrayLike = 1.0,
        inertia_scale: float = 1.0,
        potential_scale: float = 1.0,
    ):
        """Make a fresh one.

        Args:
            size: joints.
            hidden: units of the hidden layers of both networks.
            activation: of these.
            seed: of the first weights.
            input_shift: subtracted from the coordinates.
            input_scale: the coordinates are divided by it.
            inertia_scale: inertia of usual size [kg·m² or kg].
            potential_scale: potential of usual size [J].
        """
        shape = {"hidden": hidden, "activation": activation, "input_shift": input_shift, "input_scale": input_scale}
        self.inertia = MLP(size, size * (size + 1) // 2, seed=seed, **shape)
        self.conservative = Conservative(size, seed=seed + 1, potential_scale=potential_scale, **shape)
        self.inertia_scale, self.size = usual_size("inertia_scale", inertia_scale), size

    def __call__(self, x: Float[AnyArray, " _"]) -> Float[Array, " n"]:
        """Accelerations."""
        n = self.size
        q, v, a, M = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n :].reshape(n, n)
        residual, rate = jax.jvp(self.mass, (q,), (v,))
        squared = jax.grad(lambda q: v @ self.mass(q) @ v)(q)
        force = M @ a - rate @ v + 0.5 * squared + self.conservative(q)
        return jax.scipy.linalg.solve(M + residual, force, assume_a="pos")

    def check_wiring(self, wired: Wired) -> None:
        """Raise unless coordinates, velocities and accelerations are those of the outputs, which are replaced."""
        wired.needs_mode("replace")
        for k, quantity in enumerate(("joint.q", "joint.qd", "joint.qdd")):
            wired.needs_quantities(wired.inputs[k * self.size : (k + 1) * self.size], quantity)
        if {read.quantity for read in wired.inputs[3 * self.size :]} != {"joint.mass_matrix"}:
            raise TapError(f"{wired.kind} must read joint.mass_matrix last")

    def normalised(self, mean: Float[AnyArray, " _"], deviation: Float[AnyArray, " _"]) -> "Lagrangian":
        """The same for coordinates of this mean and standard deviation, then all else."""
        q, spread = mean[: self.size], deviation[: self.size]
        parts = (self.inertia.normalised(q, spread), self.conservative.normalised(q, spread))
        return eqx.tree_at(lambda g: (g.inertia, g.conservative), self, parts)

    def silenced(self) -> "Lagrangian":
        """One that returns the accelerations as they are."""
        nothing = (self.inertia.silenced(no_triangle(self.size)), self.conservative.silenced())
        return eqx.tree_at(lambda g: (g.inertia, g.conservative), self, nothing)

    def mass(self, q: Float[AnyArray, " n"]) -> Float[Array, "n n"]:
        """M_r, symmetric and positive."""
        L = lower_triangle(self.inertia(q), self.size)
        return self.inertia_scale * (L @ L.T)

    def energy(self, q: Float[AnyArray, " n"], v: Float[AnyArray, " n"]) -> Float[Array, ""]:
        """Kinetic and potential energy of the residuals [J]."""
        q, v = jnp.asarray(q), jnp.asarray(v)
        return 0.5 * v @ self.mass(q) @ v + self.conservative.potential(q)

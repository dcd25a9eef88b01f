"""Lagrangian augmentation of a mechanism: additional inertia and potential.

    Graft("joint.qdd", ["joint.q", "joint.qd", "joint.qdd", "joint.mass_matrix"], Lagrangian(2), mode="replace")

The engine solves M q̈ = f. With kinetic energy ½ q̇ᵀ M_add(q) q̇ and potential V_add(q) added to the Lagrangian, motion
obeys (M + M_add) q̈' = f − Ṁ_add q̇ + ½ ∂(q̇ᵀ M_add q̇)/∂q − ∂V_add/∂q. M_add is positive semidefinite, so that q̈' always
exists, and without other forces the total energy including both additions is conserved. The network applies to
revolute and prismatic joints only, and not with impulse contact, which does not account for M_add.
"""

from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hybridsim.core.errors import TapError
from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.networks.frozen_fields import FROZEN, as_scale
from hybridsim.networks.mlp import MLP, Activation, Units
from hybridsim.networks.passive import Conservative, cholesky_factor, entries_of_zero_factor
from hybridsim.taps.passivity import GraftWiring


class Lagrangian(eqx.Module):
    """Accelerations of a mechanism with additional inertia and potential. Reads q, q̇, q̈ and M, row by row."""

    inertia: MLP
    """Maps coordinates to the entries of L, where M_add = L Lᵀ."""
    conservative: Conservative
    inertia_scale: Float[AnyArray, ""] = eqx.field(metadata=FROZEN)
    """Typical inertia [kg·m² or kg]; the initial M_add has a thousandth of it on its diagonal."""
    size: int = eqx.field(static=True)
    wiring: ClassVar[str] = (
        "reads coordinates, velocities, accelerations and the mass matrix of as many joints as it has outputs"
    )

    def __init__(
        self,
        size: int,
        *,
        hidden: Sequence[Units] = (8, 8),
        activation: Activation = "tanh",
        seed: int = 0,
        input_shift: ArrayLike = 0.0,
        input_scale: ArrayLike = 1.0,
        inertia_scale: float = 1.0,
        potential_scale: float = 1.0,
    ):
        """Initialize both networks.

        Args:
            size: number of joints.
            hidden: units of the hidden layers of both networks.
            activation: activation of the hidden layers.
            seed: seed of the initial weights.
            input_shift: subtracted from the coordinates.
            input_scale: divisor of the coordinates.
            inertia_scale: typical inertia [kg·m² or kg].
            potential_scale: typical potential [J].
        """
        shape = {"hidden": hidden, "activation": activation, "input_shift": input_shift, "input_scale": input_scale}
        self.inertia = MLP(size, size * (size + 1) // 2, seed=seed, **shape)
        self.conservative = Conservative(size, seed=seed + 1, potential_scale=potential_scale, **shape)
        self.inertia_scale, self.size = as_scale("inertia_scale", inertia_scale), size

    @classmethod
    def sizes(cls, inputs: int, outputs: int) -> dict[str, int] | None:
        """Size arguments for these numbers of inputs and outputs; None if they are not supported."""
        return {"size": outputs} if inputs == 3 * outputs + outputs**2 else None

    def __call__(self, x: Float[AnyArray, " _"]) -> Float[Array, " n"]:
        """Accelerations."""
        n = self.size
        q, v, a, M = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n :].reshape(n, n)
        M_add, M_add_dot = jax.jvp(self.mass_matrix, (q,), (v,))
        gradient = jax.grad(lambda q: v @ self.mass_matrix(q) @ v)(q)
        force = M @ a - M_add_dot @ v + 0.5 * gradient + self.conservative(q)
        return jax.scipy.linalg.solve(M + M_add, force, assume_a="pos")

    def check_wiring(self, wiring: GraftWiring) -> None:
        """Raise unless it replaces accelerations and reads q, q̇ and q̈ of the same joints, then the mass matrix."""
        wiring.require_mode("replace")
        for k, quantity in enumerate(("joint.q", "joint.qd", "joint.qdd")):
            wiring.require_quantities(wiring.inputs[k * self.size : (k + 1) * self.size], quantity)
        if {scalar.quantity for scalar in wiring.inputs[3 * self.size :]} != {"joint.mass_matrix"}:
            raise TapError(f"{wiring.kind} must read joint.mass_matrix last")

    def normalize_inputs(self, mean: Float[AnyArray, " _"], std: Float[AnyArray, " _"]) -> "Lagrangian":
        """The network with coordinates normalized by mean and standard deviation; other inputs are ignored."""
        q_mean, q_std = mean[: self.size], std[: self.size]
        parts = (
            self.inertia.normalize_inputs(q_mean, q_std),
            self.conservative.normalize_inputs(q_mean, q_std),
        )
        return eqx.tree_at(lambda g: (g.inertia, g.conservative), self, parts)

    def ablate(self) -> "Lagrangian":
        """The network with zero additional inertia and potential, which returns the accelerations unchanged."""
        ablated = (self.inertia.ablate(entries_of_zero_factor(self.size)), self.conservative.ablate())
        return eqx.tree_at(lambda g: (g.inertia, g.conservative), self, ablated)

    def mass_matrix(self, q: Float[AnyArray, " n"]) -> Float[Array, "n n"]:
        """Additional mass matrix M_add, symmetric and positive semidefinite."""
        L = cholesky_factor(self.inertia(q), self.size)
        return self.inertia_scale * (L @ L.T)

    def energy(self, q: Float[AnyArray, " n"], v: Float[AnyArray, " n"]) -> Float[Array, ""]:
        """Energy of the additional inertia and potential [J]."""
        q, v = jnp.asarray(q), jnp.asarray(v)
        return 0.5 * v @ self.mass_matrix(q) @ v + self.conservative.potential(q)

"""Networks for joint torques that are passive, conservative or port-Hamiltonian for any weights.

    Graft("joint.tau", ["joint.q", "joint.qd"], Dissipative(2, 2))          −D(q) q̇, D ⪰ 0: never adds energy
    Graft("joint.tau", ["joint.q"], Conservative(2))                        −∂V/∂q: conserves energy
    Graft("joint.tau", ["joint.q", "joint.qd", "actuator.command"], PortHamiltonian(2, ports=2))
                                                                            (J − D) q̇ − ∂V/∂q + G u

Velocities must be those of the output joints, in the same order; coordinates must be integrals of these velocities, as
for revolute and prismatic joints. Initially, potentials, J and G are zero; D has a small initial value, because the
derivative of a nonnegative damping with respect to its weights vanishes where the damping is zero.
"""

from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.networks.frozen_fields import FROZEN, as_scale
from hybridsim.networks.mlp import MLP, Activation, Constant, Units
from hybridsim.taps.passivity import GraftWiring

INITIAL_FRACTION = 1e-3
"""Initial damping or friction of a network relative to its scale."""
SQUAREPLUS_ZERO = -1e12
"""Argument at which `squareplus` is exactly zero in double precision."""


class Dissipative(eqx.Module):
    """Dissipative torque −D(context) v with D = L Lᵀ.

    Reads the context, then the velocities v. Its power is −|Lᵀ v|².
    """

    net: MLP | Constant
    """Maps the context to the entries of L."""
    damping_scale: Float[AnyArray, ""] = eqx.field(metadata=FROZEN)
    """Typical damping, in units of torque per velocity."""
    size: int = eqx.field(static=True)
    """Number of joints."""
    wiring: ClassVar[str] = "reads any number of context inputs, then as many velocities as it returns torques"

    def __init__(
        self,
        context_size: int,
        size: int,
        *,
        hidden: Sequence[Units] = (8, 8),
        activation: Activation = "tanh",
        seed: int = 0,
        input_shift: ArrayLike = 0.0,
        input_scale: ArrayLike = 1.0,
        damping_scale: float = 1.0,
    ):
        """Initialize the network.

        Args:
            context_size: number of inputs that D depends on, before the velocities; if zero, D is constant.
            size: number of joints.
            hidden: units of the hidden layers.
            activation: activation of the hidden layers.
            seed: seed of the initial weights.
            input_shift: subtracted from the context, in its units.
            input_scale: divisor of the context.
            damping_scale: typical damping; the initial damping is a thousandth of it.
        """
        entries = size * (size + 1) // 2
        shape = {"hidden": hidden, "activation": activation, "input_shift": input_shift, "input_scale": input_scale}
        self.net = MLP(context_size, entries, seed=seed, **shape) if context_size else Constant(entries)
        self.damping_scale, self.size = as_scale("damping_scale", damping_scale), size

    @classmethod
    def sizes(cls, inputs: int, outputs: int) -> dict[str, int] | None:
        """Size arguments for these numbers of inputs and outputs; None if they are not supported."""
        return {"context_size": inputs - outputs, "size": outputs} if inputs >= outputs else None

    def __call__(self, x: Float[AnyArray, " _"]) -> Float[Array, " n"]:
        """Joint torques."""
        context, v = x[: x.shape[0] - self.size], x[x.shape[0] - self.size :]
        return -self.damping(context) @ v

    def check_wiring(self, wiring: GraftWiring) -> None:
        """Raise unless the last inputs are the velocities of the outputs."""
        wiring.require_mode("add")
        wiring.require_velocities(wiring.inputs[-self.size :])

    def normalize_inputs(self, mean: Float[AnyArray, " _"], std: Float[AnyArray, " _"]) -> "Dissipative":
        """The network with inputs normalized by mean and standard deviation of the context; velocities are ignored."""
        n = len(mean) - self.size
        return eqx.tree_at(lambda d: d.net, self, self.net.normalize_inputs(mean[:n], std[:n]))

    def ablate(self) -> "Dissipative":
        """The network with zero damping."""
        return eqx.tree_at(lambda d: d.net, self, self.net.ablate(entries_of_zero_factor(self.size)))

    def damping(self, context: Float[AnyArray, " _"]) -> Float[Array, "n n"]:
        """Damping matrix D, symmetric and positive semidefinite."""
        L = cholesky_factor(self.net(context), self.size)
        return self.damping_scale * (L @ L.T)


class Conservative(eqx.Module):
    """Conservative torque −∂V/∂q of a potential: it does no work along closed paths."""

    net: MLP
    """Maps coordinates to the potential."""
    potential_scale: Float[AnyArray, ""] = eqx.field(metadata=FROZEN)
    """Typical potential [J]."""
    wiring: ClassVar[str] = "reads as many coordinates as it returns torques"

    def __init__(
        self,
        size: int,
        *,
        hidden: Sequence[Units] = (8, 8),
        activation: Activation = "tanh",
        seed: int = 0,
        input_shift: ArrayLike = 0.0,
        input_scale: ArrayLike = 1.0,
        potential_scale: float = 1.0,
    ):
        """Initialize the network with zero potential; arguments as for `Dissipative`, with q as context."""
        shape = {"hidden": hidden, "activation": activation, "input_shift": input_shift, "input_scale": input_scale}
        self.net = MLP(size, 1, seed=seed, **shape)
        self.potential_scale = as_scale("potential_scale", potential_scale)

    @classmethod
    def sizes(cls, inputs: int, outputs: int) -> dict[str, int] | None:
        """Size arguments for these numbers of inputs and outputs; None if they are not supported."""
        return {"size": outputs} if inputs == outputs else None

    def __call__(self, q: Float[AnyArray, " n"]) -> Float[Array, " n"]:
        """Joint torques."""
        return -jax.grad(self.potential)(jnp.asarray(q))

    def check_wiring(self, wiring: GraftWiring) -> None:
        """Raise unless the inputs are the coordinates of the outputs."""
        wiring.require_mode("add")
        wiring.require_quantities(wiring.inputs, "joint.q")

    def normalize_inputs(self, mean: Float[AnyArray, " _"], std: Float[AnyArray, " _"]) -> "Conservative":
        """The network with inputs normalized by mean and standard deviation of the coordinates."""
        return eqx.tree_at(lambda c: c.net, self, self.net.normalize_inputs(mean, std))

    def ablate(self) -> "Conservative":
        """The network with zero potential."""
        return eqx.tree_at(lambda c: c.net, self, self.net.ablate())

    def potential(self, q: Float[AnyArray, " n"]) -> Float[Array, ""]:
        """Potential V [J]."""
        return self.potential_scale * self.net(q)[0]


class PortHamiltonian(eqx.Module):
    """Port-Hamiltonian torque (J − D) v − ∂V/∂q + G u: energy is supplied through the port u only.

    Reads coordinates q, velocities v, then u. J is antisymmetric and does no work, D ⪰ 0 dissipates energy, V stores
    it, and the port supplies the power v·G u.
    """

    dissipative: Dissipative
    conservative: Conservative
    gyroscopic: MLP | None
    """Maps coordinates to the entries of J below its diagonal; None for a single joint."""
    port: MLP | None
    """Maps coordinates to the entries of G; None without ports."""
    size: int = eqx.field(static=True)
    ports: int = eqx.field(static=True)
    wiring: ClassVar[str] = (
        "reads as many coordinates and velocities as it returns torques, then the inputs of its port"
    )

    def __init__(
        self,
        size: int,
        *,
        ports: int = 0,
        hidden: Sequence[Units] = (8, 8),
        activation: Activation = "tanh",
        seed: int = 0,
        input_shift: ArrayLike = 0.0,
        input_scale: ArrayLike = 1.0,
        damping_scale: float = 1.0,
        potential_scale: float = 1.0,
    ):
        """Initialize the networks; arguments as for `Dissipative`; `ports` is the size of u."""
        shape = {"hidden": hidden, "activation": activation, "input_shift": input_shift, "input_scale": input_scale}
        self.dissipative = Dissipative(size, size, seed=seed, damping_scale=damping_scale, **shape)
        self.conservative = Conservative(size, seed=seed + 1, potential_scale=potential_scale, **shape)
        pairs = size * (size - 1) // 2
        self.gyroscopic = MLP(size, pairs, seed=seed + 2, output_scale=damping_scale, **shape) if pairs else None
        self.port = MLP(size, size * ports, seed=seed + 3, **shape) if ports else None
        self.size, self.ports = size, ports

    @classmethod
    def sizes(cls, inputs: int, outputs: int) -> dict[str, int] | None:
        """Size arguments for these numbers of inputs and outputs; None if they are not supported."""
        return {"size": outputs, "ports": inputs - 2 * outputs} if inputs >= 2 * outputs else None

    def __call__(self, x: Float[AnyArray, " _"]) -> Float[Array, " n"]:
        """Joint torques."""
        n = self.size
        q, v, u = x[:n], x[n : 2 * n], x[2 * n :]
        torque = self.conservative(q) + self.dissipative(x[: 2 * n])
        torque = torque if self.gyroscopic is None else torque + self.interconnection(q) @ v
        return torque if self.port is None else torque + self.port(q).reshape(n, self.ports) @ u

    def check_wiring(self, wiring: GraftWiring) -> None:
        """Raise unless the first inputs are coordinates and velocities of the outputs."""
        wiring.require_mode("add")
        wiring.require_quantities(wiring.inputs[: self.size], "joint.q")
        wiring.require_velocities(wiring.inputs[self.size : 2 * self.size])

    def normalize_inputs(self, mean: Float[AnyArray, " _"], std: Float[AnyArray, " _"]) -> "PortHamiltonian":
        """The network with inputs normalized by mean and standard deviation of q; v and u are ignored."""
        n = self.size
        dissipative = self.dissipative.normalize_inputs(mean[: 2 * n], std[: 2 * n])
        functions_of_q = [part.normalize_inputs(mean[:n], std[:n]) for part in self._parts()[1:]]
        return eqx.tree_at(PortHamiltonian._parts, self, [dissipative, *functions_of_q])

    def ablate(self) -> "PortHamiltonian":
        """The network with zero torque."""
        return eqx.tree_at(PortHamiltonian._parts, self, [part.ablate() for part in self._parts()])

    def _parts(self) -> list:
        return [
            self.dissipative,
            self.conservative,
            *(part for part in (self.gyroscopic, self.port) if part is not None),
        ]

    def interconnection(self, q: Float[AnyArray, " n"]) -> Float[Array, "n n"]:
        """Interconnection matrix J, antisymmetric."""
        if self.gyroscopic is None:
            return jnp.zeros((1, 1))
        L = _lower_triangular_matrix(self.gyroscopic(q), self.size, jnp.zeros(self.size))
        return L - L.T


def squareplus(x: Float[AnyArray, "..."], at_zero: float = INITIAL_FRACTION) -> Float[Array, "..."]:
    """(x + √(x² + 4 at_zero²))/2: a smooth max(x, 0) with value `at_zero` and slope 1/2 at x = 0.

    A softplus with an equally small value also has an equally small slope, which makes a Gauss–Newton step overshoot.
    """
    return 0.5 * (x + jnp.sqrt(jnp.square(x) + 4.0 * at_zero**2))


def cholesky_factor(entries: Float[AnyArray, " k"], size: int) -> Float[Array, "n n"]:
    """Lower-triangular L with positive diagonal, such that L Lᵀ is small if all entries are zero."""
    return _lower_triangular_matrix(entries[size:], size, squareplus(entries[:size], np.sqrt(INITIAL_FRACTION)))


def entries_of_zero_factor(size: int) -> Float[np.ndarray, " k"]:
    """Entries for which `cholesky_factor` is exactly zero."""
    entries = np.zeros(size * (size + 1) // 2)
    entries[:size] = SQUAREPLUS_ZERO
    return entries


def _lower_triangular_matrix(
    below: Float[AnyArray, " k"], size: int, diagonal: Float[AnyArray, " n"]
) -> Float[Array, "n n"]:
    """Lower-triangular matrix from its entries below the diagonal, row by row, and its diagonal."""
    zero = jnp.zeros(())
    rows = []
    for i in range(size):
        start = i * (i - 1) // 2
        row = [below[start + j] for j in range(i)]
        rows.append(jnp.stack([*row, diagonal[i], *[zero] * (size - i - 1)]))
    return jnp.stack(rows)

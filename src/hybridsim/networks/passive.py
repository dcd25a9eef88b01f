"""Networks of joint torques that keep a promise about energy, whatever their weights are.

    Graft("joint.tau", ["joint.q", "joint.qd"], Dissipative(2, 2))          −D(q) q̇, D ⪰ 0: never adds energy
    Graft("joint.tau", ["joint.q"], Conservative(2))                        −∂V/∂q: gives back all that it takes
    Graft("joint.tau", ["joint.q", "joint.qd", "actuator.command"], PortHamiltonian(2, ports=2))
                                                                            (J − D) q̇ − ∂V/∂q + G u

Velocities are those of the joints whose torques come out, in the same order; coordinates are of the kind whose rate is
that velocity, as those of hinges and slides are. Before a fit, potentials, J and G are zero; a damping that cannot be
negative has no slope where it is zero, so that D starts at a small value instead.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.networks.frozen_fields import GIVEN, usual_size
from hybridsim.networks.mlp import MLP, Activation, Constant
from hybridsim.taps.passivity import Wired

FIRST = 1e-3
"""Damping or friction of a fresh network, by its scale."""
NONE_AT_ALL = -1e12
"""Of which `not_negative` makes zero, to the last bit."""


class Dissipative(eqx.Module):
    """Torque −D(context) v with D = L Lᵀ: it takes energy out of the joints, or does nothing.

    Reads the context, then the velocities v. Its power is −|Lᵀ v|².
    """

    net: MLP | Constant
    """From the context to the entries of L."""
    damping_scale: Float[AnyArray, ""] = eqx.field(metadata=GIVEN)
    """Damping of usual size, in units of torque by velocity."""
    size: int = eqx.field(static=True)
    """Joints."""

    def __init__(
        self,
        context: int,
        size: int,
        *,
        hidden: Sequence[int] = (16, 16),
        activation: Activation = "tanh",
        seed: int = 0,
        input_shift: ArrayLike = 0.0,
        input_scale: ArrayLike = 1.0,
        damping_scale: float = 1.0,
    ):
        """Make a fresh one.

        Args:
            context: numbers that D depends on; they come before the velocities. Without any, D is constant.
            size: joints.
            hidden: units of the hidden layers.
            activation: of these.
            seed: of the first weights.
            input_shift: subtracted from the context, in its units.
            input_scale: the context is divided by it.
            damping_scale: damping of usual size; before a fit there is a thousandth of it.
        """
        entries = size * (size + 1) // 2
        shape = {"hidden": hidden, "activation": activation, "input_shift": input_shift, "input_scale": input_scale}
        self.net = MLP(context, entries, seed=seed, **shape) if context else Constant(entries)
        self.damping_scale, self.size = usual_size("damping_scale", damping_scale), size

    def __call__(self, x: Float[AnyArray, " _"]) -> Float[Array, " n"]:
        """Torques."""
        context, v = x[: x.shape[0] - self.size], x[x.shape[0] - self.size :]
        return -self.damping(context) @ v

    def check_wiring(self, wired: Wired) -> None:
        """Raise unless the last inputs are the velocities of the outputs."""
        wired.needs_mode("add")
        wired.needs_velocities(wired.inputs[-self.size :])

    def normalised(self, mean: Float[AnyArray, " _"], deviation: Float[AnyArray, " _"]) -> "Dissipative":
        """The same for a context of this mean and standard deviation, then velocities."""
        context = len(mean) - self.size
        return eqx.tree_at(lambda d: d.net, self, self.net.normalised(mean[:context], deviation[:context]))

    def silenced(self) -> "Dissipative":
        """One that does nothing at all."""
        return eqx.tree_at(lambda d: d.net, self, self.net.silenced(no_triangle(self.size)))

    def damping(self, context: Float[AnyArray, " _"]) -> Float[Array, "n n"]:
        """D, symmetric and without negative eigenvalues."""
        L = lower_triangle(self.net(context), self.size)
        return self.damping_scale * (L @ L.T)


class Conservative(eqx.Module):
    """Torque −∂V/∂q of a potential: around any closed path it does no work."""

    net: MLP
    """From coordinates to the potential."""
    potential_scale: Float[AnyArray, ""] = eqx.field(metadata=GIVEN)
    """Potential of usual size [J]."""

    def __init__(
        self,
        size: int,
        *,
        hidden: Sequence[int] = (16, 16),
        activation: Activation = "tanh",
        seed: int = 0,
        input_shift: ArrayLike = 0.0,
        input_scale: ArrayLike = 1.0,
        potential_scale: float = 1.0,
    ):
        """Make a fresh one, whose potential is zero; arguments as for `Dissipative`, but context is q."""
        shape = {"hidden": hidden, "activation": activation, "input_shift": input_shift, "input_scale": input_scale}
        self.net = MLP(size, 1, seed=seed, **shape)
        self.potential_scale = usual_size("potential_scale", potential_scale)

    def __call__(self, q: Float[AnyArray, " n"]) -> Float[Array, " n"]:
        """Torques."""
        return -jax.grad(self.potential)(jnp.asarray(q))

    def check_wiring(self, wired: Wired) -> None:
        """Raise unless the inputs are the coordinates of the outputs."""
        wired.needs_mode("add")
        wired.needs_quantities(wired.inputs, "joint.q")

    def normalised(self, mean: Float[AnyArray, " _"], deviation: Float[AnyArray, " _"]) -> "Conservative":
        """The same for coordinates of this mean and standard deviation."""
        return eqx.tree_at(lambda c: c.net, self, self.net.normalised(mean, deviation))

    def silenced(self) -> "Conservative":
        """One that does nothing."""
        return eqx.tree_at(lambda c: c.net, self, self.net.silenced())

    def potential(self, q: Float[AnyArray, " n"]) -> Float[Array, ""]:
        """V [J]."""
        return self.potential_scale * self.net(q)[0]


class PortHamiltonian(eqx.Module):
    """Torque (J − D) v − ∂V/∂q + G u: what it stores and loses comes from the port u alone.

    Reads coordinates q, velocities v, then u. J is antisymmetric and does no work, D ⪰ 0 loses energy, V stores it, and
    G brings in v·G u.
    """

    dissipative: Dissipative
    conservative: Conservative
    gyroscopic: MLP | None
    """From coordinates to the entries of J below its diagonal; none for a single joint."""
    port: MLP | None
    """From coordinates to the entries of G; none where there is no port."""
    size: int = eqx.field(static=True)
    ports: int = eqx.field(static=True)

    def __init__(
        self,
        size: int,
        *,
        ports: int = 0,
        hidden: Sequence[int] = (16, 16),
        activation: Activation = "tanh",
        seed: int = 0,
        input_shift: ArrayLike = 0.0,
        input_scale: ArrayLike = 1.0,
        damping_scale: float = 1.0,
        potential_scale: float = 1.0,
    ):
        """Make a fresh one; arguments as for `Dissipative`, and how many numbers u has."""
        shape = {"hidden": hidden, "activation": activation, "input_shift": input_shift, "input_scale": input_scale}
        self.dissipative = Dissipative(size, size, seed=seed, damping_scale=damping_scale, **shape)
        self.conservative = Conservative(size, seed=seed + 1, potential_scale=potential_scale, **shape)
        pairs = size * (size - 1) // 2
        self.gyroscopic = MLP(size, pairs, seed=seed + 2, output_scale=damping_scale, **shape) if pairs else None
        self.port = MLP(size, size * ports, seed=seed + 3, **shape) if ports else None
        self.size, self.ports = size, ports

    def __call__(self, x: Float[AnyArray, " _"]) -> Float[Array, " n"]:
        """Torques."""
        n = self.size
        q, v, u = x[:n], x[n : 2 * n], x[2 * n :]
        torque = self.conservative(q) + self.dissipative(x[: 2 * n])
        torque = torque if self.gyroscopic is None else torque + self.interconnection(q) @ v
        return torque if self.port is None else torque + self.port(q).reshape(n, self.ports) @ u

    def check_wiring(self, wired: Wired) -> None:
        """Raise unless the first inputs are coordinates and velocities of the outputs."""
        wired.needs_mode("add")
        wired.needs_quantities(wired.inputs[: self.size], "joint.q")
        wired.needs_velocities(wired.inputs[self.size : 2 * self.size])

    def normalised(self, mean: Float[AnyArray, " _"], deviation: Float[AnyArray, " _"]) -> "PortHamiltonian":
        """The same for coordinates of this mean and standard deviation, then velocities and u."""
        n = self.size
        dissipative = self.dissipative.normalised(mean[: 2 * n], deviation[: 2 * n])
        others = [part.normalised(mean[:n], deviation[:n]) for part in self._parts()[1:]]
        return eqx.tree_at(PortHamiltonian._parts, self, [dissipative, *others])

    def silenced(self) -> "PortHamiltonian":
        """One that does nothing at all."""
        return eqx.tree_at(PortHamiltonian._parts, self, [part.silenced() for part in self._parts()])

    def _parts(self) -> list:
        return [
            self.dissipative,
            self.conservative,
            *(part for part in (self.gyroscopic, self.port) if part is not None),
        ]

    def interconnection(self, q: Float[AnyArray, " n"]) -> Float[Array, "n n"]:
        """J, antisymmetric."""
        if self.gyroscopic is None:
            return jnp.zeros((1, 1))
        L = _rows(self.gyroscopic(q), self.size, jnp.zeros(self.size))
        return L - L.T


def not_negative(x: Float[AnyArray, "..."], first: float = FIRST) -> Float[Array, "..."]:
    """(x + √(x² + 4 first²))/2: about x or zero, whichever is larger, and `first` where x is zero.

    A softplus that is as small has a slope as small, and sends a Gauss–Newton step far beyond its aim; this has a slope
    of one half.
    """
    return 0.5 * (x + jnp.sqrt(jnp.square(x) + 4.0 * first**2))


def lower_triangle(entries: Float[AnyArray, " k"], size: int) -> Float[Array, "n n"]:
    """A lower triangle L with a positive diagonal, such that L Lᵀ is small where all entries are zero."""
    return _rows(entries[size:], size, not_negative(entries[:size], np.sqrt(FIRST)))


def no_triangle(size: int) -> Float[np.ndarray, " k"]:
    """Entries of which `lower_triangle` makes zeros."""
    entries = np.zeros(size * (size + 1) // 2)
    entries[:size] = NONE_AT_ALL
    return entries


def _rows(below: Float[AnyArray, " k"], size: int, diagonal: Float[AnyArray, " n"]) -> Float[Array, "n n"]:
    """A lower triangle from what is below its diagonal, row by row, and its diagonal."""
    zero = jnp.zeros(())
    rows = []
    for i in range(size):
        start = i * (i - 1) // 2
        own = [below[start + j] for j in range(i)]
        rows.append(jnp.stack([*own, diagonal[i], *[zero] * (size - i - 1)]))
    return jnp.stack(rows)

"""Small networks for grafts."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.networks.frozen_fields import GIVEN, usual_size

Activation = Literal["identity", "tanh", "sin", "relu", "softplus", "elu", "sigmoid", "softsign"]

_ACTIVATIONS = {
    "identity": lambda x: x,
    "tanh": jnp.tanh,
    "sin": jnp.sin,
    "relu": jax.nn.relu,
    "softplus": jax.nn.softplus,
    "elu": jax.nn.elu,
    "sigmoid": jax.nn.sigmoid,
    "softsign": jax.nn.soft_sign,
}


class MLP(eqx.Module):
    """A multilayer perceptron; fresh, it returns exactly zero.

    The last layer starts at zero, so that grafting a new network changes nothing; the hidden layers start at random
    (Xavier for saturating activations, He for the others), so that the first gradient step finds every direction.
    """

    weights: tuple[Float[AnyArray, "_ _"], ...]
    """One (outputs, inputs) matrix per layer."""
    biases: tuple[Float[AnyArray, " _"], ...]
    input_shift: Float[AnyArray, " _"] = eqx.field(metadata=GIVEN)
    """Subtracted from the inputs, in their units."""
    input_scale: Float[AnyArray, " _"] = eqx.field(metadata=GIVEN)
    """The inputs are divided by it, in their units."""
    output_scale: Float[AnyArray, " _"] = eqx.field(metadata=GIVEN)
    """The outputs are multiplied by it, in their units."""
    input_bias: Float[AnyArray, " _"] | None
    """Added to the normalised inputs; none by default, because the first layer has biases of its own."""
    activation: Activation = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        hidden: Sequence[int] = (16, 16),
        activation: Activation = "tanh",
        seed: int = 0,
        input_shift: ArrayLike = 0.0,
        input_scale: ArrayLike = 1.0,
        output_scale: ArrayLike = 1.0,
        input_bias: bool = False,
    ):
        if activation not in _ACTIVATIONS:
            raise ValueError(f"unknown activation {activation!r}; choose one of {', '.join(_ACTIVATIONS)}")
        sizes = (inputs, *hidden, outputs)
        self.weights = _first_weights(sizes, activation, seed)
        self.biases = tuple(np.zeros(n) for n in sizes[1:])
        self.input_shift = np.broadcast_to(np.asarray(input_shift, dtype=float), (inputs,)).copy()
        self.input_scale = np.broadcast_to(usual_size("input_scale", input_scale), (inputs,)).copy()
        self.output_scale = np.broadcast_to(usual_size("output_scale", output_scale), (outputs,)).copy()
        self.input_bias = np.zeros(inputs) if input_bias else None
        self.activation = activation

    @classmethod
    def from_flat(
        cls,
        numbers: ArrayLike,
        sizes: Sequence[int],
        *,
        activation: Activation = "elu",
        input_bias: bool = False,
        output_bias: bool = True,
    ) -> "MLP":
        """A network from one list of numbers, as Tiny Differentiable Simulator keeps it.

        First come all weights, layer by layer, each layer row by row with a row for every unit; then the biases: those
        of the inputs, if there are any, of the hidden layers, and of the outputs.

        Args:
            numbers: of the network.
            sizes: units of all layers, from the inputs to the outputs.
            activation: of the hidden layers.
            input_bias: have the inputs biases?
            output_bias: have the outputs biases?

        Raises:
            ValueError: there are more numbers, or fewer, than such a network has.
        """
        flat = np.asarray(numbers, dtype=float).ravel()
        matrices = [(n_out, n_in) for n_in, n_out in pairwise(sizes)]
        biases = [*([sizes[0]] if input_bias else []), *sizes[1:-1], *([sizes[-1]] if output_bias else [])]
        wanted = sum(rows * columns for rows, columns in matrices) + sum(biases)
        if flat.size != wanted:
            raise ValueError(
                f"a network of the sizes {'→'.join(map(str, sizes))} has {wanted} numbers, not {flat.size}"
            )
        ends = np.cumsum([rows * columns for rows, columns in matrices] + biases)[:-1]
        parts = np.split(flat, ends)
        weights = tuple(part.reshape(shape).copy() for part, shape in zip(parts, matrices, strict=False))
        rest = [part.copy() for part in parts[len(matrices) :]]
        own = rest.pop(0) if input_bias else None
        rest += [] if output_bias else [np.zeros(sizes[-1])]
        plain = cls(sizes[0], sizes[-1], hidden=sizes[1:-1], activation=activation, input_bias=input_bias)
        return eqx.tree_at(
            lambda net: (net.weights, net.biases, net.input_bias),
            plain,
            (weights, tuple(rest), own),
            is_leaf=lambda x: x is None,
        )

    def reseeded(self, seed: int) -> "MLP":
        """As it is before any fit, with the first weights of another seed."""
        sizes = (self.weights[0].shape[1], *(W.shape[0] for W in self.weights))
        bias = None if self.input_bias is None else np.zeros(sizes[0])
        fresh = (_first_weights(sizes, self.activation, seed), tuple(np.zeros(n) for n in sizes[1:]), bias)
        return eqx.tree_at(
            lambda net: (net.weights, net.biases, net.input_bias), self, fresh, is_leaf=lambda x: x is None
        )

    def normalised(self, mean: ArrayLike, deviation: ArrayLike) -> "MLP":
        """The same network for inputs of this mean and standard deviation."""
        inputs = self.input_shift.shape
        numbers = [np.broadcast_to(np.asarray(x, dtype=float), inputs).copy() for x in (mean, deviation)]
        return eqx.tree_at(lambda net: (net.input_shift, net.input_scale), self, numbers)

    def silenced(self, bias: ArrayLike = 0.0) -> "MLP":
        """A network of this form that always returns the same, which is zero if nothing else is said."""
        weights = tuple(np.zeros_like(W) for W in self.weights)
        *hidden, last = (np.zeros_like(b) for b in self.biases)
        return eqx.tree_at(lambda net: (net.weights, net.biases), self, (weights, (*hidden, last + np.asarray(bias))))

    def constant(self) -> "MLP":
        """What is left of the network if no input has any weight, as a layer that reads one number in vain."""
        blind = eqx.tree_at(lambda net: net.weights[0], self, np.zeros_like(self.weights[0]))
        plain = MLP(1, len(self.output_scale), hidden=(), activation=self.activation)
        value = np.asarray(blind(np.asarray(self.input_shift))) / np.asarray(self.output_scale)
        return eqx.tree_at(lambda net: (net.biases, net.output_scale), plain, ((value,), self.output_scale))

    def reading(self, columns: Sequence[int]) -> "MLP":
        """The same network of some of its inputs, as if the others had no weight."""
        which = np.array(columns, dtype=int)
        first = np.asarray(self.weights[0])[:, which]
        bias = None if self.input_bias is None else np.asarray(self.input_bias)[which]
        return eqx.tree_at(
            lambda net: (net.weights, net.input_shift, net.input_scale, net.input_bias),
            self,
            (
                (first, *self.weights[1:]),
                np.asarray(self.input_shift)[which],
                np.asarray(self.input_scale)[which],
                bias,
            ),
            is_leaf=lambda x: x is None,
        )

    def __call__(self, x: Float[AnyArray, " _"]) -> Float[AnyArray, " _"]:
        """Outputs of the network in their units."""
        y = (x - self.input_shift) / self.input_scale
        if self.input_bias is not None:
            y = y + self.input_bias
        *hidden, last = zip(self.weights, self.biases, strict=True)
        for W, b in hidden:
            y = _ACTIVATIONS[self.activation](W @ y + b)
        W, b = last
        return self.output_scale * (W @ y + b)


def _first_weights(sizes: Sequence[int], activation: Activation, seed: int) -> tuple[np.ndarray, ...]:
    """Weights before a fit: of the last layer zero."""
    random = np.random.default_rng(seed)
    saturating = activation in ("tanh", "sigmoid", "softsign", "sin", "identity")
    weights = []
    for n_in, n_out in pairwise(sizes):
        deviation = np.sqrt(2.0 / (n_in + n_out)) if saturating else np.sqrt(2.0 / n_in)
        weights.append(random.normal(scale=deviation, size=(n_out, n_in)))
    weights[-1] = np.zeros_like(weights[-1])
    return tuple(weights)


class Constant(eqx.Module):
    """Numbers that depend on nothing, for where a network has nothing to read."""

    values: Float[AnyArray, " _"]

    def __init__(self, size: int):
        self.values = np.zeros(size)

    def __call__(self, x: Float[AnyArray, " _"]) -> Float[AnyArray, " _"]:
        """The numbers, whatever is read."""
        return self.values

    def normalised(self, mean: ArrayLike, deviation: ArrayLike) -> "Constant":
        """The same, because nothing is read."""
        return self

    def silenced(self, bias: ArrayLike = 0.0) -> "Constant":
        """The same with other numbers, which are zero if nothing else is said."""
        return eqx.tree_at(lambda net: net.values, self, np.zeros_like(self.values) + np.asarray(bias))

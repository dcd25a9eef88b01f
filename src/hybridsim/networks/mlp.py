"""Multilayer perceptrons (MLPs) for grafts."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from pydantic import Field

from hybridsim.core.errors import SettingError
from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.networks.frozen_fields import FROZEN, as_scale

Units = Annotated[int, Field(ge=1, le=4096)]
"""Units of a layer."""
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


MAX_LAYERS, MAX_WEIGHTS = 100, 10_000_000
"""Limits on the size of a network, beyond which a number in a file is a mistake."""


class MLP(eqx.Module):
    """Multilayer perceptron, whose initial output is exactly zero.

    The last layer is initialized to zero, so that grafting a new network in mode `add` or `scale` changes nothing; the
    hidden layers are initialized randomly to break symmetry (Xavier for tanh, sigmoid, softsign, sin and identity, He
    for the others).
    """

    weights: tuple[Float[AnyArray, "_ _"], ...]
    """One (outputs, inputs) matrix per layer."""
    biases: tuple[Float[AnyArray, " _"], ...]
    input_shift: Float[AnyArray, " _"] = eqx.field(metadata=FROZEN)
    """Subtracted from the inputs, in their units."""
    input_scale: Float[AnyArray, " _"] = eqx.field(metadata=FROZEN)
    """Divisor of the inputs, in their units."""
    output_scale: Float[AnyArray, " _"] = eqx.field(metadata=FROZEN)
    """Multiplies the outputs, in their units."""
    input_bias: Float[AnyArray, " _"] | None
    """Added to the normalized inputs; none by default, because the first layer has biases."""
    activation: Activation = eqx.field(static=True)
    wiring: ClassVar[str] = "reads and returns any number of values"

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        hidden: Sequence[Units] = (8, 8),
        activation: Activation = "tanh",
        seed: int = 0,
        input_shift: ArrayLike = 0.0,
        input_scale: ArrayLike = 1.0,
        output_scale: ArrayLike = 1.0,
        input_bias: bool = False,
    ):
        """Initialize the network.

        Args:
            inputs: number of inputs.
            outputs: number of outputs.
            hidden: units of the hidden layers.
            activation: activation function of the hidden layers.
            seed: seed of the initial weights.
            input_shift: subtracted from the inputs, in their units; a scalar or one value per input.
            input_scale: divisor of the inputs, in their units; a scalar or one value per input.
            output_scale: factor of the outputs, in their units; a scalar or one value per output.
            input_bias: whether a free bias is added to every input, as in the original NeuralSim.
        """
        if activation not in _ACTIVATIONS:
            raise ValueError(f"unknown activation {activation!r}; choose one of {', '.join(_ACTIVATIONS)}")
        sizes = (inputs, *hidden, outputs)
        if len(hidden) > MAX_LAYERS or sum(rows * columns for rows, columns in pairwise(sizes)) > MAX_WEIGHTS:
            raise SettingError(
                f"a network has at most {MAX_LAYERS} hidden layers and {MAX_WEIGHTS:,} weights; hidden has "
                f"{len(hidden)} layers of up to {max(hidden)} units",
                "hidden",
            )
        self.weights = _initial_weights(sizes, activation, seed)
        self.biases = tuple(np.zeros(n) for n in sizes[1:])
        self.input_shift = np.broadcast_to(np.asarray(input_shift, dtype=float), (inputs,)).copy()
        self.input_scale = np.broadcast_to(as_scale("input_scale", input_scale), (inputs,)).copy()
        self.output_scale = np.broadcast_to(as_scale("output_scale", output_scale), (outputs,)).copy()
        self.input_bias = np.zeros(inputs) if input_bias else None
        self.activation = activation

    @classmethod
    def from_flat(
        cls,
        parameters: ArrayLike,
        sizes: Sequence[int],
        *,
        activation: Activation = "elu",
        input_bias: bool = False,
        output_bias: bool = True,
    ) -> "MLP":
        """A network from a flat parameter vector in the layout of Tiny Differentiable Simulator.

        First come all weights, layer by layer, each matrix row by row with one row per unit; then the biases of the
        inputs, if there are any, of the hidden layers, and of the outputs.

        Args:
            parameters: parameters of the network.
            sizes: units of all layers, from the inputs to the outputs.
            activation: activation of the hidden layers.
            input_bias: whether the inputs have biases.
            output_bias: whether the outputs have biases.

        Raises:
            ValueError: the number of parameters does not match the sizes.
        """
        flat = np.asarray(parameters, dtype=float).ravel()
        matrices = [(n_out, n_in) for n_in, n_out in pairwise(sizes)]
        biases = [*([sizes[0]] if input_bias else []), *sizes[1:-1], *([sizes[-1]] if output_bias else [])]
        expected = sum(rows * columns for rows, columns in matrices) + sum(biases)
        if flat.size != expected:
            raise ValueError(
                f"a network with layer sizes {'→'.join(map(str, sizes))} has {expected} parameters, not {flat.size}"
            )
        ends = np.cumsum([rows * columns for rows, columns in matrices] + biases)[:-1]
        parts = np.split(flat, ends)
        weights = tuple(part.reshape(shape).copy() for part, shape in zip(parts, matrices, strict=False))
        layer_biases = [part.copy() for part in parts[len(matrices) :]]
        first_bias = layer_biases.pop(0) if input_bias else None
        layer_biases += [] if output_bias else [np.zeros(sizes[-1])]
        plain = cls(sizes[0], sizes[-1], hidden=sizes[1:-1], activation=activation, input_bias=input_bias)
        return eqx.tree_at(
            lambda net: (net.weights, net.biases, net.input_bias),
            plain,
            (weights, tuple(layer_biases), first_bias),
            is_leaf=lambda x: x is None,
        )

    def reseed(self, seed: int) -> "MLP":
        """The network with initial weights of another seed."""
        sizes = (self.weights[0].shape[1], *(W.shape[0] for W in self.weights))
        bias = None if self.input_bias is None else np.zeros(sizes[0])
        initial = (_initial_weights(sizes, self.activation, seed), tuple(np.zeros(n) for n in sizes[1:]), bias)
        return eqx.tree_at(
            lambda net: (net.weights, net.biases, net.input_bias), self, initial, is_leaf=lambda x: x is None
        )

    def normalize_inputs(self, mean: ArrayLike, std: ArrayLike) -> "MLP":
        """The network with inputs normalized by this mean and standard deviation."""
        inputs = self.input_shift.shape
        scales = [np.broadcast_to(np.asarray(x, dtype=float), inputs).copy() for x in (mean, std)]
        return eqx.tree_at(lambda net: (net.input_shift, net.input_scale), self, scales)

    def ablate(self, bias: ArrayLike = 0.0) -> "MLP":
        """A network of the same structure with zero weights: constant output `bias`, before output scaling."""
        weights = tuple(np.zeros_like(W) for W in self.weights)
        *hidden, last = (np.zeros_like(b) for b in self.biases)
        return eqx.tree_at(lambda net: (net.weights, net.biases), self, (weights, (*hidden, last + np.asarray(bias))))

    def drop_inputs(self) -> "MLP":
        """The network without inputs: a constant, as a linear layer with zero weight on one unused input."""
        disconnected = eqx.tree_at(lambda net: net.weights[0], self, np.zeros_like(self.weights[0]))
        plain = MLP(1, len(self.output_scale), hidden=(), activation=self.activation)
        value = np.asarray(disconnected(np.asarray(self.input_shift))) / np.asarray(self.output_scale)
        return eqx.tree_at(lambda net: (net.biases, net.output_scale), plain, ((value,), self.output_scale))

    def select_inputs(self, columns: Sequence[int]) -> "MLP":
        """The network restricted to some of its inputs, equivalent to zero weights on the others."""
        selected = np.array(columns, dtype=int)
        first = np.asarray(self.weights[0])[:, selected]
        bias = None if self.input_bias is None else np.asarray(self.input_bias)[selected]
        return eqx.tree_at(
            lambda net: (net.weights, net.input_shift, net.input_scale, net.input_bias),
            self,
            (
                (first, *self.weights[1:]),
                np.asarray(self.input_shift)[selected],
                np.asarray(self.input_scale)[selected],
                bias,
            ),
            is_leaf=lambda x: x is None,
        )

    def settings(self) -> dict[str, Any]:
        """Arguments that determine the structure of the network, besides its sizes."""
        hidden = tuple(int(W.shape[0]) for W in self.weights[:-1])
        return {"hidden": hidden, "activation": self.activation, "input_bias": self.input_bias is not None}

    @classmethod
    def sizes(cls, inputs: int, outputs: int) -> dict[str, int] | None:
        """Size arguments for these numbers of inputs and outputs; None if they are not supported."""
        return {"inputs": inputs, "outputs": outputs}

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


def _initial_weights(sizes: Sequence[int], activation: Activation, seed: int) -> tuple[np.ndarray, ...]:
    """Initial weights; those of the last layer are zero."""
    random = np.random.default_rng(seed)
    uses_xavier = activation in ("tanh", "sigmoid", "softsign", "sin", "identity")
    weights = []
    for n_in, n_out in pairwise(sizes):
        std = np.sqrt(2.0 / (n_in + n_out)) if uses_xavier else np.sqrt(2.0 / n_in)
        weights.append(random.normal(scale=std, size=(n_out, n_in)))
    weights[-1] = np.zeros_like(weights[-1])
    return tuple(weights)


class Constant(eqx.Module):
    """Constant outputs: a network without inputs."""

    values: Float[AnyArray, " _"]

    def __init__(self, size: int):
        self.values = np.zeros(size)

    def __call__(self, x: Float[AnyArray, " _"]) -> Float[AnyArray, " _"]:
        """Outputs, independent of x."""
        return self.values

    def normalize_inputs(self, mean: ArrayLike, std: ArrayLike) -> "Constant":
        """The network itself: there are no inputs to normalize."""
        return self

    def ablate(self, bias: ArrayLike = 0.0) -> "Constant":
        """Constant output `bias`, one value for all outputs or one each."""
        return eqx.tree_at(lambda net: net.values, self, np.zeros_like(self.values) + np.asarray(bias))

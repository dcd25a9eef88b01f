"""Elementwise maps between the solver's variables θ and physical values.

| map      | value                          | use                                                      |
|----------|--------------------------------|----------------------------------------------------------|
| linear   | scale · θ                      | any parameter; its bounds become bounds of θ             |
| log      | scale · exp θ                  | positive parameters uncertain by orders of magnitude     |
| interval | lower + (upper − lower) / (1 + exp −θ) | bounded parameters in solvers without bounds |

Default scales are powers of two: dividing by them and multiplying again is exact.
"""

import abc
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from hybridsim.core.types import AnyArray
from hybridsim.params.leaves import is_jax

Floats = tuple[float, ...]
"""One entry per value, or a single entry for all values."""


class ParameterMap(abc.ABC):
    """From θ (n,) to values (n,) and back. Only `value` accepts JAX arrays."""

    @abc.abstractmethod
    def value(self, theta: AnyArray) -> AnyArray:
        """Physical values; in JAX if θ is."""

    @abc.abstractmethod
    def theta(self, value: np.ndarray) -> np.ndarray:
        """Inverse of `value`; NaN or infinite outside the range of the map."""

    @abc.abstractmethod
    def derivative(self, value: np.ndarray) -> np.ndarray:
        """Derivative of the value with respect to θ, as a function of the value."""


@dataclass(frozen=True)
class Linear(ParameterMap):
    """A scale times θ."""

    scale: Floats = (1.0,)

    def value(self, theta):
        return theta if self.scale == (1.0,) else np.array(self.scale) * theta

    def theta(self, value):
        return value / np.array(self.scale)

    def derivative(self, value):
        return np.array(self.scale) + 0.0 * value


@dataclass(frozen=True)
class Log(ParameterMap):
    """A scale times the exponential of θ."""

    scale: Floats = (1.0,)

    def value(self, theta):
        return np.array(self.scale) * (jnp if is_jax(theta) else np).exp(theta)

    def theta(self, value):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(value / np.array(self.scale))

    def derivative(self, value):
        return value


@dataclass(frozen=True)
class Interval(ParameterMap):
    """Logistic function between two bounds."""

    lower: Floats
    upper: Floats

    @property
    def width(self) -> np.ndarray:
        """Difference of the bounds."""
        return np.array(self.upper) - np.array(self.lower)

    def value(self, theta):
        from scipy.special import expit  # slow to import

        return np.array(self.lower) + self.width * (jax.nn.sigmoid if is_jax(theta) else expit)(theta)

    def theta(self, value):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log((value - np.array(self.lower)) / (np.array(self.upper) - value))

    def derivative(self, value):
        return (value - np.array(self.lower)) * (np.array(self.upper) - value) / self.width


MAPS = ("linear", "log", "interval")
"""Names of the maps."""


def power_of_two(x: float) -> float:
    """Power of two closest to a positive x on a logarithmic scale."""
    return float(2.0 ** np.round(np.log2(x)))


def compact(values: np.ndarray) -> Floats:
    """Values as a tuple, of length one if all are equal."""
    listed = tuple(np.asarray(values, dtype=float).tolist())
    return listed[:1] if len(set(listed)) == 1 else listed

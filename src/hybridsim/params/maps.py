"""Maps between what a solver sees and physical values, one number each.

| map      | value                          | for                                                      |
|----------|--------------------------------|----------------------------------------------------------|
| identity | scale · θ                      | anything; bounds stay bounds                             |
| log      | scale · exp θ                  | positive values that may change by orders of magnitude   |
| interval | lower + (upper − lower) / (1 + exp −θ) | values within bounds, for solvers that know none |

Scales are powers of two, unless the user chose others: dividing by them and multiplying again loses no bit.
"""

import abc
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from hybridsim.core.types import AnyArray
from hybridsim.params.leaves import is_jax

Floats = tuple[float, ...]
"""One for each number, or a single one for all."""


class ParameterMap(abc.ABC):
    """From θ (n,) to values (n,) and back. All but `value` is NumPy."""

    @abc.abstractmethod
    def value(self, theta: AnyArray) -> AnyArray:
        """Physical values; in JAX if θ is."""

    @abc.abstractmethod
    def theta(self, value: np.ndarray) -> np.ndarray:
        """θ of values; not finite where there is none."""

    @abc.abstractmethod
    def derivative(self, value: np.ndarray) -> np.ndarray:
        """Derivative of the value by θ, at values."""


@dataclass(frozen=True)
class Identity(ParameterMap):
    """Values by a scale."""

    scale: Floats = (1.0,)

    def value(self, theta):
        return theta if self.scale == (1.0,) else np.array(self.scale) * theta

    def theta(self, value):
        return value / np.array(self.scale)

    def derivative(self, value):
        return np.array(self.scale) + 0.0 * value


@dataclass(frozen=True)
class Log(ParameterMap):
    """Logarithms of values by a scale."""

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
    """A smooth step from one bound to the other."""

    lower: Floats
    upper: Floats

    @property
    def width(self) -> np.ndarray:
        """Upper bound minus lower one."""
        return np.array(self.upper) - np.array(self.lower)

    def value(self, theta):
        from scipy.special import expit  # takes a while to load

        return np.array(self.lower) + self.width * (jax.nn.sigmoid if is_jax(theta) else expit)(theta)

    def theta(self, value):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log((value - np.array(self.lower)) / (np.array(self.upper) - value))

    def derivative(self, value):
        return (value - np.array(self.lower)) * (np.array(self.upper) - value) / self.width


MAPS = ("identity", "log", "interval")
"""Names of the maps."""


def power_of_two(x: float) -> float:
    """The power of two nearest to a positive number, by ratio."""
    return float(2.0 ** np.round(np.log2(x)))


def compact(values: np.ndarray) -> Floats:
    """One number where all are the same."""
    listed = tuple(np.asarray(values, dtype=float).tolist())
    return listed[:1] if len(set(listed)) == 1 else listed

"""Parameter groups: array entries that depend jointly on a few group parameters (rotations, axes, inertias).

Group parameters refer to the setup from which the space was built. A group stores their nominal values there, so that
the same group parameters always give the same entries, whichever setup they are written to.
"""

import abc
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from hybridsim.core.numerics import direction_and_length
from hybridsim.core.types import AnyArray
from hybridsim.params.catalogue import SYMMETRIC, XYZ
from hybridsim.params.leaves import LeafEntry, LeafWriter, Path, is_jax, leaf_at, parse_path
from hybridsim.params.log_cholesky import NominalBody
from hybridsim.spatial.rotation import matrix_from_rotation_vector

MASS, COM, INERTIA = (parse_path(f"sim.model.body.{field}") for field in ("mass", "com", "inertia"))


@dataclass(frozen=True)
class ParameterGroup(abc.ABC):
    """Group parameters (n,) and the array entries that they determine."""

    name: str
    """Address of its row, for messages."""
    row: int
    nominal: tuple[float, ...]
    """Group parameters when the space was built; fixed ones keep these values."""

    @property
    @abc.abstractmethod
    def leaf_indices(self) -> tuple[tuple[Path, tuple[int, ...]], ...]:
        """Leaves that it writes to, with flat indices."""

    @abc.abstractmethod
    def values(self, x: AnyArray) -> tuple[AnyArray, ...]:
        """Values for each of these leaves; JAX arrays if the group parameters are."""

    @abc.abstractmethod
    def read(self, setup: Any, is_free: np.ndarray) -> np.ndarray:
        """Group parameters that reproduce the entries of a setup, if there are any."""

    def display_values(self, x: np.ndarray) -> dict[str, float]:
        """Physical values to report instead of the group parameters; empty if these are physical themselves."""
        del x
        return {}

    @cached_property
    def entries(self) -> tuple[LeafEntry, ...]:
        """All array entries that it writes."""
        return tuple(LeafEntry(path, index) for path, indices in self.leaf_indices for index in indices)

    def write(self, writer: LeafWriter, x: AnyArray) -> None:
        """Write the values to their leaves."""
        for (path, indices), values in zip(self.leaf_indices, self.values(x), strict=True):
            writer.put(path, indices, values)


def _row_indices(row: int, width: int) -> tuple[int, ...]:
    return tuple(range(row * width, (row + 1) * width))


@dataclass(frozen=True)
class RotationVector(ParameterGroup):
    """The nominal rotation followed by a rotation vector [rad] in the rotated frame."""

    path: Path
    R: tuple[tuple[float, ...], ...]

    @property
    def leaf_indices(self):
        return ((self.path, _row_indices(self.row, 9)),)

    def values(self, x):
        from scipy.spatial.transform import Rotation  # slow to import

        R_delta = matrix_from_rotation_vector(x) if is_jax(x) else Rotation.from_rotvec(x).as_matrix()
        return ((np.array(self.R) @ R_delta).reshape(-1),)

    def read(self, setup, is_free):
        from scipy.spatial.transform import Rotation

        R = np.asarray(leaf_at(setup, self.path))[self.row]
        return Rotation.from_matrix(np.array(self.R).T @ R).as_rotvec()


@dataclass(frozen=True)
class UnitAxis(ParameterGroup):
    """A direction, normalized to unit length."""

    path: Path

    @property
    def leaf_indices(self):
        return ((self.path, _row_indices(self.row, 3)),)

    def values(self, x):
        if is_jax(x):
            return (direction_and_length(x, np.array(self.nominal))[0],)
        length = np.linalg.norm(x)
        return (x / length if length > 0.0 else np.array(self.nominal),)

    def read(self, setup, is_free):
        axis = np.asarray(leaf_at(setup, self.path))[self.row]
        fixed = np.where(is_free, 0.0, axis)
        # the vector along the axis whose fixed components have their nominal values
        length = fixed @ np.array(self.nominal) / (fixed @ fixed) if fixed.any() else 1.0
        return axis * length

    def display_values(self, x):
        return dict(zip((f"{self.name}.{c}" for c in XYZ), self.values(x)[0].tolist(), strict=True))


@dataclass(frozen=True)
class Magnitude(ParameterGroup):
    """Length of a vector of fixed direction."""

    path: Path
    vector: tuple[float, ...]

    @property
    def leaf_indices(self):
        return ((self.path, _row_indices(self.row, 3)),)

    def values(self, x):
        return (np.array(self.vector) * (x[0] / self.nominal[0]),)

    def read(self, setup, is_free):
        return np.array([np.linalg.norm(leaf_at(setup, self.path))])


@dataclass(frozen=True)
class ProportionalInertia(ParameterGroup):
    """A mass to which the inertia about the centre of mass is proportional."""

    inertia: tuple[float, ...]
    body_name: str

    @property
    def leaf_indices(self):
        return (MASS, (self.row,)), (INERTIA, _row_indices(self.row, 6))

    def values(self, x):
        return x, np.array(self.inertia) * (x[0] / self.nominal[0])

    def read(self, setup, is_free):
        return np.asarray(leaf_at(setup, MASS))[self.row : self.row + 1]

    def display_values(self, x):
        inertia = self.values(x)[1].tolist()
        return {self.name: float(x[0])} | _named_values(inertia, "inertia", self.body_name, SYMMETRIC)


@dataclass(frozen=True)
class LogCholeskyInertia(ParameterGroup):
    """Mass, centre of mass and inertia of a body, always physically consistent."""

    body: NominalBody
    body_name: str

    @property
    def leaf_indices(self):
        return (MASS, (self.row,)), (COM, _row_indices(self.row, 3)), (INERTIA, _row_indices(self.row, 6))

    def values(self, x):
        mass, com, inertia = self.body.mass_properties(x)
        return mass[None], com, inertia

    def read(self, setup, is_free):
        mass, com, inertia = (np.asarray(leaf_at(setup, path))[self.row] for path in (MASS, COM, INERTIA))
        return self.body.parameters(float(mass), com, inertia)

    def display_values(self, x):
        (mass,), com, inertia = (part.tolist() for part in self.values(x))
        named = {f"body.mass[{self.body_name}]": mass} | _named_values(com, "com", self.body_name, XYZ)
        return named | _named_values(inertia, "inertia", self.body_name, SYMMETRIC)


def _named_values(values: list[float], field: str, body: str, components: tuple[str, ...]) -> dict[str, float]:
    return {f"body.{field}[{body}].{c}": value for c, value in zip(components, values, strict=True)}


def stack_scalars(parts: list[Any]) -> AnyArray:
    """Group parameters from scalars."""
    return jnp.stack([jnp.asarray(x) for x in parts]) if any(map(is_jax, parts)) else np.array(parts)

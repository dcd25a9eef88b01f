"""Mass properties used while building a model, in plain NumPy: they can be transformed, added and subtracted."""

from dataclasses import dataclass, field

import numpy as np

from hybridsim.spatial.inertia import SYMMETRIC_ORDER
from hybridsim.spatial.transform import Pose


@dataclass(frozen=True, eq=False)
class Inertial:
    """Mass, centre of mass and inertia about the centre of mass, expressed in one frame."""

    mass: float = 0.0
    """[kg]"""
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    """[m]"""
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    """3×3 about the centre of mass [kg·m²]."""

    def transform(self, X_AB: Pose) -> "Inertial":
        """Transform the mass properties from frame B to frame A."""
        R = np.asarray(X_AB.R)
        return Inertial(self.mass, np.asarray(X_AB.p) + R @ self.com, R @ self.inertia @ R.T)

    def __add__(self, other: "Inertial") -> "Inertial":
        """Mass properties of two bodies welded together, both expressed in the same frame."""
        mass = self.mass + other.mass
        if mass == 0.0:
            return Inertial(0.0, self.com, self.inertia + other.inertia)
        com = (self.mass * self.com + other.mass * other.com) / mass
        return Inertial(mass, com, self.inertia_about(com) + other.inertia_about(com))

    def __sub__(self, other: "Inertial") -> "Inertial":
        """Mass properties of this body without `other`, a part of it expressed in the same frame."""
        return self + Inertial(-other.mass, other.com, -other.inertia)

    def inertia_about(self, point: np.ndarray) -> np.ndarray:
        """Inertia about another point [kg·m²] (parallel-axis theorem)."""
        d = self.com - point
        return self.inertia + self.mass * (d @ d * np.eye(3) - np.outer(d, d))

    def spatial_inertia(self) -> np.ndarray:
        """6×6 spatial inertia about the frame's origin, angular part first [kg·m², kg·m, kg]."""
        mc = self.mass * skew(self.com)
        return np.block([[self.inertia_about(np.zeros(3)), mc], [mc.T, self.mass * np.eye(3)]])

    def entries(self) -> np.ndarray:
        """Six independent entries of the inertia matrix in the order of `SYMMETRIC_ORDER`."""
        return np.array([self.inertia[i] for i in SYMMETRIC_ORDER])


def skew(v: np.ndarray) -> np.ndarray:
    """Skew-symmetric matrix of the cross product with `v`."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def inertia_matrix(entries) -> np.ndarray:
    """3×3 inertia from six entries (xx, yy, zz, xy, xz, yz), three diagonal entries, or a 3×3 matrix."""
    entries = np.asarray(entries, dtype=float)
    if entries.shape == (3, 3):
        return entries
    if entries.shape == (3,):
        return np.diag(entries)
    if entries.shape != (6,):
        raise ValueError(
            f"inertia has shape {entries.shape}; expected 3 (diagonal), 6 (xx, yy, zz, xy, xz, yz) or 3×3 entries"
        )
    matrix = np.zeros((3, 3))
    for value, (i, j) in zip(entries, SYMMETRIC_ORDER, strict=True):
        matrix[i, j] = matrix[j, i] = value
    return matrix


def solid_box(mass: float, half_extents) -> Inertial:
    """Mass properties of a box of uniform density about its centre."""
    x, y, z = (2.0 * np.asarray(half_extents, dtype=float)) ** 2
    return Inertial(float(mass), np.zeros(3), mass / 12.0 * np.diag([y + z, x + z, x + y]))


def solid_ellipsoid(mass: float, semi_axes) -> Inertial:
    """Mass properties of an ellipsoid of uniform density about its centre; three equal semi-axes give a sphere."""
    x, y, z = np.asarray(semi_axes, dtype=float) ** 2
    return Inertial(float(mass), np.zeros(3), mass / 5.0 * np.diag([y + z, x + z, x + y]))


def solid_cylinder(mass: float, radius: float, half_length: float) -> Inertial:
    """Mass properties of a cylinder along z of uniform density about its centre."""
    transverse = mass * (3.0 * radius**2 + 4.0 * half_length**2) / 12.0
    return Inertial(float(mass), np.zeros(3), np.diag([transverse, transverse, 0.5 * mass * radius**2]))


def solid_capsule(mass: float, radius: float, half_length: float) -> Inertial:
    """Mass properties of a capsule (cylinder along z with hemispherical ends) of uniform density about its centre."""
    cylinder_volume = 2.0 * half_length * np.pi * radius**2
    sphere_volume = 4.0 / 3.0 * np.pi * radius**3
    m_cylinder = mass * cylinder_volume / (cylinder_volume + sphere_volume)
    m_sphere = mass - m_cylinder
    cylinder = solid_cylinder(m_cylinder, radius, half_length).inertia
    # two hemispheres, with centres of mass 3/8 r beyond the ends of the cylinder
    axial = 0.4 * m_sphere * radius**2
    transverse = axial + m_sphere * half_length * (half_length + 0.75 * radius)
    return Inertial(float(mass), np.zeros(3), cylinder + np.diag([transverse, transverse, axial]))

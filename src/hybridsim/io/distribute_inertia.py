"""Distribution of changed mass properties of a merged body over the links that it consists of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nextafter

import numpy as np

from hybridsim.model.inertial import Inertial
from hybridsim.spatial.transform import Pose

DEGENERACY_RATIO = 1e-9
"""Ratio of smallest to largest principal second moment below which a body counts as flat and cannot be stretched."""


@dataclass(frozen=True)
class Part:
    """A link or body merged into a body."""

    inertial: Inertial
    """Mass properties in the frame of the part."""
    X_BP: Pose
    """Pose of the part in the body."""


def distribute_inertia(
    parts: Sequence[Part], before: Inertial, after: Inertial, is_feasible: Callable[[int, Inertial], bool]
) -> list[Inertial] | None:
    """New mass properties of the parts that add up to the new mass properties of the body.

    If a single part can absorb the whole change, it does: the first part if possible, otherwise the heaviest feasible
    one. If none can, all parts are scaled and stretched by the same affine map.

    Args:
        parts: the parts; the frame of the first one is the body frame.
        before: mass properties of the body, the sum of its parts.
        after: new mass properties of the body.
        is_feasible: whether the part with this index may have these mass properties, in its own frame.

    Returns:
        Mass properties in the frames of the parts; unchanged ones are the same objects. None if there is no solution.
    """
    if not np.isfinite([after.mass, *after.com, *after.inertia.ravel()]).all():
        return None
    masses = [part.inertial.mass for part in parts]
    by_mass = [k for k in sorted(range(1, len(parts)), key=lambda k: -masses[k]) if masses[k] > 0.0]
    for k in [0, *by_mass]:
        remainder = _remainder(parts, k, after)
        if is_feasible(k, remainder):
            return [remainder if i == k else part.inertial for i, part in enumerate(parts)]
    stretched = _stretch_parts(parts, before, after)
    if stretched is not None and all(is_feasible(k, part) for k, part in enumerate(stretched)):
        return stretched
    return None


def _remainder(parts: Sequence[Part], k: int, after: Inertial) -> Inertial:
    """Mass properties of part `k` if all others are unchanged."""
    others = [
        part.inertial.transform(part.X_BP) for i, part in enumerate(parts) if i != k and not _is_empty(part.inertial)
    ]
    if not others:
        return after.transform(parts[k].X_BP.inverse()) if k else after
    total = sum(others, Inertial())
    remainder = after - total
    remainder = Inertial(_summand(after.mass, total.mass), remainder.com, remainder.inertia)
    return remainder.transform(parts[k].X_BP.inverse()) if k else remainder


def _stretch_parts(parts: Sequence[Part], before: Inertial, after: Inertial) -> list[Inertial] | None:
    """Mass properties of the parts scaled by the mass ratio and stretched by the map x → com' + F (x − com).

    An affine map takes a mass distribution to a mass distribution, so all parts remain physically consistent.
    """
    if before.mass <= 0.0 or after.mass <= 0.0:
        return None
    F = _stretch_map(_second_moments(before) / before.mass, _second_moments(after) / after.mass)
    if F is None:
        return None
    ratio, strain = after.mass / before.mass, F - np.eye(3)
    parts_after = []
    for part in parts:
        old, R_BP = part.inertial, np.asarray(part.X_BP.R)
        offset = part.X_BP.point(old.com) - before.com
        com = old.com + R_BP.T @ (after.com - before.com + strain @ offset) if old.mass else old.com
        if strain.any():
            F_P = R_BP.T @ F @ R_BP
            moments = ratio * F_P @ _second_moments(old) @ F_P
            inertia = np.trace(moments) * np.eye(3) - moments
        else:
            inertia = ratio * old.inertia
        parts_after.append(Inertial(ratio * old.mass, com, 0.5 * (inertia + inertia.T)))
    return parts_after


def _second_moments(inertial: Inertial) -> np.ndarray:
    """∫ x xᵀ dm about the centre of mass [kg·m²]."""
    return 0.5 * np.trace(inertial.inertia) * np.eye(3) - inertial.inertia


def _stretch_map(C: np.ndarray, target: np.ndarray) -> np.ndarray | None:
    """Symmetric positive semidefinite F with F C F = `target`; None if there is none or if C is nearly singular.

    A singular C is supported if `target` is a multiple of it.
    """
    size, target_size = np.trace(C), np.trace(target)
    if size <= 0.0 or target_size <= 0.0:
        return np.eye(3) if not C.any() and not target.any() else None
    ratio = target_size / size
    if np.allclose(target, ratio * C, rtol=0.0, atol=1e-14 * target_size):
        # isotropic scaling, which also works for a singular C
        return np.eye(3) * (1.0 if abs(ratio - 1.0) < 1e-14 else np.sqrt(ratio))
    moments, axes = np.linalg.eigh(C)
    if moments[0] <= DEGENERACY_RATIO * moments[-1]:
        return None
    root, inverse_root = ((axes * moments**power) @ axes.T for power in (0.5, -0.5))
    eigenvalues, eigenvectors = np.linalg.eigh(root @ target @ root)
    if eigenvalues[0] < -DEGENERACY_RATIO * eigenvalues[-1]:
        return None
    return inverse_root @ ((eigenvectors * np.sqrt(eigenvalues.clip(min=0.0))) @ eigenvectors.T) @ inverse_root


def _is_empty(inertial: Inertial) -> bool:
    return inertial.mass == 0.0 and not inertial.inertia.any()


def _summand(total: float, other: float) -> float:
    """Summand x with x + `other` == `total` in floating point, if one exists near the difference."""
    difference = total - other
    candidates = (difference, nextafter(difference, inf), nextafter(difference, -inf))
    return next((x for x in candidates if x + other == total), difference)

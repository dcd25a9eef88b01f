"""Sharing new mass properties among the parts that a body was merged from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nextafter

import numpy as np

from hybridsim.model.inertial import Inertial
from hybridsim.spatial.transform import Pose

DEGENERATE = 1e-9
"""Smallest over largest principal second moment below which a body is flat, and cannot be made thicker."""


@dataclass(frozen=True)
class Part:
    """One of the links or bodies that a body was merged from."""

    inertial: Inertial
    """Mass properties in the part's own frame."""
    X_BP: Pose
    """Pose of the part in the body."""


def shared(
    parts: Sequence[Part], before: Inertial, after: Inertial, is_possible: Callable[[int, Inertial], bool]
) -> list[Inertial] | None:
    """New mass properties of the parts, which together are those that the body shall have.

    If one part can take all of the change, it does: the first one if it can, otherwise the heaviest that can. If none
    can, all are scaled and deformed alike.

    Args:
        parts: the parts; the first one has the body's frame.
        before: mass properties of the body, the sum of its parts.
        after: mass properties that it shall have.
        is_possible: whether the part of this index may get these mass properties, in its own frame.

    Returns:
        Mass properties in the parts' own frames; untouched ones are the same objects. None if nothing is possible.
    """
    if not np.isfinite([after.mass, *after.com, *after.inertia.ravel()]).all():
        return None
    weights = [part.inertial.mass for part in parts]
    heavy = [k for k in sorted(range(1, len(parts)), key=lambda k: -weights[k]) if weights[k] > 0.0]
    for k in [0, *heavy]:
        alone = _remainder(parts, k, after)
        if is_possible(k, alone):
            return [alone if i == k else part.inertial for i, part in enumerate(parts)]
    together = _deformed(parts, before, after)
    if together is not None and all(is_possible(k, part) for k, part in enumerate(together)):
        return together
    return None


def _remainder(parts: Sequence[Part], k: int, after: Inertial) -> Inertial:
    """What part `k` must be if the others stay as they are."""
    others = [
        part.inertial.transform(part.X_BP) for i, part in enumerate(parts) if i != k and not _is_empty(part.inertial)
    ]
    if not others:
        return after.transform(parts[k].X_BP.inverse()) if k else after
    rest = sum(others, Inertial())
    left = after - rest
    left = Inertial(_summand(after.mass, rest.mass), left.com, left.inertia)
    return left.transform(parts[k].X_BP.inverse()) if k else left


def _deformed(parts: Sequence[Part], before: Inertial, after: Inertial) -> list[Inertial] | None:
    """All parts made heavier and stretched alike, by the map x → centre' + F (x - centre).

    A solid stays a solid under such a map, so that no part becomes impossible.
    """
    if before.mass <= 0.0 or after.mass <= 0.0:
        return None
    F = _stretch(_second_moments(before) / before.mass, _second_moments(after) / after.mass)
    if F is None:
        return None
    weight, stretched = after.mass / before.mass, F - np.eye(3)
    parts_after = []
    for part in parts:
        own, R_BP = part.inertial, np.asarray(part.X_BP.R)
        away = part.X_BP.point(own.com) - before.com
        com = own.com + R_BP.T @ (after.com - before.com + stretched @ away) if own.mass else own.com
        if stretched.any():
            F_P = R_BP.T @ F @ R_BP
            moments = weight * F_P @ _second_moments(own) @ F_P
            inertia = np.trace(moments) * np.eye(3) - moments
        else:
            inertia = weight * own.inertia
        parts_after.append(Inertial(weight * own.mass, com, 0.5 * (inertia + inertia.T)))
    return parts_after


def _second_moments(inertial: Inertial) -> np.ndarray:
    """∫ x xᵀ dm about the centre of mass [kg·m²]."""
    return 0.5 * np.trace(inertial.inertia) * np.eye(3) - inertial.inertia


def _stretch(C: np.ndarray, wanted: np.ndarray) -> np.ndarray | None:
    """Symmetric F with F C F = wanted, the gentlest such stretch; None if there is none."""
    size, wanted_size = np.trace(C), np.trace(wanted)
    if size <= 0.0 or wanted_size <= 0.0:
        return np.eye(3) if not C.any() and not wanted.any() else None
    ratio = wanted_size / size
    if np.allclose(wanted, ratio * C, rtol=0.0, atol=1e-14 * wanted_size):
        # the same shape in another size; nothing is asked of C
        return np.eye(3) * (1.0 if abs(ratio - 1.0) < 1e-14 else np.sqrt(ratio))
    moments, axes = np.linalg.eigh(C)
    if moments[0] <= DEGENERATE * moments[-1]:
        return None
    root, inverse_root = ((axes * moments**power) @ axes.T for power in (0.5, -0.5))
    middle, turned = np.linalg.eigh(root @ wanted @ root)
    if middle[0] < -DEGENERATE * middle[-1]:
        return None
    return inverse_root @ ((turned * np.sqrt(middle.clip(min=0.0))) @ turned.T) @ inverse_root


def _is_empty(inertial: Inertial) -> bool:
    return inertial.mass == 0.0 and not inertial.inertia.any()


def _summand(total: float, other: float) -> float:
    """A number that, added to `other`, gives exactly `total`."""
    guess = total - other
    near = (guess, nextafter(guess, inf), nextafter(guess, -inf))
    return next((x for x in near if x + other == total), guess)

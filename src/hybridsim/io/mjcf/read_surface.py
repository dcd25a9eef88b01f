"""MuJoCo's numbers of a surface, `solref` and `solimp`, and ours: what one says in the terms of the other.

MuJoCo gives a contact the law of a damped spring (`solref`) of which it enforces a share (`solimp`, the impedance d). A
contact here is undone within a time and gives way by a share of the bodies' apparent inverse mass, which in MuJoCo is
(1 − d)/d.
"""

from collections.abc import Sequence

import numpy as np

from hybridsim.model.geometry import DEFAULT_RECOVERY_TIME, DEFAULT_SOFTNESS

USUAL_IMPEDANCE = (0.9, 0.95)
"""First two numbers of MuJoCo's default `solimp`, which stand for our default softness."""
LOWEST_IMPEDANCE, HIGHEST_IMPEDANCE = 0.5, 0.9999
"""Softness is read, and written, within these: the upper end is MuJoCo's own, below the lower one nothing is solid."""


def _yielding(impedance: float) -> float:
    return (1.0 - impedance) / impedance


_USUAL_YIELDING = _yielding(0.5 * sum(USUAL_IMPEDANCE))


def _softness(impedance: float) -> float:
    return DEFAULT_SOFTNESS * (_yielding(impedance) / _USUAL_YIELDING)


HARDEST, SOFTEST = _softness(HIGHEST_IMPEDANCE), _softness(LOWEST_IMPEDANCE)
"""Softness that MuJoCo's numbers can say."""


def recovery_time(solref: Sequence[float]) -> float | None:
    """Time [s] in which a penetration is undone: the time constant, or half of damping by stiffness if both are given.

    A critically damped spring with the time constant T has the damping 2/T and the stiffness 1/T². None for numbers
    that say neither.
    """
    first, second = map(float, solref)
    if first > 0.0 and second > 0.0:
        return first
    return 0.5 * second / first if first < 0.0 and second <= 0.0 else None


def solref(time: float, old: Sequence[float] = (DEFAULT_RECOVERY_TIME, 1.0)) -> tuple[float, float] | None:
    """Numbers for a recovery time [s] in the form of the old ones; None for a time that they cannot say."""
    stiffness, damping_ratio = map(float, old)
    if stiffness < 0.0 and damping_ratio <= 0.0:
        return (stiffness, 2.0 * time * stiffness) if time >= 0.0 else None
    return (time, damping_ratio if damping_ratio > 0.0 else 1.0) if time > 0.0 else None


def softness(solimp: Sequence[float]) -> float:
    """Softness at the mean of the impedances at the surface and deep inside."""
    mean = 0.5 * (float(solimp[0]) + float(solimp[1]))
    return _softness(float(np.clip(mean, LOWEST_IMPEDANCE, HIGHEST_IMPEDANCE)))


def solimp(value: float, old: Sequence[float] = USUAL_IMPEDANCE) -> tuple[float, float] | None:
    """First two numbers for a softness, as far from each other as the old ones if possible; None if there are none."""
    if not HARDEST <= value <= SOFTEST:
        return None
    impedance = 1.0 / (1.0 + _USUAL_YIELDING * value / DEFAULT_SOFTNESS)
    impedance = float(np.clip(impedance, LOWEST_IMPEDANCE, HIGHEST_IMPEDANCE))
    room = HIGHEST_IMPEDANCE - impedance
    half = float(np.clip(0.5 * (float(old[1]) - float(old[0])), -room, room))
    return impedance - half, impedance + half

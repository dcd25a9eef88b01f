"""Conversion of MuJoCo's contact parameters `solref` and `solimp` to recovery time and softness, and back.

MuJoCo defines a contact by a spring-damper (`solref`) and an impedance d (`solimp`). Here a contact has a recovery time
and a softness, its compliance relative to the apparent inverse mass. In MuJoCo that ratio is (1 − d)/d; the softness
is proportional to it, with a factor that maps MuJoCo's default impedance to the default softness.
"""

from collections.abc import Sequence

import numpy as np

from hybridsim.model.geometry import DEFAULT_RECOVERY_TIME, DEFAULT_SOFTNESS

DEFAULT_IMPEDANCE = (0.9, 0.95)
"""First two values of MuJoCo's default `solimp`, which correspond to the default softness."""
MIN_IMPEDANCE, MAX_IMPEDANCE = 0.5, 0.9999
"""Range of impedances that are converted: the upper bound is MuJoCo's; below the lower one contacts are not rigid."""


def _relative_compliance(impedance: float) -> float:
    return (1.0 - impedance) / impedance


_DEFAULT_COMPLIANCE = _relative_compliance(0.5 * sum(DEFAULT_IMPEDANCE))


def _softness(impedance: float) -> float:
    return DEFAULT_SOFTNESS * (_relative_compliance(impedance) / _DEFAULT_COMPLIANCE)


MIN_SOFTNESS, MAX_SOFTNESS = _softness(MAX_IMPEDANCE), _softness(MIN_IMPEDANCE)
"""Range of softness that MuJoCo's parameters can represent."""


def recovery_time(solref: Sequence[float]) -> float | None:
    """Recovery time [s]: the time constant, or half the ratio of damping to stiffness in the direct format.

    A critically damped spring with time constant T has damping 2/T and stiffness 1/T². None for invalid values.
    """
    first, second = map(float, solref)
    if first > 0.0 and second > 0.0:
        return first
    return 0.5 * second / first if first < 0.0 and second <= 0.0 else None


def solref(time: float, old: Sequence[float] = (DEFAULT_RECOVERY_TIME, 1.0)) -> tuple[float, float] | None:
    """`solref` for a recovery time [s], in the format of the old one; None if the format cannot represent it."""
    first, second = map(float, old)
    if first < 0.0 and second <= 0.0:
        # direct format: minus the stiffness and minus the damping
        return (first, 2.0 * time * first) if time >= 0.0 else None
    # standard format: time constant and damping ratio
    return (time, second if second > 0.0 else 1.0) if time > 0.0 else None


def softness(solimp: Sequence[float]) -> float:
    """Softness at the mean of `dmin` and `dmax`."""
    mean = 0.5 * (float(solimp[0]) + float(solimp[1]))
    return _softness(float(np.clip(mean, MIN_IMPEDANCE, MAX_IMPEDANCE)))


def solimp(value: float, old: Sequence[float] = DEFAULT_IMPEDANCE) -> tuple[float, float] | None:
    """`dmin` and `dmax` for a softness, keeping the old dmax − dmin where the range allows; None if out of range."""
    if not MIN_SOFTNESS <= value <= MAX_SOFTNESS:
        return None
    impedance = 1.0 / (1.0 + _DEFAULT_COMPLIANCE * value / DEFAULT_SOFTNESS)
    impedance = float(np.clip(impedance, MIN_IMPEDANCE, MAX_IMPEDANCE))
    margin = MAX_IMPEDANCE - impedance
    half_range = float(np.clip(0.5 * (float(old[1]) - float(old[0])), -margin, margin))
    return impedance - half_range, impedance + half_range

"""Units of recordings and their conversion to SI."""

import math
from dataclasses import dataclass

from hybridsim.core.errors import Problem
from hybridsim.core.messages import name_list, spelling_suggestion

STANDARD_GRAVITY = 9.80665
"""Standard acceleration of gravity [m/s²]."""
INCH = 0.0254


@dataclass(frozen=True)
class Unit:
    """A unit of measurement."""

    quantity: str
    """Quantity, such as `angle`; empty for dimensionless values."""
    factor: float = 1.0
    """Value of the unit in SI units."""
    period: float = 0.0
    """One revolution in this unit; zero unless the quantity is an angle."""


UNITS = {
    "": Unit(""),
    "1": Unit(""),
    "%": Unit("", 0.01),
    "px": Unit("pixels"),
    "rad": Unit("angle", 1.0, 2 * math.pi),
    "mrad": Unit("angle", 1e-3, 2000 * math.pi),
    "deg": Unit("angle", math.pi / 180, 360.0),
    "rev": Unit("angle", 2 * math.pi, 1.0),
    "rad/s": Unit("angular velocity"),
    "deg/s": Unit("angular velocity", math.pi / 180),
    "rev/s": Unit("angular velocity", 2 * math.pi),
    "rpm": Unit("angular velocity", math.pi / 30),
    "rad/s^2": Unit("angular acceleration"),
    "deg/s^2": Unit("angular acceleration", math.pi / 180),
    "m": Unit("length"),
    "cm": Unit("length", 1e-2),
    "mm": Unit("length", 1e-3),
    "um": Unit("length", 1e-6),
    "inch": Unit("length", INCH),
    "m/s": Unit("velocity"),
    "cm/s": Unit("velocity", 1e-2),
    "mm/s": Unit("velocity", 1e-3),
    "km/h": Unit("velocity", 1 / 3.6),
    "m/s^2": Unit("acceleration"),
    "g": Unit("acceleration", STANDARD_GRAVITY),
    "s": Unit("time"),
    "ms": Unit("time", 1e-3),
    "us": Unit("time", 1e-6),
    "ns": Unit("time", 1e-9),
    "min": Unit("time", 60.0),
    "N": Unit("force"),
    "mN": Unit("force", 1e-3),
    "kN": Unit("force", 1e3),
    "N*m": Unit("torque"),
    "Nm": Unit("torque"),
    "mNm": Unit("torque", 1e-3),
    "kNm": Unit("torque", 1e3),
    "A": Unit("current"),
    "mA": Unit("current", 1e-3),
    "V": Unit("voltage"),
    "mV": Unit("voltage", 1e-3),
}
"""Units by name. The empty name stands for SI units."""


NAMES_OF_UNITS = {
    **dict.fromkeys(("degree", "degrees", "°"), "deg"),
    **dict.fromkeys(("radian", "radians"), "rad"),
    **dict.fromkeys(("metre", "metres", "meter", "meters"), "m"),
    **dict.fromkeys(("second", "seconds", "sec"), "s"),
    **dict.fromkeys(("millisecond", "milliseconds", "msec"), "ms"),
    **dict.fromkeys(("newton", "newtons"), "N"),
}
"""Units by other names, for suggestions."""


def find_unit(name: str, element: str, quantity: str = "") -> Unit | Problem:
    """Unit by name, or the problem.

    Args:
        name: name of the unit.
        element: name of the channel or option with this unit; for messages.
        quantity: required quantity, such as `time`; empty for any.
    """
    if name not in UNITS:
        known = f"units are {', '.join(filter(None, UNITS))}; for others use the channel's scale"
        other = NAMES_OF_UNITS.get(name.lower())
        hint = f"did you mean {other!r}?" if other else spelling_suggestion(name, UNITS)
        fix = " ".join(filter(None, [hint, known]))
        return Problem(f"unit {name!r} of {element!r} is unknown", fix, code="data.unit", element=element)
    if quantity and UNITS[name].quantity != quantity:
        return Problem(
            f"unit {name!r} of {element!r} is not a unit of {quantity}",
            f"choose one of {name_list(unit for unit, entry in UNITS.items() if entry.quantity == quantity)}",
            code="data.unit",
            element=element,
        )
    return UNITS[name]

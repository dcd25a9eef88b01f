"""C literals."""

import math
import re


def literal(value: float | int | bool) -> str:
    """C literal of a constant, exact."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return f"UINT64_C(0x{value % 2**64:x})"
    if math.isnan(value):
        return "(double)NAN"
    if math.isinf(value):
        return "(double)INFINITY" if value > 0.0 else "(-(double)INFINITY)"
    text = repr(value) if value.is_integer() and abs(value) < 1e6 else re.sub(r"\.?0*p", "p", value.hex())
    return f"({text})" if text.startswith("-") else text

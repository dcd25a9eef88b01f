"""Values as TOML text."""

import json
import math
from collections.abc import Mapping
from typing import Any


def quote(text: str) -> str:
    """A text as a TOML string in double quotes."""
    # JSON escapes the same characters as TOML, except DEL
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def toml_value(value: Any) -> str:
    """A value as TOML."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return quote(value)
        case float() if math.isinf(value):
            return "inf" if value > 0.0 else "-inf"
        case int() | float():
            return repr(value)
        case Mapping():
            return "{ " + ", ".join(f"{quote(str(key))} = {toml_value(entry)}" for key, entry in value.items()) + " }"
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
    raise TypeError(f"TOML has no values of type {type(value).__name__}")

"""Parsing of numeric attributes of XML elements.

All errors of a file are reported in one pass: the reader records each problem with its line and fix and continues with
a placeholder value.
"""

import re

import numpy as np

from hybridsim.core.errors import Problem, Severity
from hybridsim.io.xml import Element

MAX_NUMBER = 1e30
"""Upper bound on the magnitude of a finite value; products of several larger ones could overflow."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf(inity)?)", re.IGNORECASE | re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)


class Reader:
    """Reads numeric attributes; collects problems instead of raising."""

    def __init__(self, problems: list[Problem] | None = None):
        self.problems: list[Problem] = [] if problems is None else problems

    def report(
        self, element: Element, code: str, message: str, fix: str = "", severity: Severity = Severity.ERROR
    ) -> None:
        """Record a problem at an element."""
        named = element.nearest_named_element
        name = named.get("name") if named is not None else ""
        self.problems.append(Problem(message, fix, element.file, element.line, severity, code, name))

    def warn(self, element: Element, code: str, message: str, fix: str = "") -> None:
        """Record a warning at an element."""
        self.report(element, code, message, fix, Severity.WARNING)

    def required_text(self, element: Element, attribute: str) -> str:
        """Text of a required attribute; reports an error and returns an empty string if it is absent or empty."""
        text = element.get(attribute)
        if not text:
            state = "empty" if attribute in element.attributes else "missing"
            self.report(
                element,
                "attribute.missing",
                f"{state} attribute {attribute!r} of {element.title}",
                f'add it: <{element.tag} {attribute}="..." .../>',
            )
        return text

    def number(
        self, element: Element | None, attribute: str, default: float | None = None, *, allow_infinite: bool = False
    ) -> float:
        """Scalar value of an attribute; the default if the attribute is absent or invalid.

        Args:
            element: the element; None if it is absent.
            attribute: name of the attribute.
            default: value of an absent attribute; None makes the attribute required, with 0 as a placeholder.
            allow_infinite: whether `inf` is a valid value.
        """
        values = self._parse_floats(element, attribute, 1, default is None, allow_infinite)
        return values[0] if values else (default if default is not None else 0.0)

    def vector(self, element: Element | None, attribute: str, size: int, default=None) -> np.ndarray:
        """Vector value of an attribute; the default if the attribute is absent or invalid.

        Args:
            element: the element; None if it is absent.
            attribute: name of the attribute.
            size: required length.
            default: value of an absent attribute; None makes the attribute required, with zeros as a placeholder.
        """
        values = self._parse_floats(element, attribute, size, default is None, False)
        if values is None:
            return np.zeros(size) if default is None else np.array(default, dtype=float)
        return np.array(values)

    def _parse_floats(
        self, element: Element | None, attribute: str, size: int, required: bool, allow_infinite: bool
    ) -> list[float] | None:
        if element is None:
            return None
        if attribute not in element.attributes:
            if required:
                self.required_text(element, attribute)
            return None
        text = element.attributes[attribute]
        words = text.split()
        where = f"attribute {attribute!r} of {element.title} is {_abbreviate(text)}"
        if any(_NUMBER.fullmatch(word) is None for word in words):
            self.report(element, "number.invalid", f"{where}; expected {_expected_text(size)}", _number_fix(text, size))
            return None
        if len(words) != size:
            actual = f"{len(words)} values" if words else "no value"
            self.report(
                element,
                "number.count",
                f"{where}: {actual}; expected {_expected_text(size)}",
                f"write {_expected_text(size)}" + (", separated by spaces" if size > 1 else ""),
            )
            return None
        values = [float(word) for word in words]
        if any(np.isnan(v) or (abs(v) > MAX_NUMBER and not allow_infinite) for v in values):
            self.report(
                element,
                "number.nonfinite",
                f"{where}, but must be finite and at most {MAX_NUMBER:g} in magnitude",
                "write a finite value in SI units",
            )
            return None
        return values


def _expected_text(size: int) -> str:
    """What an attribute with `size` values must contain, for messages."""
    return "one numeric value" if size == 1 else f"{size} numeric values"


def _number_fix(text: str, size: int) -> str:
    stripped = text.strip()
    if size == 1 and _DECIMAL_COMMA.fullmatch(stripped):
        return f"write {stripped.replace(',', '.')} with a decimal point"
    if "," in text:
        return "use decimal points, and spaces between values"
    prefix = _NUMBER.match(stripped)
    if size == 1 and prefix and prefix.group():
        return f"write only the value, {prefix.group()}, in SI units"
    return f"write {_expected_text(size)} in SI units, such as {' '.join(['0.5'] * min(size, 3))}"


def _abbreviate(text: str, limit: int = 60) -> str:
    return repr(text if len(text) <= limit else text[:limit] + "…")

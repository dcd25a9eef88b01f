"""Numbers in the attributes of XML elements, and what is wrong with them.

Everything wrong in a file is to be told at once, so the reader notes a problem, with its line and how to mend it,
and goes on with a stand-in value.
"""

import re

import numpy as np

from hybridsim.core.errors import Problem, Severity
from hybridsim.io.xml import Element

MAX_NUMBER = 1e30
"""Larger numbers than this mean nothing in a model, and their products overflow."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf(inity)?)", re.IGNORECASE | re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)


class Reader:
    """Reads numbers out of attributes and collects what is wrong instead of raising."""

    def __init__(self, problems: list[Problem] | None = None):
        self.problems: list[Problem] = [] if problems is None else problems

    def report(
        self, element: Element, code: str, message: str, fix: str = "", severity: Severity = Severity.ERROR
    ) -> None:
        """Note a problem at an element."""
        named = element.named
        name = named.get("name") if named is not None else ""
        self.problems.append(Problem(message, fix, element.file, element.line, severity, code, name))

    def warn(self, element: Element, code: str, message: str, fix: str = "") -> None:
        """Note something doubtful at an element."""
        self.report(element, code, message, fix, Severity.WARNING)

    def required(self, element: Element, attribute: str) -> str:
        """Text of an attribute that must be there; empty, with a problem, if it is not."""
        text = element.get(attribute)
        if not text:
            what = "an empty" if attribute in element.attributes else "no"
            self.report(
                element,
                "attribute.missing",
                f"{element.title} has {what} attribute {attribute!r}",
                f'write <{element.tag} {attribute}="..." .../>',
            )
        return text

    def number(
        self, element: Element | None, attribute: str, default: float | None = None, *, infinite: bool = False
    ) -> float:
        """A number; the default if the attribute is absent or cannot be read.

        Args:
            element: where to look; None stands for an absent element.
            attribute: name of the attribute.
            default: value of an absent attribute; None makes it required (and 0 stands in for it).
            infinite: whether `inf` is a legal value.
        """
        values = self._numbers(element, attribute, 1, default is None, infinite)
        return values[0] if values else (default if default is not None else 0.0)

    def vector(self, element: Element | None, attribute: str, size: int, default=None) -> np.ndarray:
        """A vector of `size` numbers; the default if the attribute is absent or cannot be read.

        Args:
            element: where to look; None stands for an absent element.
            attribute: name of the attribute.
            size: how many numbers there must be.
            default: value of an absent attribute; None makes it required (and zeros stand in for it).
        """
        values = self._numbers(element, attribute, size, default is None, False)
        if values is None:
            return np.zeros(size) if default is None else np.array(default, dtype=float)
        return np.array(values)

    def _numbers(
        self, element: Element | None, attribute: str, size: int, required: bool, infinite: bool
    ) -> list[float] | None:
        if element is None:
            return None
        if attribute not in element.attributes:
            if required:
                self.required(element, attribute)
            return None
        text = element.attributes[attribute]
        words = text.split()
        where = f"attribute {attribute!r} of {element.title} is {_shortened(text)}"
        if any(_NUMBER.fullmatch(word) is None for word in words):
            self.report(element, "number.invalid", f"{where}, which is not {_count(size)}", _number_fix(text, size))
            return None
        if len(words) != size:
            found = f"which has {len(words)}" if words else "which is empty"
            self.report(
                element,
                "number.count",
                f"{where}, {found}, not {_count(size)}",
                f"write {_count(size)}, separated by blanks",
            )
            return None
        values = [float(word) for word in words]
        if any(np.isnan(v) or (abs(v) > MAX_NUMBER and not infinite) for v in values):
            self.report(
                element,
                "number.nonfinite",
                f"{where}, which is not a finite, sensible number",
                "write a finite number in SI units",
            )
            return None
        return values


def _count(size: int) -> str:
    return "a number" if size == 1 else f"{size} numbers"


def _number_fix(text: str, size: int) -> str:
    stripped = text.strip()
    if size == 1 and _DECIMAL_COMMA.fullmatch(stripped):
        return f"write {stripped.replace(',', '.')} with a decimal point"
    if "," in text:
        return "use a decimal point inside numbers and blanks between them"
    begins = _NUMBER.match(stripped)
    if size == 1 and begins and begins.group():
        return f"write only the number, {begins.group()}, in SI units"
    return f"write {_count(size)} in SI units, such as {' '.join(['0.5'] * min(size, 3))}"


def _shortened(text: str, limit: int = 60) -> str:
    return repr(text if len(text) <= limit else text[:limit] + "…")

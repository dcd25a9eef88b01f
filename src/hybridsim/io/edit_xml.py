"""Editing of single values in the text of a model file, preserving everything else byte for byte.

Edits refer to the elements of a parsed source and are applied together. Comments, unknown elements, whitespace, order
and quoting of attributes, line endings and encoding are preserved.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from hybridsim.io.xml import Element

Value = float | tuple[float, ...] | None

_ATTRIBUTE = re.compile(rb"""\s+([^\s=]+)\s*=\s*("[^"]*"|'[^']*')""")
_TAG_NAME = re.compile(rb"<[^\s/>]+")


@dataclass(frozen=True)
class Change:
    """A change made by an export: one row of its table."""

    element: str
    """Tag and name, such as `link 'trunk'`."""
    line: int
    """Line of the element in the original file; 0 where there is none."""
    parameter: str
    """Name of the parameter, with its unit, such as `mass [kg]`."""
    before: Value
    """Value in the original file; None if the file did not specify it."""
    after: Value
    """Written value; None if it was removed."""
    note: str = ""
    """Reason why the change was not written; empty if it was."""

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        return f"{self.element}: {self.parameter} {_format(self.before)} → {_format(self.after)}{note}"


class Changes(tuple[Change, ...]):
    """Changes made by an export: an immutable sequence, printed as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        if not self:
            return "no changes"
        titles = ("element", "line", "parameter", "before", "after", "note")
        rows = [(c.element, str(c.line or ""), c.parameter, _format(c.before), _format(c.after), c.note) for c in self]
        widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (titles, *rows)
        ]
        return "\n".join(line.rstrip() for line in lines)


@dataclass
class _ElementEdits:
    element: Element
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[str] = field(default_factory=list)


class Edits:
    """Edits of one source, applied together."""

    def __init__(self, source: bytes):
        self.source = source
        self._edits: dict[int, _ElementEdits] = {}
        self._newline = "\r\n" if b"\r\n" in source else "\n"

    def __bool__(self) -> bool:
        return bool(self._edits)

    def set_attribute(self, element: Element, name: str, value: str) -> None:
        """Set the value of an attribute; a new attribute is appended to the existing ones."""
        self._edits_of(element).attributes[name] = value

    def remove_attribute(self, element: Element, name: str) -> None:
        """Remove an attribute with its leading whitespace."""
        self._edits_of(element).attributes[name] = None

    def append_child(self, element: Element, xml: str) -> None:
        """Append a child element, indented like its siblings; `xml` may have several lines."""
        self._edits_of(element).children.append(xml)

    def apply(self) -> bytes:
        """Source with all edits applied."""
        replacements: list[tuple[int, int, bytes]] = []
        for edit in self._edits.values():
            replacements += self._attribute_replacements(edit)
            if edit.children:
                replacements.append(self._child_insertion(edit))
        result, position = [], 0
        for start, end, text in sorted(replacements, key=lambda replacement: replacement[:2]):
            result += [self.source[position:start], text]
            position = end
        return b"".join([*result, self.source[position:]])

    def _edits_of(self, element: Element) -> _ElementEdits:
        return self._edits.setdefault(element.start, _ElementEdits(element))

    def _attribute_replacements(self, edit: _ElementEdits) -> Iterable[tuple[int, int, bytes]]:
        element = edit.element
        name = _TAG_NAME.match(self.source, element.start)
        assert name is not None
        position, matches = name.end(), {}
        while match := _ATTRIBUTE.match(self.source, position, element.start_tag_end):
            matches[match.group(1)] = match
            position = match.end()
        added = b""
        for attribute, value in edit.attributes.items():
            match = matches.get(attribute.encode())
            if match is None:
                if value is not None:
                    added += _encode(f' {attribute}="') + _escape(value, b'"') + b'"'
            elif value is None:
                yield match.start(), match.end(), b""
            else:
                quote = match.group(2)[:1]
                yield match.start(2) + 1, match.end(2) - 1, _escape(value, quote)
        if added:
            yield position, position, added

    def _child_insertion(self, edit: _ElementEdits) -> tuple[int, int, bytes]:
        element = edit.element
        outer = self._indentation(element)
        inner = self._indentation(element.children[-1]) if element.children else None
        if inner is None:
            inner = (outer or "") + self._indentation_step(element, outer)
        lines = [line for xml in edit.children for line in xml.splitlines()]
        text = "".join(self._newline + inner + line for line in lines)
        closing = self._newline + (outer or "")
        if element.children:
            at = element.children[-1].end
            return at, at, _encode(text)
        if element.end == element.start_tag_end:  # <a/> becomes <a>...</a>
            tag = f"{closing}</{element.tag}>"
            slash = len(self.source[element.start : element.start_tag_end - 2].rstrip()) + element.start
            return slash, element.start_tag_end, _encode(">" + text + tag)
        content = self.source[element.start_tag_end : element.end]
        return (
            element.start_tag_end,
            element.start_tag_end,
            _encode(text + (closing if content.startswith(b"</") else "")),
        )

    def _indentation(self, element: Element) -> str | None:
        """Whitespace before an element that starts its line; None if other text precedes it."""
        line = self.source[self.source.rfind(b"\n", 0, element.start) + 1 : element.start]
        return line.decode("ascii") if line.strip(b" \t") == b"" else None

    def _indentation_step(self, element: Element, indentation: str | None) -> str:
        outer = self._indentation(element.parent) if element.parent else None
        if indentation is not None and outer is not None and indentation.startswith(outer) and indentation != outer:
            return indentation[len(outer) :]
        return "  "


def number_text(value: float) -> str:
    """Shortest decimal representation that reads back exactly."""
    return repr(float(value))


def numbers_text(values: Iterable[float]) -> str:
    """Space-separated numbers, each in the shortest representation that reads back exactly."""
    return " ".join(number_text(value) for value in values)


def _escape(value: str, quote: bytes) -> bytes:
    text = value.replace("&", "&amp;").replace("<", "&lt;")
    text = text.replace('"', "&quot;") if quote == b'"' else text.replace("'", "&apos;")
    return _encode(text)


def _encode(text: str) -> bytes:
    # ASCII with character references is valid in every encoding that the parser accepts
    return text.encode("ascii", "xmlcharrefreplace")


def _format(value: Value) -> str:
    if value is None:
        return "–"
    return f"{value:g}" if isinstance(value, int | float) else "(" + ", ".join(f"{v:g}" for v in value) + ")"

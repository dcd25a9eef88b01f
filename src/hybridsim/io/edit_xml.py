"""Changing single values in a model file's text, everything else byte for byte as the user wrote it.

Edits are collected against the elements of one parsed source and applied at once. What an edit does not
name is not touched: comments, unknown tags, blanks, the order and quotes of attributes, line ends, encoding.
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
    """One row of the table of what an export changed."""

    element: str
    """Tag and name, such as `link 'trunk'`."""
    line: int
    """Line of the element in the original file; 0 where there is none."""
    parameter: str
    """Name of the parameter, with its unit, such as `mass [kg]`."""
    before: Value
    """Value in the original file; None where the file did not say."""
    after: Value
    """Value that was written; None for a removed one."""
    note: str = ""
    """Why the change is not in the written file, if it is not."""

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        return f"{self.element}: {self.parameter} {_shown(self.before)} → {_shown(self.after)}{note}"


class Changes(tuple[Change, ...]):
    """What an export changed: an immutable sequence, printed as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        if not self:
            return "nothing changed"
        titles = ("element", "line", "parameter", "before", "after", "note")
        rows = [(c.element, str(c.line or ""), c.parameter, _shown(c.before), _shown(c.after), c.note) for c in self]
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
    """Edits of one source, to be applied together."""

    def __init__(self, source: bytes):
        self.source = source
        self._edits: dict[int, _ElementEdits] = {}
        self._newline = "\r\n" if b"\r\n" in source else "\n"

    def __bool__(self) -> bool:
        return bool(self._edits)

    def set_attribute(self, element: Element, name: str, value: str) -> None:
        """Give an attribute a new value; it is added behind the others if it is not there yet."""
        self._of(element).attributes[name] = value

    def remove_attribute(self, element: Element, name: str) -> None:
        """Take an attribute out, with the blank before it."""
        self._of(element).attributes[name] = None

    def insert_child(self, element: Element, xml: str) -> None:
        """Add a child behind the others, indented like them; `xml` may have several lines."""
        self._of(element).children.append(xml)

    def apply(self) -> bytes:
        """The source with all edits made."""
        pieces: list[tuple[int, int, bytes]] = []
        for edit in self._edits.values():
            pieces += self._attribute_pieces(edit)
            if edit.children:
                pieces.append(self._children_piece(edit))
        result, position = [], 0
        for start, end, text in sorted(pieces, key=lambda piece: piece[:2]):
            result += [self.source[position:start], text]
            position = end
        return b"".join([*result, self.source[position:]])

    def _of(self, element: Element) -> _ElementEdits:
        return self._edits.setdefault(element.start, _ElementEdits(element))

    def _attribute_pieces(self, edit: _ElementEdits) -> Iterable[tuple[int, int, bytes]]:
        element = edit.element
        name = _TAG_NAME.match(self.source, element.start)
        assert name is not None
        position, found = name.end(), {}
        while match := _ATTRIBUTE.match(self.source, position, element.open_end):
            found[match.group(1)] = match
            position = match.end()
        added = b""
        for attribute, value in edit.attributes.items():
            match = found.get(attribute.encode())
            if match is None:
                if value is not None:
                    added += _encoded(f' {attribute}="') + _escaped(value, b'"') + b'"'
            elif value is None:
                yield match.start(), match.end(), b""
            else:
                quote = match.group(2)[:1]
                yield match.start(2) + 1, match.end(2) - 1, _escaped(value, quote)
        if added:
            yield position, position, added

    def _children_piece(self, edit: _ElementEdits) -> tuple[int, int, bytes]:
        element = edit.element
        own = self._indentation(element)
        inner = self._indentation(element.children[-1]) if element.children else None
        if inner is None:
            inner = (own or "") + self._indentation_step(element, own)
        lines = [line for xml in edit.children for line in xml.splitlines()]
        text = "".join(self._newline + inner + line for line in lines)
        closing = self._newline + (own or "")
        if element.children:
            at = element.children[-1].end
            return at, at, _encoded(text)
        if element.end == element.open_end:  # <a/> becomes <a>...</a>
            tag = f"{closing}</{element.tag}>"
            slash = len(self.source[element.start : element.open_end - 2].rstrip()) + element.start
            return slash, element.open_end, _encoded(">" + text + tag)
        content = self.source[element.open_end : element.end]
        return (
            element.open_end,
            element.open_end,
            _encoded(text + (closing if content.startswith(b"</") else "")),
        )

    def _indentation(self, element: Element) -> str | None:
        """Blanks before an element that begins its line; None if something else stands before it."""
        line = self.source[self.source.rfind(b"\n", 0, element.start) + 1 : element.start]
        return line.decode("ascii") if line.strip(b" \t") == b"" else None

    def _indentation_step(self, element: Element, own: str | None) -> str:
        outer = self._indentation(element.parent) if element.parent else None
        if own is not None and outer is not None and own.startswith(outer) and own != outer:
            return own[len(outer) :]
        return "  "


def number_text(value: float) -> str:
    """Shortest text that reads back as exactly this number."""
    return repr(float(value))


def numbers_text(values: Iterable[float]) -> str:
    """Numbers separated by blanks, each of which reads back exactly."""
    return " ".join(number_text(value) for value in values)


def _escaped(value: str, quote: bytes) -> bytes:
    text = value.replace("&", "&amp;").replace("<", "&lt;")
    text = text.replace('"', "&quot;") if quote == b'"' else text.replace("'", "&apos;")
    return _encoded(text)


def _encoded(text: str) -> bytes:
    # plain ASCII with character references is right in every encoding that the reader accepts
    return text.encode("ascii", "xmlcharrefreplace")


def _shown(value: Value) -> str:
    if value is None:
        return "–"
    return f"{value:g}" if isinstance(value, int | float) else "(" + ", ".join(f"{v:g}" for v in value) + ")"

"""A small hardened XML reader that remembers where everything stood.

Model files come from strangers. The reader refuses document type declarations (and with them every entity),
deep nesting and huge files, and reports each failure with its line. Elements carry byte offsets into the
source, so that `io.edit` can change one number and leave the rest of the file alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from hybridsim.core.errors import ModelError, Problem, Severity

MAX_BYTES = 50_000_000
MAX_DEPTH = 200
MAX_TAGS = 500_000
"""Elements of one file, as it is written."""
MAX_TEXT = 100
"""Characters of text that an element remembers; numbers, if anything, are written there."""

_BLANK = b" \t\r\n"
_COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ")
"""How files of gzip, zip, bzip2 and xz begin."""
_START_TAG = re.compile(rb"""<(?:[^"'>]++|"[^"]*+"|'[^']*+')*+>""")


@dataclass(eq=False, slots=True, repr=False)
class Element:
    """An XML element and its place in the source."""

    tag: str
    attributes: dict[str, str]
    line: int
    """Line of the start tag, counted from 1."""
    file: str
    start: int
    """Byte offset of the start tag's `<`."""
    open_end: int = 0
    """Byte offset just past the start tag's `>`."""
    end: int = 0
    """Byte offset just past the whole element."""
    parent: "Element | None" = None
    children: list["Element"] = field(default_factory=list)
    text: str = ""
    """Beginning of the text between the tags, without that of its children."""

    def child(self, tag: str) -> "Element | None":
        """First child with this tag, if there is one."""
        return next(self.all(tag), None)

    def all(self, tag: str) -> Iterator["Element"]:
        """Children with this tag, in file order."""
        return (child for child in self.children if child.tag == tag)

    def walk(self) -> Iterator["Element"]:
        """This element and everything below it, in file order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def get(self, attribute: str, default: str = "") -> str:
        """Text of an attribute, without surrounding blanks."""
        return self.attributes.get(attribute, default).strip()

    @property
    def title(self) -> str:
        """How messages call the element: tag and name, and for a nameless one also what it belongs to."""
        owner = self.named
        if owner is self:
            return f"<{self.tag}> {self.get('name')!r}"
        if owner is None or owner.parent is None:
            return f"<{self.tag}>"
        return f"<{self.tag}> of {owner.tag} {owner.get('name')!r}"

    @property
    def named(self) -> "Element | None":
        """This element if it has a name, else the nearest one around it that has."""
        owner: Element | None = self
        while owner is not None and "name" not in owner.attributes:
            owner = owner.parent
        return owner

    def __repr__(self) -> str:
        return f"Element({self.title}, {self.file}:{self.line})"


def read(path: str | Path) -> tuple[bytes, Element]:
    """Bytes and root element of a file.

    Raises:
        ModelError: the file cannot be read, is too large, or is not XML that the reader accepts.
    """
    file = str(path)
    if not file.strip():
        _refuse("file.missing", "the name of the model file is empty", "give the path of a URDF or MJCF file", file)
    try:
        if Path(path).is_dir():
            _refuse("file.directory", f"{file!r} is a folder, not a model file", "name the file inside it", file)
        with Path(path).open("rb") as stream:
            source = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        _refuse("file.missing", f"there is no file {file!r}", _nearby_models(Path(path)), file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        _refuse("file.unreadable", f"cannot read {file!r}: {reason}", "check the path and its permissions", file)
    return source, parse(source, file)


def parse(source: bytes, file: str = "") -> Element:
    """Root element of an XML text.

    Args:
        source: the bytes of the file.
        file: name that error messages give to it.

    Raises:
        ModelError: the text is not XML that the reader accepts.
    """
    if len(source) > MAX_BYTES:
        _refuse(
            "xml.size",
            f"the file is larger than {MAX_BYTES // 10**6} MB",
            "meshes belong in files of their own",
            file,
        )
    # C programs leave zero bytes at the end, and editors blank lines before the XML declaration
    begin = len(source) - len(source.lstrip(_BLANK))
    text = source.rstrip(_BLANK + b"\0")[begin:]
    if not text:
        _refuse("xml.empty", "the file is empty", "check that it was saved and copied completely", file)
    if text.startswith(_COMPRESSED):
        _refuse("file.compressed", "the file is compressed", "unpack it first", file)
    if b"\0" in text:
        _refuse("xml.encoding", "the file is binary, or text in UTF-16", "save it as UTF-8 text", file, 1)
    return _Parser(text, file, begin, source.count(b"\n", 0, begin)).root()


class _Parser:
    """One pass of expat over one text, which begins some bytes and lines into the file."""

    def __init__(self, source: bytes, file: str, bytes_before: int, lines_before: int):
        self.source, self.file = source, file
        self.bytes_before, self.lines_before = bytes_before, lines_before
        self.open: list[Element] = []
        self.first: Element | None = None
        self.count = 0
        self.expat = expat.ParserCreate()
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self.expat.CharacterDataHandler = self._text
        self.expat.buffer_text = True
        self.expat.StartDoctypeDeclHandler = self._doctype

    def root(self) -> Element:
        try:
            self.expat.Parse(self.source, True)
        except expat.ExpatError as error:
            self._not_well_formed(error)
        except (LookupError, ValueError) as error:
            _refuse("xml.encoding", f"cannot decode the file: {error}", "save it as UTF-8 text", self.file, 1)
        assert self.first is not None
        return self.first

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line, start = self.expat.CurrentLineNumber + self.lines_before, self.expat.CurrentByteIndex
        self.count += 1
        if len(self.open) >= MAX_DEPTH or self.count > MAX_TAGS:
            what = f"elements are nested more than {MAX_DEPTH} deep"
            if self.count > MAX_TAGS:
                what = f"the file has more than {MAX_TAGS} elements"
            _refuse("xml.size", what, "no robot needs this; the file is damaged or hostile", self.file, line)
        match = _START_TAG.match(self.source, start)
        start += self.bytes_before
        open_end = start + len(match.group() if match else b"")
        parent = self.open[-1] if self.open else None
        element = Element(tag, attributes, line, self.file, start, open_end, open_end, parent)
        if parent is None:
            self.first = element
        else:
            parent.children.append(element)
        self.open.append(element)

    def _text(self, text: str) -> None:
        element = self.open[-1]
        if len(element.text) < MAX_TEXT:
            element.text += text[:MAX_TEXT]

    def _end(self, tag: str) -> None:
        element = self.open.pop()
        if not self._is_empty(element):
            closing = self.source.find(b">", self.expat.CurrentByteIndex) + 1
            element.end = closing + self.bytes_before

    def _is_empty(self, element: Element) -> bool:
        end = element.open_end - self.bytes_before
        return self.source[end - 2 : end] == b"/>"

    def _doctype(self, *_) -> None:
        _refuse(
            "xml.doctype",
            "the file declares a document type, which can define entities",
            "remove the <!DOCTYPE ...> block and write values in place of entities",
            self.file,
            self.expat.CurrentLineNumber + self.lines_before,
        )

    def _not_well_formed(self, error: expat.ExpatError) -> NoReturn:
        what, fix = expat.ErrorString(error.code), "correct the XML at this line"
        line = error.lineno + self.lines_before
        if not self._is_decodable():
            _refuse("xml.encoding", "the file is not UTF-8 text", "save it as UTF-8", self.file, line)
        if self.open:
            last = self.open[-1]
            if "mismatched" in what:
                fix = f"<{last.tag}> of line {last.line} must be closed with </{last.tag}> first"
            elif "no element" in what or "unclosed" in what:
                fix = f"the file ends inside <{last.tag}> of line {last.line}; it may have been cut off"
        elif self.first is None:
            fix = "a model file is XML and starts with <robot ...> or <mujoco ...>"
        if "duplicate" in what:
            fix = "remove one of the two"
        if "undefined entity" in what:
            fix = "write &amp; for &; entities are not supported"
        if "declaration" in what:
            fix = "move <?xml ...?> to the very start of the file"
        _refuse("xml.syntax", f"this is not well-formed XML: {what}", fix, self.file, line)

    def _is_decodable(self) -> bool:
        if re.match(rb"""\s*<\?xml[^>]*encoding\s*=\s*["'](?!utf-?8)""", self.source, re.IGNORECASE):
            return True
        try:
            self.source.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True


def _nearby_models(path: Path) -> str:
    try:
        names = sorted(p.name for p in path.parent.iterdir() if p.suffix.lower() in (".urdf", ".xml", ".mjcf"))[:5]
    except OSError:
        return f"the folder {str(path.parent)!r} does not exist either"
    return f"the folder has {', '.join(names)}" if names else "check the path"


def _refuse(code: str, message: str, fix: str, file: str, line: int = 0) -> NoReturn:
    raise ModelError([Problem(message, fix, file, line, Severity.ERROR, code)])

"""A small hardened XML parser that records source locations.

Model files are untrusted input. The parser rejects document type declarations (and with them all entities), deep
nesting and huge files, and reports every error with its line. Elements carry byte offsets into the source, so that
`io.edit_xml` can change single values and preserve the rest of the file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from hybridsim.core.errors import ModelError, Problem, Severity
from hybridsim.core.files import read_bounded

MAX_BYTES = 50_000_000
MAX_DEPTH = 200
MAX_ELEMENTS = 500_000
"""Maximum number of elements of a file, before expansion of copies."""
MAX_TEXT = 100
"""Maximum number of characters of text content stored per element; only numeric text content is used."""

_BLANK = b" \t\r\n"
_COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ")
"""Magic numbers of gzip, zip, bzip2 and xz files."""
_START_TAG = re.compile(rb"""<(?:[^"'>]++|"[^"]*+"|'[^']*+')*+>""")


@dataclass(eq=False, slots=True, repr=False)
class Element:
    """An XML element and its source location."""

    tag: str
    attributes: dict[str, str]
    line: int
    """Line of the start tag, starting at 1."""
    file: str
    start: int
    """Byte offset of the start tag's `<`."""
    start_tag_end: int = 0
    """Byte offset just past the start tag's `>`."""
    end: int = 0
    """Byte offset just past the whole element."""
    parent: "Element | None" = None
    children: list["Element"] = field(default_factory=list)
    text: str = ""
    """Text content (at most `MAX_TEXT` characters), without that of the children."""

    def child(self, tag: str) -> "Element | None":
        """First child with this tag; None if there is none."""
        return next(self.children_with_tag(tag), None)

    def children_with_tag(self, tag: str) -> Iterator["Element"]:
        """Children with this tag, in file order."""
        return (child for child in self.children if child.tag == tag)

    def walk(self) -> Iterator["Element"]:
        """This element and all its descendants, in file order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def get(self, attribute: str, default: str = "") -> str:
        """Text of an attribute, without surrounding whitespace."""
        return self.attributes.get(attribute, default).strip()

    @property
    def title(self) -> str:
        """Name of the element in messages: tag and name; for an unnamed element, tag and nearest named ancestor."""
        owner = self.nearest_named_element
        if owner is self:
            return f"<{self.tag}> {self.get('name')!r}"
        if owner is None or owner.parent is None:
            return f"<{self.tag}>"
        return f"<{self.tag}> of {owner.tag} {owner.get('name')!r}"

    @property
    def nearest_named_element(self) -> "Element | None":
        """This element if it has a name, otherwise its nearest named ancestor."""
        owner: Element | None = self
        while owner is not None and "name" not in owner.attributes:
            owner = owner.parent
        return owner

    def __repr__(self) -> str:
        return f"Element({self.title}, {self.file}:{self.line})"


def read(path: str | Path) -> tuple[bytes, Element]:
    """Bytes and root element of a file.

    Raises:
        ModelError: the file cannot be read, is too large, or is not accepted by the parser.
    """
    file = str(path)
    if not file.strip():
        _reject("file.missing", "the path of the model file is empty", "pass the path of a URDF or MJCF file", file)
    try:
        if Path(path).is_dir():
            _reject("file.directory", f"{file!r} is a folder, not a model file", "pass the path of a file in it", file)
        source = read_bounded(path, MAX_BYTES)
    except FileNotFoundError:
        _reject("file.missing", f"file {file!r} does not exist", _missing_model_fix(Path(path)), file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        _reject("file.unreadable", f"cannot read {file!r}: {reason}", "check the path and its permissions", file)
    return source, parse(source, file)


def parse(source: bytes, file: str = "") -> Element:
    """Root element of an XML document.

    Args:
        source: content of the file.
        file: path of the file, for messages.

    Raises:
        ModelError: the document is not accepted by the parser.
    """
    if len(source) > MAX_BYTES:
        _reject(
            "xml.size",
            f"the file is larger than {MAX_BYTES // 10**6} MB",
            "move meshes and other assets into separate files",
            file,
        )
    # trailing zero bytes, as written by some C programs, and blank lines before the XML declaration are tolerated
    begin = len(source) - len(source.lstrip(_BLANK))
    text = source.rstrip(_BLANK + b"\0")[begin:]
    if not text:
        _reject("xml.empty", "the file is empty", "check that it was saved or copied completely", file)
    if text.startswith(_COMPRESSED):
        _reject("file.compressed", "the file is compressed", "decompress it first", file)
    if b"\0" in text:
        _reject("xml.encoding", "the file is binary or UTF-16 encoded", "save it as UTF-8 text", file, 1)
    return _Parser(text, file, begin, source.count(b"\n", 0, begin)).root()


class _Parser:
    """One pass of expat over a document that begins at a byte and line offset in the file."""

    def __init__(self, source: bytes, file: str, byte_offset: int, line_offset: int):
        self.source, self.file = source, file
        self.byte_offset, self.line_offset = byte_offset, line_offset
        self.open_elements: list[Element] = []
        self.root_element: Element | None = None
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
            self._reject_malformed(error)
        except (LookupError, ValueError) as error:
            _reject("xml.encoding", f"cannot decode the file: {error}", "save it as UTF-8 text", self.file, 1)
        assert self.root_element is not None
        return self.root_element

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line, start = self.expat.CurrentLineNumber + self.line_offset, self.expat.CurrentByteIndex
        self.count += 1
        if len(self.open_elements) >= MAX_DEPTH or self.count > MAX_ELEMENTS:
            message = f"elements are nested more than {MAX_DEPTH} levels deep"
            if self.count > MAX_ELEMENTS:
                message = f"the file has more than {MAX_ELEMENTS} elements"
            message += "; no robot model is this large, so the file is damaged or malicious"
            _reject("xml.size", message, "restore the file from a trusted source", self.file, line)
        match = _START_TAG.match(self.source, start)
        start += self.byte_offset
        start_tag_end = start + len(match.group() if match else b"")
        parent = self.open_elements[-1] if self.open_elements else None
        element = Element(tag, attributes, line, self.file, start, start_tag_end, start_tag_end, parent)
        if parent is None:
            self.root_element = element
        else:
            parent.children.append(element)
        self.open_elements.append(element)

    def _text(self, text: str) -> None:
        element = self.open_elements[-1]
        if len(element.text) < MAX_TEXT:
            element.text += text[:MAX_TEXT]

    def _end(self, tag: str) -> None:
        element = self.open_elements.pop()
        if not self._is_empty(element):
            closing = self.source.find(b">", self.expat.CurrentByteIndex) + 1
            element.end = closing + self.byte_offset

    def _is_empty(self, element: Element) -> bool:
        end = element.start_tag_end - self.byte_offset
        return self.source[end - 2 : end] == b"/>"

    def _doctype(self, *_) -> None:
        _reject(
            "xml.doctype",
            "the file has a document type declaration, which could define entities",
            "remove the <!DOCTYPE ...> block and replace entities with their values",
            self.file,
            self.expat.CurrentLineNumber + self.line_offset,
        )

    def _reject_malformed(self, error: expat.ExpatError) -> NoReturn:
        reason, fix = expat.ErrorString(error.code), "correct the XML at this line"
        message = f"malformed XML: {reason}"
        line = error.lineno + self.line_offset
        if not self._is_decodable():
            _reject("xml.encoding", "the file is not valid UTF-8", "save it as UTF-8", self.file, line)
        if self.open_elements:
            last = self.open_elements[-1]
            if "mismatched" in reason:
                fix = f"close <{last.tag}> of line {last.line} with </{last.tag}> first"
            elif "no element" in reason or "unclosed" in reason:
                message += f"; the file ends inside <{last.tag}> of line {last.line} and may be truncated"
                fix = f"restore the complete file, or close <{last.tag}>"
        elif self.root_element is None:
            fix = "pass a model file: XML that starts with <robot ...> or <mujoco ...>"
        if "duplicate" in reason:
            fix = "remove one of the two attributes"
        if "undefined entity" in reason:
            fix = "write &amp; instead of &; entities are not supported"
        if "declaration" in reason:
            fix = "move <?xml ...?> to the beginning of the file"
        _reject("xml.syntax", message, fix, self.file, line)

    def _is_decodable(self) -> bool:
        if re.match(rb"""\s*<\?xml[^>]*encoding\s*=\s*["'](?!utf-?8)""", self.source, re.IGNORECASE):
            return True
        try:
            self.source.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True


def _missing_model_fix(path: Path) -> str:
    try:
        names = sorted(p.name for p in path.parent.iterdir() if p.suffix.lower() in (".urdf", ".xml", ".mjcf"))[:5]
    except OSError:
        return f"the folder {str(path.parent)!r} does not exist; check the path"
    return f"the folder contains {', '.join(names)}" if names else "check the path"


def _reject(code: str, message: str, fix: str, file: str, line: int = 0) -> NoReturn:
    raise ModelError([Problem(message, fix, file, line, Severity.ERROR, code)])

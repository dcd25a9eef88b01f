"""An MJCF file with its includes and assets, made ready for MuJoCo without letting it touch the disk.

MuJoCo follows `<include>` and mesh paths wherever they lead. So the files are found here, inside the model's
folder, and MuJoCo gets one text and the assets in memory. In that text every line begins with exactly one
start tag: the line number in MuJoCo's messages, and in the `info` that MjSpec keeps, tells which element of
which file is meant.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from xml.sax.saxutils import quoteattr

from hybridsim.core.errors import ModelError, Problem
from hybridsim.io.mjcf.read_limits import Growth, check_numbers
from hybridsim.io.mjcf.read_node import Node
from hybridsim.io.paths import resolve_mesh
from hybridsim.io.xml import MAX_DEPTH, Element, parse, read

MAX_ASSET_BYTES = 200_000_000
"""Size of all files together that a model names."""
MAX_ATTACHED = 100
"""Attached models; each may attach others, so that their number could double with every file."""

_LOOK_ATTRIBUTES = ("texture", "material")
_PLUGINS = ("extension", "plugin")
_ASSET_TAGS = ("mesh", "hfield", "flexcomp", "model")
_LINE = re.compile(r"\bline\D{0,3}(\d+)")


@dataclass
class Document:
    """Everything that MuJoCo needs to know about a model."""

    file: str
    """Path of the main file, as the user gave it."""
    source: bytes
    """Bytes of the main file."""
    root: Node
    text: str = ""
    """The main model, one start tag per line."""
    lines: list[Node] = field(default_factory=list)
    """Node of every line, over the main model and attached ones."""
    assets: dict[str, bytes] = field(default_factory=dict)
    """Contents of asset files by the names that `text` gives them."""
    models: dict[str, bytes] = field(default_factory=dict)
    """Attached models by the names that `text` gives them."""
    mesh_paths: dict[str, Path] = field(default_factory=dict)
    """Real path of each asset in `assets`."""
    attached: list[Node] = field(default_factory=list)
    """Root elements of attached models."""
    is_complete: bool = True
    """Whether every included file could be spliced in."""
    problems: list[Problem] = field(default_factory=list)
    """What is wrong with the files; the model must not be compiled if there is an error."""

    def node(self, text: str) -> Node | None:
        """The node that a message of MuJoCo (`... line 12`) speaks of, if it names one."""
        named = _LINE.findall(text)
        line = int(named[-1]) if named else 0
        return self.lines[line - 1] if 0 < line <= len(self.lines) else None


def open_document(path: str | Path, allowed: Sequence[str | Path] = (), source: bytes | None = None) -> Document:
    """Read an MJCF file and all files that it names.

    Args:
        path: the main file.
        allowed: folders outside the model's own that included files and assets may lie in.
        source: bytes to use in place of the main file's, as if it held them.

    Returns:
        The document. What is wrong with the files that it names, and with its numbers, is among its problems.

    Raises:
        ModelError: the main file cannot be read as MJCF, or includes nest without end.
    """
    file = str(path)
    if source is None:
        source, root = read(path)
    else:
        root = parse(source, file)
    if foreign := _format_problem(root):
        raise ModelError([foreign])
    document = Document(file, source, Node(root))
    files = _Files(Path(path), allowed, document.problems, {})
    document.root = files.expanded(root, Path(path))
    document.text = _Writer(document, files, Path(path), Growth(document.problems)).written(document.root)
    document.is_complete = files.are_complete
    return document


def _format_problem(root: Element) -> Problem | None:
    if root.tag == "mujoco":
        return None
    message, fix = f"the root element is <{root.tag}>, not <mujoco>", "MJCF files start with <mujoco>"
    return Problem(message, fix, root.file, root.line, code="xml.format")


class _Files:
    """Finds included files and assets, and splices the former in."""

    def __init__(self, main: Path, allowed: Sequence[str | Path], problems: list[Problem], contents: dict[Path, bytes]):
        self.main, self.allowed, self.problems = main, allowed, problems
        self.contents = contents
        """What has been read, over the main model and attached ones."""
        self.included = {main.resolve()}
        self.are_complete = True

    def expanded(self, element: Element, file: Path, parent: Node | None = None, depth: int = 0) -> Node:
        """The element with every `<include>` below it replaced by what the file holds."""
        node = Node(element, parent)
        self._check_depth(node, depth)
        if element.tag in _PLUGINS and not any(above.tag in _PLUGINS for above in node.ancestors()):
            fix = "remove it; plugins run code of their own, which a model file may not ask for"
            self.problems.append(node.problem("mjcf.plugin", f"{node.title} asks for a plugin", fix))
        check_numbers(element, self.problems)
        for child in element.children:
            if child.tag == "include":
                node.children += self._included(Node(child, node), file, depth)
            else:
                node.children.append(self.expanded(child, file, node, depth + 1))
        return node

    def _included(self, node: Node, file: Path, depth: int) -> list[Node]:
        name = node.get("file")
        self._check_depth(node, depth)
        # like MuJoCo: first beside the main file, then beside the file that includes
        found = resolve_mesh(name, self.main, allowed=self.allowed)
        if isinstance(found, Problem) and file.parent != self.main.parent:
            beside = resolve_mesh(name, file, allowed=[self.main.parent, *self.allowed])
            found = beside if isinstance(beside, Path) else found
        if isinstance(found, Problem):
            self._note(node, found)
            self.are_complete = False
            return []
        if found in self.included:
            self.problems.append(
                node.problem("mjcf.include", f"file {name!r} is included twice", "a file can be included only once")
            )
            return []
        self.included.add(found)
        try:
            _, root = read(found)
        except ModelError as error:
            self.problems += error.problems
            self.are_complete = False
            return []
        parent = node.parent
        return [
            part
            for child in root.children
            for part in (
                self._included(Node(child, parent), found, depth + 1)
                if child.tag == "include"
                else [self.expanded(child, found, parent, depth + 1)]
            )
        ]

    def asset(self, node: Node, name: PurePosixPath, file: Path) -> tuple[Path, bytes] | None:
        """Path and content of the file that an asset names; None, with a problem, if it cannot be had."""
        found = resolve_mesh(str(name), file, allowed=[self.main.parent, *self.allowed])
        if isinstance(found, Problem):
            self._note(node, found)
            return None
        try:
            if found not in self.contents:
                if found.stat().st_size + sum(map(len, self.contents.values())) > MAX_ASSET_BYTES:
                    raise OSError(0, f"the model's files are larger than {MAX_ASSET_BYTES // 10**6} MB")
                self.contents[found] = found.read_bytes()
        except OSError as error:
            message = f"cannot read {str(name)!r} of {node.title}: {error.strerror}"
            self.problems.append(node.problem("file.unreadable", message, "check the file and its permissions"))
            return None
        return found, self.contents[found]

    def _note(self, node: Node, problem: Problem) -> None:
        self.problems.append(node.problem(problem.code, f"{node.title}: {problem.message}", problem.fix))

    def _check_depth(self, node: Node, depth: int) -> None:
        if depth > MAX_DEPTH:
            message = f"{node.title}: includes nest more than {MAX_DEPTH} deep"
            raise ModelError([*self.problems, node.problem("xml.size", message, "flatten the includes")])


class _Writer:
    """Writes a tree of nodes as text with one start tag per line, its files replaced by names in memory."""

    def __init__(self, document: Document, files: _Files, file: Path, growth: Growth, above: tuple[Path, ...] = ()):
        self.document, self.files, self.file, self.growth = document, files, file, growth
        self.above = (*above, file.resolve())
        self.compiler: dict[str, str] = {}

    def written(self, root: Node) -> str:
        for node in root.children:
            if node.tag == "compiler":
                self.compiler |= node.element.attributes
        # an attached model continues the numbering of the lines, so that a line belongs to one element only
        lines = [""] * len(self.document.lines)
        self._write(root, lines)
        self.growth.add_model(root)
        return "\n".join(lines)

    def _write(self, node: Node, lines: list[str]) -> None:
        attributes = {k: v for k, v in node.element.attributes.items() if k not in _LOOK_ATTRIBUTES}
        if node.tag == "compiler":
            for name in ("meshdir", "texturedir", "assetdir", "strippath"):
                attributes.pop(name, None)
        elif node.tag in _ASSET_TAGS and "file" in attributes:
            attributes |= self._asset(node)
        self.document.lines.append(node)
        pairs = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
        lines.append(f"<{node.tag}{pairs}>")
        for child in node.children:
            is_foreign_home = child.tag == "keyframe" and len(self.above) > 1
            if child.is_used and not is_foreign_home:
                self._write(child, lines)
        lines[-1] += f"</{node.tag}>"

    def _asset(self, node: Node) -> dict[str, str]:
        """Attributes of an asset whose file is replaced by a name in memory."""
        is_model = node.tag == "model"
        folder = "" if is_model else self.compiler.get("meshdir", self.compiler.get("assetdir", ""))
        name = PurePosixPath(node.get("file").replace("\\", "/"))
        if self.compiler.get("strippath") == "true":
            name = PurePosixPath(name.name)
        found = self.files.asset(node, PurePosixPath(folder) / name, self.file)
        if found is None:
            return {}
        path, content = found
        key = f"asset{len(self.document.assets) + len(self.document.models)}{path.suffix.lower()}"
        if is_model:
            self._attach(node, path, key)
        else:
            self.growth.add_file(node, content)
            self.document.assets[key] = content
            self.document.mesh_paths[key] = path
        # MuJoCo calls a nameless asset after its file
        named = {} if is_model or node.tag == "flexcomp" else {"name": node.get("name") or name.stem}
        return {"file": key, **named}

    def _attach(self, node: Node, path: Path, key: str) -> None:
        if path in self.above:
            message = f"{node.title} attaches {path.name!r}, which is part of itself"
            self.files.problems.append(node.problem("mjcf.attach", message, "remove one of the attachments"))
            return
        if len(self.document.attached) == MAX_ATTACHED:
            message = f"{node.title}: the model attaches more than {MAX_ATTACHED} others"
            problem = node.problem("mjcf.too_large", message, "attach fewer models")
            raise ModelError([*self.files.problems, problem])
        try:
            _, element = read(path)
        except ModelError as error:
            self.files.problems += error.problems
            return
        if foreign := _format_problem(element):
            self.files.problems.append(foreign)
            return
        allowed = [self.files.main.parent, *self.files.allowed]
        files = _Files(path, allowed, self.files.problems, self.files.contents)
        root = files.expanded(element, path)
        self.document.attached.append(root)
        growth = self.growth.attached[node.get("name") or root.get("model")] = Growth(self.files.problems)
        text = _Writer(self.document, files, path, growth, self.above).written(root)
        self.document.models[key] = text.encode()

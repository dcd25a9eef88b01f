"""An MJCF file with its includes and assets, prepared for compilation without file access by MuJoCo.

MuJoCo follows `<include>` and mesh paths outside the model's folder. Therefore the files are resolved here, inside the
permitted folders, and MuJoCo gets a single text and the assets in memory. Every line of that text begins with exactly
one start tag: the line number in MuJoCo's messages, and in the `info` of MjSpec elements, identifies the element and
its file.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from xml.sax.saxutils import quoteattr

from hybridsim.core.errors import ModelError, Problem
from hybridsim.core.files import read_bounded
from hybridsim.io.mjcf.read_limits import SizeCounter, check_numbers
from hybridsim.io.mjcf.read_node import Node
from hybridsim.io.paths import resolve_uri
from hybridsim.io.xml import MAX_DEPTH, Element, parse, read

MAX_ASSET_BYTES = 200_000_000
"""Maximum total size of the asset files of a model."""
MAX_ATTACHED = 100
"""Maximum number of attached models; nested attachments could grow exponentially with the number of files."""

_APPEARANCE_ATTRIBUTES = ("texture", "material")
_PLUGINS = ("extension", "plugin")
_ASSET_TAGS = ("mesh", "hfield", "flexcomp", "model")
_LINE = re.compile(r"\bline\D{0,3}(\d+)")


@dataclass
class Document:
    """Complete input of a compilation with MuJoCo."""

    file: str
    """Path of the main file as given by the user."""
    source: bytes
    """Content of the main file."""
    root: Node
    text: str = ""
    """The main model, one start tag per line."""
    lines: list[Node] = field(default_factory=list)
    """Node of every line of the main model and the attached models."""
    assets: dict[str, bytes] = field(default_factory=dict)
    """Contents of asset files by their name in `text`."""
    models: dict[str, bytes] = field(default_factory=dict)
    """Attached models by their name in `text`."""
    mesh_paths: dict[str, Path] = field(default_factory=dict)
    """Real path of each asset in `assets`."""
    attached: list[Node] = field(default_factory=list)
    """Root elements of attached models."""
    is_complete: bool = True
    """Whether all included files could be read."""
    problems: list[Problem] = field(default_factory=list)
    """Problems of the files; the model must not be compiled if there is an error."""

    def node_at(self, location: str) -> Node | None:
        """Node of the line in a MuJoCo message or the `info` of an element (`... line 12`); None if there is none."""
        numbers = _LINE.findall(location)
        line = int(numbers[-1]) if numbers else 0
        return self.lines[line - 1] if 0 < line <= len(self.lines) else None


def open_document(
    path: str | Path, allowed_folders: Sequence[str | Path] = (), source: bytes | None = None
) -> Document:
    """Read an MJCF file and all files that it refers to.

    Args:
        path: the main file.
        allowed_folders: folders outside the model's folder from which included files and assets may be read.
        source: content to use instead of that of the main file.

    Returns:
        The document, with the problems of the referenced files and of numeric attributes.

    Raises:
        ModelError: the main file cannot be read, is not MJCF, or includes are nested too deeply.
    """
    file = str(path)
    if source is None:
        source, root = read(path)
    else:
        root = parse(source, file)
    if problem := _format_problem(root):
        raise ModelError([problem])
    document = Document(file, source, Node(root))
    files = _Files(Path(path), allowed_folders, document.problems, {})
    document.root = files.expand(root, Path(path))
    document.text = _Writer(document, files, Path(path), SizeCounter(document.problems)).write(document.root)
    document.is_complete = files.are_complete
    return document


def _format_problem(root: Element) -> Problem | None:
    if root.tag == "mujoco":
        return None
    message, fix = f"the root element is <{root.tag}>, not <mujoco>", "the root element of MJCF must be <mujoco>"
    return Problem(message, fix, root.file, root.line, code="xml.format")


class _Files:
    """Resolves included files and assets and expands includes."""

    def __init__(
        self, main: Path, allowed_folders: Sequence[str | Path], problems: list[Problem], contents: dict[Path, bytes]
    ):
        self.main, self.allowed_folders, self.problems = main, allowed_folders, problems
        self.contents = contents
        """Contents of asset files, shared with attached models."""
        self.included = {main.resolve()}
        self.are_complete = True

    def expand(self, element: Element, file: Path, parent: Node | None = None, depth: int = 0) -> Node:
        """Node of the element with every `<include>` below it replaced by the content of the file."""
        node = Node(element, parent)
        self._check_depth(node, depth)
        if element.tag in _PLUGINS and not any(ancestor.tag in _PLUGINS for ancestor in node.ancestors()):
            fix = "remove it; model files must not load plugins, since they run arbitrary code"
            self.problems.append(node.problem("mjcf.plugin", f"{node.title}: plugins are not allowed", fix))
        check_numbers(element, self.problems)
        for child in element.children:
            if child.tag == "include":
                node.children += self._expand_include(Node(child, node), file, depth)
            else:
                node.children.append(self.expand(child, file, node, depth + 1))
        return node

    def _expand_include(self, node: Node, file: Path, depth: int) -> list[Node]:
        name = node.get("file")
        self._check_depth(node, depth)
        # like MuJoCo: relative to the main file, then relative to the including file
        path = resolve_uri(name, self.main, allowed_folders=self.allowed_folders)
        if isinstance(path, Problem) and file.parent != self.main.parent:
            relative = resolve_uri(name, file, allowed_folders=[self.main.parent, *self.allowed_folders])
            path = relative if isinstance(relative, Path) else path
        if isinstance(path, Problem):
            self._report(node, path)
            self.are_complete = False
            return []
        if path in self.included:
            self.problems.append(
                node.problem("mjcf.include", f"file {name!r} is included twice", "remove one of the two <include>")
            )
            return []
        self.included.add(path)
        try:
            _, root = read(path)
        except ModelError as error:
            self.problems += error.problems
            self.are_complete = False
            return []
        parent = node.parent
        return [
            part
            for child in root.children
            for part in (
                self._expand_include(Node(child, parent), path, depth + 1)
                if child.tag == "include"
                else [self.expand(child, path, parent, depth + 1)]
            )
        ]

    def asset(self, node: Node, name: PurePosixPath, file: Path) -> tuple[Path, bytes] | None:
        """Path and content of the file of an asset; None, with a problem, if it cannot be read."""
        path = resolve_uri(str(name), file, allowed_folders=[self.main.parent, *self.allowed_folders])
        if isinstance(path, Problem):
            self._report(node, path)
            return None
        try:
            if path not in self.contents:
                room = MAX_ASSET_BYTES - sum(map(len, self.contents.values()))
                content = read_bounded(path, room)
                if len(content) > room:
                    raise OSError(0, f"the assets of the model exceed {MAX_ASSET_BYTES // 10**6} MB")
                self.contents[path] = content
        except OSError as error:
            message = f"cannot read {str(name)!r} of {node.title}: {error.strerror}"
            self.problems.append(node.problem("file.unreadable", message, "check the file and its permissions"))
            return None
        return path, self.contents[path]

    def _report(self, node: Node, problem: Problem) -> None:
        self.problems.append(node.problem(problem.code, f"{node.title}: {problem.message}", problem.fix))

    def _check_depth(self, node: Node, depth: int) -> None:
        if depth > MAX_DEPTH:
            message = f"{node.title}: includes are nested more than {MAX_DEPTH} levels deep"
            raise ModelError([*self.problems, node.problem("xml.size", message, "flatten the includes")])


class _Writer:
    """Writes a tree of nodes as text with one start tag per line and file paths replaced by in-memory assets."""

    def __init__(
        self, document: Document, files: _Files, file: Path, sizes: SizeCounter, ancestors: tuple[Path, ...] = ()
    ):
        self.document, self.files, self.file, self.sizes = document, files, file, sizes
        self.ancestors = (*ancestors, file.resolve())
        self.compiler: dict[str, str] = {}

    def write(self, root: Node) -> str:
        for node in root.children:
            if node.tag == "compiler":
                self.compiler |= node.element.attributes
        # attached models continue the line numbers, so that a line identifies one element
        lines = [""] * len(self.document.lines)
        self._write(root, lines)
        self.sizes.add_model(root)
        return "\n".join(lines)

    def _write(self, node: Node, lines: list[str]) -> None:
        attributes = {k: v for k, v in node.element.attributes.items() if k not in _APPEARANCE_ATTRIBUTES}
        if node.tag == "compiler":
            for name in ("meshdir", "texturedir", "assetdir", "strippath"):
                attributes.pop(name, None)
        elif node.tag in _ASSET_TAGS and "file" in attributes:
            attributes |= self._asset(node)
        self.document.lines.append(node)
        attribute_text = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
        lines.append(f"<{node.tag}{attribute_text}>")
        for child in node.children:
            is_attached_keyframe = child.tag == "keyframe" and len(self.ancestors) > 1
            if child.is_used and not is_attached_keyframe:
                self._write(child, lines)
        lines[-1] += f"</{node.tag}>"

    def _asset(self, node: Node) -> dict[str, str]:
        """Attributes of an asset with its file replaced by the name of the in-memory asset."""
        is_model = node.tag == "model"
        folder = "" if is_model else self.compiler.get("meshdir", self.compiler.get("assetdir", ""))
        name = PurePosixPath(node.get("file").replace("\\", "/"))
        if self.compiler.get("strippath") == "true":
            name = PurePosixPath(name.name)
        asset = self.files.asset(node, PurePosixPath(folder) / name, self.file)
        if asset is None:
            return {}
        path, content = asset
        key = f"asset{len(self.document.assets) + len(self.document.models)}{path.suffix.lower()}"
        if is_model:
            self._attach(node, path, key)
        else:
            self.sizes.add_file(node, content)
            self.document.assets[key] = content
            self.document.mesh_paths[key] = path
        # MuJoCo names an unnamed asset after its file
        name_attribute = {} if is_model or node.tag == "flexcomp" else {"name": node.get("name") or name.stem}
        return {"file": key, **name_attribute}

    def _attach(self, node: Node, path: Path, key: str) -> None:
        if path in self.ancestors:
            message = f"{node.title} attaches {path.name!r} recursively"
            self.files.problems.append(node.problem("mjcf.attach", message, "remove one of the attachments"))
            return
        if len(self.document.attached) == MAX_ATTACHED:
            message = f"{node.title}: the model attaches more than {MAX_ATTACHED} models"
            problem = node.problem("mjcf.too_large", message, "attach fewer models")
            raise ModelError([*self.files.problems, problem])
        try:
            _, element = read(path)
        except ModelError as error:
            self.files.problems += error.problems
            return
        if problem := _format_problem(element):
            self.files.problems.append(problem)
            return
        allowed_folders = [self.files.main.parent, *self.files.allowed_folders]
        files = _Files(path, allowed_folders, self.files.problems, self.files.contents)
        root = files.expand(element, path)
        self.document.attached.append(root)
        sizes = self.sizes.attached[node.get("name") or root.get("model")] = SizeCounter(self.files.problems)
        text = _Writer(self.document, files, path, sizes, self.ancestors).write(root)
        self.document.models[key] = text.encode()

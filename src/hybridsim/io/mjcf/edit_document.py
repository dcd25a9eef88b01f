"""Writing into an MJCF file: finding the element that holds a value, and noting what was changed."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim.core.errors import Problem
from hybridsim.io.compare import value
from hybridsim.io.edit_xml import Change, Edits, number_text, numbers_text
from hybridsim.io.mjcf.read_convert import ImportedMjcf
from hybridsim.io.mjcf.read_node import Node
from hybridsim.io.xml import Element
from hybridsim.model.model import Model
from hybridsim.model.specs import ModelSpec
from hybridsim.spatial.transform import Pose

ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")
"""Attributes that give an orientation; an element has at most one of them."""
_EXPANSIONS = ("replicate", "composite", "flexcomp")


@dataclass(frozen=True)
class Baseline:
    """What a file holds, in the form of the model that was loaded from it."""

    model: Model
    spec: ModelSpec
    """Description that `model` was assembled from, body by body."""
    carriers: dict[str, tuple[str, Pose]]
    """Carrier and pose in it of every body that was merged into another."""
    is_merged: bool
    """Whether bodies on fixed joints were merged."""


class Pen:
    """Collects edits of one MJCF file, the table of changes, and what stands against them."""

    def __init__(self, imported: ImportedMjcf):
        self.imported = imported
        self.edits = Edits(imported.document.source)
        self.changes: list[Change] = []
        self.problems: list[Problem] = []
        self._uses = Counter(id(node) for node in imported.nodes.values())

    def place(self, kind: str, name: str, what: str) -> Node | None:
        """The place of an element in the main file; None, with a problem, if it cannot be written to.

        Args:
            kind: body, joint, geom or actuator.
            name: our name of the element.
            what: the changed parameter, for the message.
        """
        obstacle = self.obstacle(kind, name)
        node = self.imported.nodes.get((kind, name))
        if obstacle:
            self.refuse(node, f"{what} of {kind} {name!r} has changed, but {obstacle}")
            return None
        return node

    def obstacle(self, kind: str, name: str) -> str:
        """Why an element cannot be written to; empty if it can."""
        node = self.imported.nodes.get((kind, name))
        if node is None:
            return "the file has no element for it"
        if not self.is_main(node):
            return "it stands in another file"
        if self._uses[id(node)] > 1 or any(above.tag in _EXPANSIONS for above in node.ancestors()):
            return "its element stands for several copies"
        return ""

    def is_main(self, node: Node) -> bool:
        """Whether a node stands in the main file, not in an included or attached one."""
        return node.element.file == self.imported.document.file

    def refuse(self, node: Node | None, message: str, fix: str = "write it out in the main file") -> None:
        """Note that a change cannot be written."""
        file = self.imported.document.file
        problem = (
            node.problem("export.place", message, fix) if node else Problem(message, fix, file, code="export.place")
        )
        self.problems.append(problem)

    def note(self, element: Element, name: str, parameter: str, before: Any, after: Any) -> None:
        """Add a row to the table of changes."""
        label = f"{element.tag} {name!r}" if name else element.tag
        self.changes.append(Change(label, element.line, parameter, value(before), value(after)))

    def set(self, element: Element, attribute: str, values: float | Iterable[float]) -> None:
        """Write numbers."""
        self.edits.set_attribute(element, attribute, numbers_text(np.atleast_1d(np.asarray(values)).tolist()))

    def set_compiler(self, attribute: str, text: str, parameter: str, before: Any = None, after: Any = None) -> None:
        """Change a setting of `<compiler>` that the model has, and add it to the table of changes as `parameter`."""
        root = self.imported.document.root
        nodes = [node for node in root.children if node.tag == "compiler" and attribute in node.element.attributes]
        # the last one counts; that in another file is overruled by a new one
        if nodes and self.is_main(nodes[-1]):
            element = nodes[-1].element
            self.edits.set_attribute(element, attribute, text)
        else:
            element = root.element
            self.edits.insert_child(element, f'<compiler {attribute}="{text}"/>')
        self.changes.append(Change("compiler", element.line, parameter, before, after))

    def set_first(self, element: Element, attribute: str, *first: float) -> None:
        """Replace the first of several numbers and keep the spelling of the others."""
        others = element.get(attribute).split()[len(first) :]
        self.edits.set_attribute(element, attribute, " ".join([*map(number_text, first), *others]))

    def set_range(
        self, element: Element, attribute: str, switch: str, old: Sequence[float], new: Sequence[float]
    ) -> bool:
        """Write a range, or switch it off if both ends are infinite; False if only one is."""
        if np.isinf(new).all():
            self.edits.set_attribute(element, switch, "false")
        elif np.isinf(new).any():
            return False
        else:
            self.set(element, attribute, new)
            if np.isinf(old).any():
                self.edits.set_attribute(element, switch, "true")
        return True

    def remove(self, element: Element, attributes: Iterable[str]) -> None:
        """Take out those of the attributes that are there."""
        for name in attributes:
            if name in element.attributes:
                self.edits.remove_attribute(element, name)

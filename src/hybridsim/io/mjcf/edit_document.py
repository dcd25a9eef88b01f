"""Editing of an MJCF file: location of the elements that hold values, and the table of changes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim.core.errors import Problem
from hybridsim.io.compare import to_value
from hybridsim.io.edit_xml import Change, Edits, number_text, numbers_text
from hybridsim.io.mjcf.read_convert import ImportedMjcf
from hybridsim.io.mjcf.read_node import Node
from hybridsim.io.xml import Element
from hybridsim.model.model import Model
from hybridsim.model.specs import ModelSpec
from hybridsim.spatial.transform import Pose

ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")
"""Attributes that specify an orientation; an element has at most one of them."""
_EXPANSIONS = ("replicate", "composite", "flexcomp")


@dataclass(frozen=True)
class Baseline:
    """The original model of a file, with bodies on fixed joints merged if they are merged in the model to export."""

    model: Model
    spec: ModelSpec
    """Description that `model` was assembled from."""
    merged_into: dict[str, tuple[str, Pose]]
    """For each merged body, the body it was merged into and the pose X_BL in that body."""
    is_merged: bool
    """Whether bodies on fixed joints were merged."""


class MjcfEditor:
    """Collects the edits of an MJCF file, the table of changes and the problems."""

    def __init__(self, imported: ImportedMjcf):
        self.imported = imported
        self.edits = Edits(imported.document.source)
        self.changes: list[Change] = []
        self.problems: list[Problem] = []
        self._uses = Counter(id(node) for node in imported.nodes.values())

    def editable_node(self, kind: str, name: str, what: str) -> Node | None:
        """Node of an element in the main file; None, with a problem, if it cannot be edited.

        Args:
            kind: body, joint, geom, actuator or pair.
            name: name of the element in the description.
            what: what changed, for the message.
        """
        reason = self.uneditable_reason(kind, name)
        node = self.imported.nodes.get((kind, name))
        if reason:
            self.report(node, f"cannot write the change to the {what} of {kind} {name!r}: {reason}")
            return None
        return node

    def uneditable_reason(self, kind: str, name: str) -> str:
        """Reason why an element cannot be edited; empty if it can."""
        node = self.imported.nodes.get((kind, name))
        if node is None:
            return "it has no element in the file"
        if not self.is_in_main_file(node):
            return "it is defined in another file"
        if self._uses[id(node)] > 1 or any(ancestor.tag in _EXPANSIONS for ancestor in node.ancestors()):
            return "its element defines several copies"
        return ""

    def is_in_main_file(self, node: Node) -> bool:
        """Whether a node is in the main file, not in an included or attached one."""
        return node.element.file == self.imported.document.file

    def report(self, node: Node | None, message: str, fix: str = "define it explicitly in the main file") -> None:
        """Report a change that cannot be written."""
        file = self.imported.document.file
        problem = (
            node.problem("export.place", message, fix) if node else Problem(message, fix, file, code="export.place")
        )
        self.problems.append(problem)

    def record_change(self, element: Element, name: str, parameter: str, before: Any, after: Any) -> None:
        """Add a row to the table of changes."""
        label = f"{element.tag} {name!r}" if name else element.tag
        self.changes.append(Change(label, element.line, parameter, to_value(before), to_value(after)))

    def set_numbers(self, element: Element, attribute: str, values: float | Iterable[float]) -> None:
        """Set an attribute to one or several numbers."""
        self.edits.set_attribute(element, attribute, numbers_text(np.atleast_1d(np.asarray(values)).tolist()))

    def set_compiler(self, attribute: str, text: str, parameter: str, before: Any = None, after: Any = None) -> None:
        """Set an attribute of `<compiler>` and add it to the table of changes as `parameter`."""
        root = self.imported.document.root
        nodes = [node for node in root.children if node.tag == "compiler" and attribute in node.element.attributes]
        # the last <compiler> applies; one in another file is overridden by a new one
        if nodes and self.is_in_main_file(nodes[-1]):
            element = nodes[-1].element
            self.edits.set_attribute(element, attribute, text)
        else:
            element = root.element
            self.edits.append_child(element, f'<compiler {attribute}="{text}"/>')
        self.changes.append(Change("compiler", element.line, parameter, before, after))

    def set_first_numbers(self, element: Element, attribute: str, *first: float) -> None:
        """Set the first numbers of an attribute, preserving the formatting of the others."""
        others = element.get(attribute).split()[len(first) :]
        self.edits.set_attribute(element, attribute, " ".join([*map(number_text, first), *others]))

    def set_range(
        self, element: Element, attribute: str, switch: str, old: Sequence[float], new: Sequence[float]
    ) -> bool:
        """Set a range, or disable it if both limits are infinite; False if only one is."""
        if np.isinf(new).all():
            self.edits.set_attribute(element, switch, "false")
        elif np.isinf(new).any():
            return False
        else:
            self.set_numbers(element, attribute, new)
            if np.isinf(old).any():
                self.edits.set_attribute(element, switch, "true")
        return True

    def remove(self, element: Element, attributes: Iterable[str]) -> None:
        """Remove those of the attributes that are present."""
        for name in attributes:
            if name in element.attributes:
                self.edits.remove_attribute(element, name)

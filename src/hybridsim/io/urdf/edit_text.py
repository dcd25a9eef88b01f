"""Edits of single values of a URDF file."""

import re
from collections.abc import Sequence

import numpy as np

from hybridsim.io.edit_xml import Edits, number_text, numbers_text
from hybridsim.io.urdf.read_lint import INERTIA_ENTRIES
from hybridsim.io.xml import Element
from hybridsim.model.inertial import Inertial


class UrdfEdits:
    """Links and joints of a file, and the edits to apply."""

    def __init__(self, source: bytes, robot: Element):
        self.links = {element.get("name"): element for element in robot.children_with_tag("link")}
        self.joints = {element.get("name"): element for element in robot.children_with_tag("joint")}
        self._edits = Edits(source)
        self._new_children: dict[tuple[int, str], tuple[Element, dict[str, str]]] = {}

    def set_numbers(
        self,
        owner: Element,
        tag: str,
        attribute: str,
        values: Sequence[float] | np.ndarray,
        tolerance: float = 0.0,
    ) -> None:
        """Set an attribute of the child `tag` of an element; adds the child if there is none.

        Args:
            owner: the element whose child holds the attribute.
            tag: tag of the child.
            attribute: name of the attribute.
            values: the new values.
            tolerance: values in the file that differ by at most this keep their formatting.
        """
        child = owner.child(tag)
        if child is None:
            _, attributes = self._new_children.setdefault((owner.start, tag), (owner, {}))
            attributes[attribute] = numbers_text(values)
            return
        old = child.attributes.get(attribute)
        text = numbers_text(values) if old is None else _replace_values(old, values, tolerance)
        if text != old:
            self._edits.set_attribute(child, attribute, text)

    def set_type(self, joint: Element, kind: str) -> None:
        """Change the type of a joint."""
        self._edits.set_attribute(joint, "type", kind)

    def append_inertial(self, link: Element, inertial: Inertial) -> None:
        """Add an `<inertial>` to a link without one."""
        entries = zip(INERTIA_ENTRIES, inertial.entries(), strict=True)
        lines = [
            "<inertial>",
            f'  <origin xyz="{numbers_text(inertial.com)}"/>',
            f'  <mass value="{number_text(inertial.mass)}"/>',
            "  <inertia " + " ".join(f'{name}="{number_text(entry)}"' for name, entry in entries) + "/>",
            "</inertial>",
        ]
        self._edits.append_child(link, "\n".join(lines))

    def append_child(self, owner: Element, xml: str) -> None:
        """Append a child to an element."""
        self._edits.append_child(owner, xml)

    def apply(self) -> bytes:
        """Content of the file with all edits applied."""
        for (_, tag), (owner, attributes) in self._new_children.items():
            text = " ".join(f'{name}="{numbers}"' for name, numbers in attributes.items())
            self._edits.append_child(owner, f"<{tag} {text}/>")
        self._new_children.clear()
        return self._edits.apply()


def _replace_values(old: str, values: Sequence[float] | np.ndarray, tolerance: float) -> str:
    """New values in the layout of the old text; unchanged values keep their formatting."""
    words = old.split()
    if len(words) != len(values):
        return numbers_text(values)
    iterator = iter(values)

    def replacement(match: re.Match) -> str:
        number = next(iterator)
        word = match.group()
        return word if abs(float(word) - number) <= tolerance or float(word) == number else number_text(number)

    return re.sub(r"\S+", replacement, old)

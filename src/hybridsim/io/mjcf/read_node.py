"""Element tree of an MJCF model after expansion of includes."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from hybridsim.core.errors import Problem, Severity
from hybridsim.core.messages import spelling_suggestion
from hybridsim.io.xml import Element

APPEARANCE_TAGS = ("texture", "material", "skin")
"""Elements that affect the appearance only; errors in them do not prevent an import."""
_UNUSED = (*APPEARANCE_TAGS, "camera", "light", "visual", "statistic", "custom", "sensor", "size", "lengthrange")
"""Elements that are not used. They are hidden from MuJoCo, since some take a lot of time or memory to compile."""
_MAX_LISTED = 8
"""Maximum number of names listed in a message."""


@dataclass(eq=False)
class Node:
    """An element in the document tree after expansion of includes."""

    element: Element
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)

    @property
    def tag(self) -> str:
        """Tag of the element."""
        return self.element.tag

    def get(self, attribute: str, default: str = "") -> str:
        """Text of an attribute."""
        return self.element.get(attribute, default)

    @property
    def is_used(self) -> bool:
        """Whether the element is passed to MuJoCo; elements that do not affect the simulation are not."""
        return self.tag not in _UNUSED and (self.tag != "key" or self.get("name") == "home")

    def walk(self) -> Iterator["Node"]:
        """This node and all its descendants, in document order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def ancestors(self) -> Iterator["Node"]:
        """Ancestors of this node, nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def title(self) -> str:
        """Name of the element in messages."""
        return self.element.title

    def problem(self, code: str, message: str, fix: str = "", severity: Severity = Severity.ERROR) -> Problem:
        """A problem at this element."""
        named = self.element.nearest_named_element
        name = named.get("name") if named is not None else ""
        return Problem(message, fix, self.element.file, self.element.line, severity, code, name)


def words(text: str) -> frozenset[str]:
    """Set of the words in a text; for readable sets of tags or attributes."""
    return frozenset(text.split())


def suggestion(name: str, known: Collection[str], prefix: str) -> str:
    """Suggestion for an unknown name: the most similar known names, or `prefix` followed by the list of known names."""
    names = sorted(known)
    listed = (
        f"{prefix} {', '.join(names[:_MAX_LISTED])}{', …' if names[_MAX_LISTED:] else ''}" if names else "remove it"
    )
    return spelling_suggestion(name, names) or listed


def mujoco_module() -> Any:
    """The package mujoco, imported lazily; untyped, since type checkers do not know its names."""
    import mujoco

    return mujoco

"""The tree of an MJCF model's elements, whichever files they come from."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from hybridsim.core.errors import Problem, Severity
from hybridsim.io.xml import Element


@dataclass(eq=False)
class Node:
    """An element at its place in the document after includes are spliced in."""

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

    def walk(self) -> Iterator["Node"]:
        """This node and everything below it, in document order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def ancestors(self) -> Iterator["Node"]:
        """The nodes above this one, nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def title(self) -> str:
        """How messages call the element."""
        return self.element.title

    def problem(self, code: str, message: str, fix: str = "", severity: Severity = Severity.ERROR) -> Problem:
        """A problem at this place."""
        return Problem(message, fix, self.element.file, self.element.line, severity, code)


def words(text: str) -> frozenset[str]:
    """The words of a text: a readable way to write a set of tags or attributes."""
    return frozenset(text.split())

"""The tree of an MJCF model's elements, whichever files they come from."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from hybridsim.core.errors import Problem, Severity
from hybridsim.core.messages import did_you_mean
from hybridsim.io.xml import Element

LOOKS = ("texture", "material", "skin")
"""Elements that only change the looks; a missing picture or a misspelt colour stops no import."""
_UNUSED = (*LOOKS, "camera", "light", "visual", "statistic", "custom", "sensor", "size", "lengthrange")
"""Elements of which nothing is used. MuJoCo does not see them: some ask it for a lot of time or memory."""
_SHOWN = 8
"""How many names a message lists."""


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

    @property
    def is_used(self) -> bool:
        """Whether MuJoCo has to know the element: what is not simulated, it need not compile."""
        return self.tag not in _UNUSED and (self.tag != "key" or self.get("name") == "home")

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
        named = self.element.named
        name = named.get("name") if named is not None else ""
        return Problem(message, fix, self.element.file, self.element.line, severity, code, name)


def words(text: str) -> frozenset[str]:
    """The words of a text: a readable way to write a set of tags or attributes."""
    return frozenset(text.split())


def suggestion(name: str, known: Collection[str], otherwise: str) -> str:
    """What to write in place of an unknown name: the nearest known one, or all of them behind `otherwise`."""
    names = sorted(known)
    shown = f"{otherwise} {', '.join(names[:_SHOWN])}{', …' if names[_SHOWN:] else ''}" if names else "remove it"
    return did_you_mean(name, names) or shown


def mujoco_module() -> Any:
    """The package mujoco, imported only when it is needed; type checkers do not know its names."""
    import mujoco

    return mujoco

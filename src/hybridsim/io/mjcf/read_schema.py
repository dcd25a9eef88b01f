"""The spelling of an MJCF file: every unknown element and attribute at once, with the nearest known name.

MuJoCo stops at the first one. Its own table of elements is printed by `mj_printSchema`, so nothing is listed twice and
a later version brings its own names.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from hybridsim.core.errors import Problem
from hybridsim.io.mjcf.read_node import LOOKS, Node, mujoco_module, suggestion, words

_INDENT = 3
_HEADER = re.compile(r"( *)(\S+) \(([!?*R])\) *(.*)")
_WITHOUT_TABLE = ("frame", "replicate")
"""Elements that MuJoCo's table leaves out: they may hold what a body may hold, and any attribute."""
_KEYWORDS = {
    ("joint", "type"): words("free ball slide hinge"),
    ("geom", "type"): words("plane hfield sphere capsule ellipsoid cylinder box mesh sdf"),
    ("compiler", "angle"): words("radian degree"),
}
"""Words that an attribute may have, for those that are written most often."""


@dataclass
class Kind:
    """What an element may have."""

    attributes: frozenset[str] = frozenset()
    children: dict[str, "Kind"] = field(default_factory=dict)
    is_single: bool = False
    """Whether its parent may have only one of it."""


def spelling_problems(root: Node) -> list[Problem]:
    """Unknown, misplaced and repeated elements, unknown attributes and keywords of a model."""
    return list(_problems(root, schema()))


@cache
def schema() -> Kind:
    """MuJoCo's table of elements as a tree that begins with `<mujoco>`."""
    return parsed(mujoco_module().mj_printSchema(False, False))


def parsed(text: str) -> Kind:
    """The tree that MuJoCo prints: one element per line, indented, its attributes behind it and on further lines."""
    top = Kind()
    path = [top]
    for line in text.splitlines():
        header = _HEADER.fullmatch(line)
        if header is None:
            path[-1].attributes |= words(line)
            continue
        blanks, tag, multiplicity, attributes = header.groups()
        del path[len(blanks) // _INDENT + 1 :]
        kind = Kind(words(attributes), is_single=multiplicity == "?")
        if tag == "(world)body":
            tag = "body"
            kind.children |= {name: Kind(children=kind.children) for name in _WITHOUT_TABLE}
            path[-1].children["worldbody"] = Kind(children=kind.children)
        else:
            path[-1].children[tag] = kind
        if multiplicity == "R":
            kind.children[tag] = kind
        path.append(kind)
    return top.children["mujoco"]


def _problems(node: Node, kind: Kind, are_checked: bool = True) -> Iterator[Problem]:
    # MuJoCo ignores unknown attributes of these elements and of all below them; `unsupported` warns of them
    are_checked = are_checked and node.tag not in _WITHOUT_TABLE
    if are_checked:
        yield from _attribute_problems(node, kind)
    yield from _keyword_problems(node)
    seen: dict[str, Node] = {}
    for child in node.children:
        known = kind.children.get(child.tag)
        if child.tag in LOOKS:
            continue
        if known is None:
            message = f"<{node.tag}> cannot hold <{child.tag}>"
            yield child.problem("mjcf.element", message, _place_for(child.tag, node.tag, kind))
            continue
        if known.is_single and child.tag in seen:
            message = f"{child.title} is the second <{child.tag}> (first at line {seen[child.tag].element.line})"
            yield child.problem("mjcf.element", message, f"a <{node.tag}> may have only one; remove the other")
        seen.setdefault(child.tag, child)
        yield from _problems(child, known, are_checked)


def _attribute_problems(node: Node, kind: Kind) -> Iterator[Problem]:
    for name in node.element.attributes:
        if name not in kind.attributes:
            fix = suggestion(name, kind.attributes, f"<{node.tag}> has")
            yield node.problem("mjcf.attribute", f"{node.title} has an unknown attribute {name!r}", fix)


def _keyword_problems(node: Node) -> Iterator[Problem]:
    in_composite = node.parent is not None and node.parent.tag == "composite"
    for name, value in node.element.attributes.items():
        known = _KEYWORDS.get((node.tag, name), ())
        if known and value not in known and not in_composite:
            message = f"{name!r} of {node.title} is {value!r}, which MuJoCo does not know"
            yield node.problem("mjcf.keyword", message, suggestion(value, known, "it can be"))


def _place_for(tag: str, holder: str, kind: Kind) -> str:
    """How to mend an element that stands in the wrong place or is misspelt."""
    sections = {"mujoco": schema()} | schema().children
    places = [f"<{name}>" for name, section in sections.items() if tag in section.children and name != "default"]
    return f"it belongs in {' or '.join(places)}" if places else suggestion(tag, kind.children, f"<{holder}> may hold")

"""Check of an MJCF file against MuJoCo's schema: all unknown elements and attributes, with the most similar known name.

MuJoCo stops at the first one. The schema is that of the installed version, from `mj_printSchema`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from hybridsim.core.errors import Problem
from hybridsim.io.mjcf.read_node import APPEARANCE_TAGS, Node, mujoco_module, suggestion, words

_INDENT = 3
_HEADER = re.compile(r"( *)(\S+) \(([!?*R])\) *(.*)")
_NOT_IN_SCHEMA = ("frame", "replicate")
"""Elements missing from MuJoCo's schema: they may have the children of a body and any attribute."""
_KEYWORDS = {
    ("joint", "type"): words("free ball slide hinge"),
    ("geom", "type"): words("plane hfield sphere capsule ellipsoid cylinder box mesh sdf"),
    ("compiler", "angle"): words("radian degree"),
}
"""Valid keywords of the most common attributes."""


@dataclass
class ElementSchema:
    """Valid attributes and children of an element."""

    attributes: frozenset[str] = frozenset()
    children: dict[str, "ElementSchema"] = field(default_factory=dict)
    is_single: bool = False
    """Whether its parent may contain it only once."""


def schema_problems(root: Node) -> list[Problem]:
    """Unknown, misplaced and repeated elements, unknown attributes and keywords of a model."""
    return list(_problems(root, schema()))


@cache
def schema() -> ElementSchema:
    """MuJoCo's schema as a tree with root `<mujoco>`."""
    return parse_schema(mujoco_module().mj_printSchema(False, False))


def parse_schema(text: str) -> ElementSchema:
    """Parse the schema as printed by MuJoCo: one indented element per line, followed by its attributes."""
    top = ElementSchema()
    path = [top]
    for line in text.splitlines():
        header = _HEADER.fullmatch(line)
        if header is None:
            path[-1].attributes |= words(line)
            continue
        blanks, tag, multiplicity, attributes = header.groups()
        del path[len(blanks) // _INDENT + 1 :]
        kind = ElementSchema(words(attributes), is_single=multiplicity == "?")
        if tag == "(world)body":
            tag = "body"
            kind.children |= {name: ElementSchema(children=kind.children) for name in _NOT_IN_SCHEMA}
            path[-1].children["worldbody"] = ElementSchema(children=kind.children)
        else:
            path[-1].children[tag] = kind
        if multiplicity == "R":
            kind.children[tag] = kind
        path.append(kind)
    return top.children["mujoco"]


def _problems(node: Node, kind: ElementSchema, check_attributes: bool = True) -> Iterator[Problem]:
    # MuJoCo ignores unknown attributes of these elements and their descendants; `unsupported_problems` warns about them
    check_attributes = check_attributes and node.tag not in _NOT_IN_SCHEMA
    if check_attributes:
        yield from _attribute_problems(node, kind)
    yield from _keyword_problems(node)
    seen: dict[str, Node] = {}
    for child in node.children:
        known = kind.children.get(child.tag)
        if child.tag in APPEARANCE_TAGS:
            continue
        if known is None:
            message = f"<{node.tag}> may not contain <{child.tag}>"
            yield child.problem("mjcf.element", message, _element_fix(child.tag, node.tag, kind))
            continue
        if known.is_single and child.tag in seen:
            message = f"{child.title} is a second <{child.tag}> (first at line {seen[child.tag].element.line})"
            yield child.problem("mjcf.element", message, f"<{node.tag}> may contain only one; remove the other")
        seen.setdefault(child.tag, child)
        yield from _problems(child, known, check_attributes)


def _attribute_problems(node: Node, kind: ElementSchema) -> Iterator[Problem]:
    for name in node.element.attributes:
        if name not in kind.attributes:
            fix = suggestion(name, kind.attributes, f"<{node.tag}> has the attributes")
            yield node.problem("mjcf.attribute", f"unknown attribute {name!r} of {node.title}", fix)


def _keyword_problems(node: Node) -> Iterator[Problem]:
    in_composite = node.parent is not None and node.parent.tag == "composite"
    for name, value in node.element.attributes.items():
        known = _KEYWORDS.get((node.tag, name), ())
        if known and value not in known and not in_composite:
            message = f"unknown keyword {value!r} of attribute {name!r} of {node.title}"
            yield node.problem("mjcf.keyword", message, suggestion(value, known, "the keywords are"))


def _element_fix(tag: str, parent: str, kind: ElementSchema) -> str:
    """Fix for a misplaced or misspelt element."""
    sections = {"mujoco": schema()} | schema().children
    parents = [f"<{name}>" for name, section in sections.items() if tag in section.children and name != "default"]
    if parents:
        return f"it belongs in {' or '.join(parents)}"
    return suggestion(tag, kind.children, f"<{parent}> may contain")

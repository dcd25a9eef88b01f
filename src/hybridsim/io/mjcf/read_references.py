"""Names in an MJCF file: the references that lead nowhere, and the names that stand twice, all at once.

MuJoCo stops at the first one. Copies and attached models bring names of their own; where a name may be one of those,
MuJoCo has the last word.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from hybridsim.core.errors import Problem
from hybridsim.io.mjcf.read_node import Node, suggestion, words

_KIND_OF_TAG = {
    "body": "body",
    "joint": "joint",
    "freejoint": "joint",
    "geom": "geom",
    "site": "site",
    "camera": "camera",
    "mesh": "mesh",
    "hfield": "height field",
    "model": "model",
    "flexcomp": "flex",
    "flex": "flex",
}
"""Kind of the elements of the world, of assets and of deformable bodies."""
_KIND_OF_SECTION = {"tendon": "tendon", "actuator": "actuator"}
_REFERENCES = {
    attribute: kind
    for kind, attributes in {
        "body": "body body1 body2 target subtree1 subtree2",
        "joint": "joint joint1 joint2 jointinparent",
        "geom": "geom geom1 geom2",
        "site": "site site1 site2 refsite slidersite cranksite sidesite",
        "tendon": "tendon tendon1 tendon2",
        "actuator": "actuator",
        "camera": "camera",
        "mesh": "mesh",
        "height field": "hfield",
        "flex": "flex",
        "default class": "class childclass",
    }.items()
    for attribute in attributes.split()
}
"""Kind of the element that an attribute names."""
_TYPED_REFERENCES = {"objname": "objtype", "refname": "reftype"}
_KIND_OF_TYPE = {"xbody": "body", "hfield": "height field"} | {
    name: name for name in ("body", "geom", "site", "camera", "joint", "tendon", "actuator", "mesh", "flex")
}
_SECTIONS = words("worldbody contact tendon equality actuator sensor custom")
"""Where names are referred to; those of assets and defaults only count once they are used."""
_NAMELESS = words("frame replicate attach composite light key")
"""Elements of the world that nothing refers to by name."""
_ANY_NAMES = ("composite", "flexcomp")
"""Elements that become others, with names that MuJoCo makes up."""


def reference_problems(root: Node) -> list[Problem]:
    """References to names that a model does not have, and names that it has twice.

    Args:
        root: the main model with its includes; what an attached model refers to in vain, MuJoCo leaves out.
    """
    names = _Names.of(root)
    nodes = [node for section in root.children if section.tag in _SECTIONS for node in section.walk()]
    return [*names.duplicates, *(problem for node in nodes for problem in _dangling(node, names))]


@dataclass
class _Names:
    """What the elements of a model are called."""

    by_kind: dict[str, set[str]] = field(default_factory=dict)
    beginnings: list[str] = field(default_factory=list)
    """How names begin that copies and attached models bring along."""
    unknown: set[str] = field(default_factory=set)
    """Names of misspelt elements, whose kind cannot be told."""
    are_open: bool = False
    """Whether there may be any other names."""
    duplicates: list[Problem] = field(default_factory=list)

    @classmethod
    def of(cls, root: Node) -> "_Names":
        names = cls({"body": {"world"}, "default class": {"main"}})
        first: dict[tuple[str, str], Node] = {}
        for section in root.children:
            for node in section.walk():
                name, kind = _name_and_kind(node, section)
                if kind:
                    names._add(node, kind, name, first)
                elif name:
                    names.unknown.add(name)
                if node.tag == "attach":
                    names.beginnings.append(node.get("prefix"))
                names.are_open |= node.tag in _ANY_NAMES
        return names

    def _add(self, node: Node, kind: str, name: str, first: dict[tuple[str, str], Node]) -> None:
        self.by_kind.setdefault(kind, set()).add(name)
        if any(above.tag == "replicate" for above in node.ancestors()):
            self.beginnings.append(name)
        elif name and kind != "default class" and first.setdefault((kind, name), node) is not node:
            line = first[kind, name].element.line
            message = f"a second {kind} is named {name!r} (first at line {line})"
            self.duplicates.append(node.problem("name.duplicate", message, "rename one of the two"))

    def has(self, kind: str, name: str) -> bool:
        """Whether an element may have this name."""
        known = self.by_kind.get(kind, set())
        is_made_up = self.are_open or name.startswith(tuple(self.beginnings))
        # a nameless model is called after what its file says
        is_nameless = kind == "model" and "" in known
        return name in known or name in self.unknown or is_made_up or is_nameless


def _name_and_kind(node: Node, section: Node) -> tuple[str, str]:
    """Name of an element, and of which kind it is; nothing for what cannot be referred to."""
    name = node.element.attributes.get("name", "")
    if section.tag == "default":
        return (node.get("class"), "default class") if node.tag == "default" else ("", "")
    if section.tag in _KIND_OF_SECTION:
        return (name, _KIND_OF_SECTION[section.tag]) if node.parent is section else ("", "")
    if section.tag not in ("worldbody", "asset", "deformable") or node.tag in _NAMELESS:
        return "", ""
    if not name and node.tag in ("mesh", "hfield"):
        # MuJoCo calls a nameless asset after its file
        name = PurePosixPath(node.get("file").replace("\\", "/")).stem
    return name, _KIND_OF_TAG.get(node.tag, "")


def _dangling(node: Node, names: _Names) -> Iterator[Problem]:
    for attribute, name in node.element.attributes.items():
        kind = _REFERENCES.get(attribute)
        if attribute in _TYPED_REFERENCES:
            kind = _KIND_OF_TYPE.get(node.get(_TYPED_REFERENCES[attribute]))
        if node.tag == "attach":
            # its body and frame are those of the other model
            kind = "model" if attribute == "model" else None
        if kind is None or not name or names.has(kind, name):
            continue
        known = {known for known in names.by_kind.get(kind, ()) if known}
        fix = suggestion(name, known, "known names of this kind:") if known else f"the file has no {kind} with a name"
        yield node.problem("mjcf.reference", f"{node.title} names the {kind} {name!r}, which does not exist", fix)

"""Check of all names in an MJCF file for undefined references and duplicates.

MuJoCo stops at the first one. Names that copies or attached models may define are left to MuJoCo.
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
"""Kind of world, asset and deformable elements by tag."""
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
"""Kind of the element that an attribute refers to."""
_TYPED_REFERENCES = {"objname": "objtype", "refname": "reftype"}
_KIND_OF_TYPE = {"xbody": "body", "hfield": "height field"} | {
    name: name for name in ("body", "geom", "site", "camera", "joint", "tendon", "actuator", "mesh", "flex")
}
_SECTIONS = words("worldbody contact tendon equality actuator sensor custom")
"""Sections in which references are checked; those in assets and defaults are left to MuJoCo."""
_UNREFERENCED = words("frame replicate attach composite light key")
"""World elements that are never referred to by name."""
_GENERATORS = ("composite", "flexcomp")
"""Elements that generate others with names defined by MuJoCo."""


def reference_problems(root: Node) -> list[Problem]:
    """Undefined references and duplicate names of a model.

    Args:
        root: the main model with its includes; MuJoCo ignores undefined references of attached models.
    """
    names = _ElementNames.from_root(root)
    nodes = [node for section in root.children if section.tag in _SECTIONS for node in section.walk()]
    return [*names.duplicates, *(problem for node in nodes for problem in _undefined_references(node, names))]


@dataclass
class _ElementNames:
    """Names of the elements of a model."""

    by_kind: dict[str, set[str]] = field(default_factory=dict)
    prefixes: list[str] = field(default_factory=list)
    """Prefixes of the names in copies and attached models."""
    unknown: set[str] = field(default_factory=set)
    """Names of misspelt elements, whose kind is unknown."""
    has_generators: bool = False
    """Whether the model has elements that generate unknown names."""
    duplicates: list[Problem] = field(default_factory=list)

    @classmethod
    def from_root(cls, root: Node) -> "_ElementNames":
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
                    names.prefixes.append(node.get("prefix"))
                names.has_generators |= node.tag in _GENERATORS
        return names

    def _add(self, node: Node, kind: str, name: str, first: dict[tuple[str, str], Node]) -> None:
        self.by_kind.setdefault(kind, set()).add(name)
        if any(ancestor.tag == "replicate" for ancestor in node.ancestors()):
            self.prefixes.append(name)
        elif name and kind != "default class" and first.setdefault((kind, name), node) is not node:
            first_line = first[kind, name].element.line
            message = f"repeated {kind} name {name!r} (first at line {first_line})"
            self.duplicates.append(node.problem("name.duplicate", message, f"rename one {kind}"))

    def can_contain(self, kind: str, name: str) -> bool:
        """Whether an element with this name may exist."""
        known = self.by_kind.get(kind, set())
        may_be_generated = self.has_generators or name.startswith(tuple(self.prefixes))
        # an unnamed model asset is named by its file
        is_unnamed_model = kind == "model" and "" in known
        return name in known or name in self.unknown or may_be_generated or is_unnamed_model


def _name_and_kind(node: Node, section: Node) -> tuple[str, str]:
    """Name and kind of an element; empty if it cannot be referred to."""
    name = node.element.attributes.get("name", "")
    if section.tag == "default":
        return (node.get("class"), "default class") if node.tag == "default" else ("", "")
    if section.tag in _KIND_OF_SECTION:
        return (name, _KIND_OF_SECTION[section.tag]) if node.parent is section else ("", "")
    if section.tag not in ("worldbody", "asset", "deformable") or node.tag in _UNREFERENCED:
        return "", ""
    if not name and node.tag in ("mesh", "hfield"):
        # MuJoCo names an unnamed asset after its file
        name = PurePosixPath(node.get("file").replace("\\", "/")).stem
    return name, _KIND_OF_TAG.get(node.tag, "")


def _undefined_references(node: Node, names: _ElementNames) -> Iterator[Problem]:
    for attribute, name in node.element.attributes.items():
        kind = _REFERENCES.get(attribute)
        if attribute in _TYPED_REFERENCES:
            kind = _KIND_OF_TYPE.get(node.get(_TYPED_REFERENCES[attribute]))
        if node.tag == "attach":
            # its body and frame belong to the attached model
            kind = "model" if attribute == "model" else None
        if kind is None or not name or names.can_contain(kind, name):
            continue
        known = {known for known in names.by_kind.get(kind, ()) if known}
        fix = suggestion(name, known, "known names of this kind:") if known else f"the file has no named {kind}"
        yield node.problem("mjcf.reference", f"{node.title} refers to {kind} {name!r}, which does not exist", fix)

"""Validation of the text of an MJCF file: all errors in one pass, before MuJoCo stops at the first one."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hybridsim.core.errors import ModelError, Problem, Severity
from hybridsim.io.attributes import Reader
from hybridsim.io.mjcf.read_document import Document
from hybridsim.io.mjcf.read_node import Node
from hybridsim.io.mjcf.read_references import reference_problems
from hybridsim.io.mjcf.read_schema import schema_problems
from hybridsim.model.inertial import Inertial, inertia_matrix
from hybridsim.model.specs import BodySpec, JointKind, JointSpec, ModelSpec, Source
from hybridsim.model.validate import model_problems

_CHECKED = ("mass.", "inertia.", "inertial.", "limit.", "axis.")


def require_valid(document: Document) -> None:
    """Check that all files can be read and all elements, attributes and references are known.

    Raises:
        ModelError: there are errors; carries all that can be detected without MuJoCo.
    """
    problems = document.problems
    for root in (document.root, *document.attached):
        problems += schema_problems(root)
    if document.is_complete:
        problems += reference_problems(document.root)
    if any(problem.severity is Severity.ERROR for problem in problems):
        raise ModelError(sort_problems([*problems, *value_problems(document)], document))


def sort_problems(problems: list[Problem], document: Document) -> list[Problem]:
    """Unique problems sorted by line, those of the main file first."""
    return sorted(dict.fromkeys(problems), key=lambda p: (p.file != document.file, p.file, p.line))


def value_problems(document: Document) -> list[Problem]:
    """Inconsistent mass properties, zero axes and swapped limits in the text.

    A valid file may have some of them, since MuJoCo may correct or override the values.
    """
    compilers = [node for node in document.root.children if node.tag == "compiler"]
    overridden = any("true" in (node.get("balanceinertia"), node.get("inertiafromgeom")) for node in compilers)
    problems = []
    for node in document.root.walk():
        if node.tag == "inertial" and not overridden:
            problems += _inertial_problems(node)
        elif node.tag == "joint" and node.get("type", "hinge") in ("hinge", "slide") and _is_in_body(node):
            problems += _joint_problems(node)
    return problems


def _inertial_problems(node: Node) -> Iterator[Problem]:
    reader, element = Reader(), node.element
    entries = reader.vector(element, "diaginertia", 3, (1.0, 1.0, 1.0))
    if "fullinertia" in element.attributes:
        entries = reader.vector(element, "fullinertia", 6, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    inertial = Inertial(reader.number(element, "mass", 1.0), np.zeros(3), inertia_matrix(entries))
    yield from _body_problems(node, BodySpec("body", "world", JointSpec("joint", JointKind.FIXED), inertial=inertial))


def _joint_problems(node: Node) -> Iterator[Problem]:
    reader, element = Reader(), node.element
    joint = JointSpec("joint", armature=1.0, axis=reader.vector(element, "axis", 3, (0.0, 0.0, 1.0)))
    if len(node.get("range").split()) == 2:
        joint.lower, joint.upper = reader.vector(element, "range", 2)
    yield from _body_problems(node, BodySpec("body", "world", joint))


def _body_problems(node: Node, body: BodySpec) -> Iterator[Problem]:
    """Problems of a body or joint, with its name and location in the file."""
    names = {"joint": node.title, "body": _owner(node)}
    source = Source(node.element.file, node.element.line)
    body = replace(body, inertial_source=source, joint=replace(body.joint, source=source))
    for problem in model_problems(ModelSpec("", [body])):
        if problem.code.startswith(_CHECKED):
            message = problem.message
            for placeholder, name in names.items():
                message = message.replace(f"{placeholder} {placeholder!r}", name)
            yield replace(problem, message=message)


def _owner(node: Node) -> str:
    """Name of the body of an element in messages."""
    body = next((ancestor for ancestor in node.ancestors() if ancestor.tag == "body"), None)
    return f"body {body.get('name')!r}" if body and body.get("name") else f"the unnamed body of {node.title}"


def _is_in_body(node: Node) -> bool:
    return node.parent is not None and node.parent.tag in ("body", "frame", "replicate")

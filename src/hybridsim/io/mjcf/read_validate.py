"""Everything that the text of an MJCF file shows to be wrong, before MuJoCo, which stops at the first such thing."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hybridsim.core.errors import ModelError, Problem, Severity
from hybridsim.io.attributes import Reader
from hybridsim.io.mjcf.read_document import Document
from hybridsim.io.mjcf.read_node import Node
from hybridsim.io.mjcf.read_references import reference_problems
from hybridsim.io.mjcf.read_schema import spelling_problems
from hybridsim.model.inertial import Inertial, inertia_matrix
from hybridsim.model.specs import BodySpec, JointKind, JointSpec, ModelSpec, Source
from hybridsim.model.validate import model_problems

_CHECKED = ("mass.", "inertia.", "inertial.", "limit.", "axis.")


def require_sound(document: Document) -> None:
    """Make sure that the files can be read, and that all names in them exist.

    Raises:
        ModelError: something is wrong; carries all that the text shows.
    """
    problems = document.problems
    for root in (document.root, *document.attached):
        problems += spelling_problems(root)
    if document.is_complete:
        problems += reference_problems(document.root)
    if any(problem.severity is Severity.ERROR for problem in problems):
        raise ModelError(in_order([*problems, *value_problems(document)], document))


def in_order(problems: list[Problem], document: Document) -> list[Problem]:
    """Problems by line, those of the main file first; the same one only once."""
    return sorted(dict.fromkeys(problems), key=lambda p: (p.file != document.file, p.file, p.line))


def value_problems(document: Document) -> list[Problem]:
    """Impossible mass properties, zero axes and swapped limits that the text shows by itself.

    A file that is read without objection may have some of them: there MuJoCo mends or overrides the values.
    """
    compilers = [node for node in document.root.children if node.tag == "compiler"]
    mended = any("true" in (node.get("balanceinertia"), node.get("inertiafromgeom")) for node in compilers)
    problems = []
    for node in document.root.walk():
        if node.tag == "inertial" and not mended:
            problems += _inertial_problems(node)
        elif node.tag == "joint" and node.get("type", "hinge") in ("hinge", "slide") and _in_body(node):
            problems += _joint_problems(node)
    return problems


def _inertial_problems(node: Node) -> Iterator[Problem]:
    reader, element = Reader(), node.element
    entries = reader.vector(element, "diaginertia", 3, (1.0, 1.0, 1.0))
    if "fullinertia" in element.attributes:
        entries = reader.vector(element, "fullinertia", 6, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    inertial = Inertial(reader.number(element, "mass", 1.0), np.zeros(3), inertia_matrix(entries))
    yield from _about(node, BodySpec("body", "world", JointSpec("joint", JointKind.FIXED), inertial=inertial))


def _joint_problems(node: Node) -> Iterator[Problem]:
    reader, element = Reader(), node.element
    joint = JointSpec("joint", armature=1.0, axis=reader.vector(element, "axis", 3, (0.0, 0.0, 1.0)))
    if len(node.get("range").split()) == 2:
        joint.lower, joint.upper = reader.vector(element, "range", 2)
    yield from _about(node, BodySpec("body", "world", joint))


def _about(node: Node, body: BodySpec) -> Iterator[Problem]:
    """Problems of one body or joint, by the name and at the place that it has in the file."""
    names = {"joint": node.title, "body": _owner(node)}
    source = Source(node.element.file, node.element.line)
    body = replace(body, inertial_source=source, joint=replace(body.joint, source=source))
    for problem in model_problems(ModelSpec("", [body])):
        if problem.code.startswith(_CHECKED):
            message = problem.message
            for stand_in, name in names.items():
                message = message.replace(f"{stand_in} {stand_in!r}", name)
            yield replace(problem, message=message)


def _owner(node: Node) -> str:
    """How messages call the body that an element stands in."""
    body = next((above for above in node.ancestors() if above.tag == "body"), None)
    return f"body {body.get('name')!r}" if body and body.get("name") else f"the nameless body of {node.title}"


def _in_body(node: Node) -> bool:
    return node.parent is not None and node.parent.tag in ("body", "frame", "replicate")

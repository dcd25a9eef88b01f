"""Compiling with MuJoCo, and what to say when it refuses: its message at the right line, and a way out.

MuJoCo stops at the first thing that it cannot compile. Mass properties and limits are the usual culprits, and
those of the whole file can be checked from its text, so they are all reported in one pass.
"""

import re
import warnings
from typing import Any

import numpy as np

from hybridsim.core.errors import ModelError, Problem, Severity
from hybridsim.io.mjcf_document import Document
from hybridsim.io.mjcf_node import Node
from hybridsim.io.numbers import Reader
from hybridsim.model.inertial import Inertial, inertia_matrix
from hybridsim.model.specs import BodySpec, JointKind, JointSpec, ModelSpec, Source
from hybridsim.model.validate import problems_of

_FIXES = {
    "larger than mjMINVAL": "give the body an <inertial> with mass, or a <geom> with volume",
    "A + B >= C": "no distribution of mass has such moments; check the largest one",
    "positive eigenvalues": "check signs and off-diagonal entries; an inertia is a positive definite matrix",
    "axis too small": 'give a vector of non-zero length, such as axis="0 0 1"',
    "attribute missing": "add the attribute",
    "repeated name": "rename one of the two",
    "free joint can only": "a free joint must hang on the world; move the body out of its parent",
    "more than 6 dofs": "remove joints: a free joint needs no others",
    "global coordinates": "load and save the file with MuJoCo 2.3.3 or older, which converts it",
    "unrecognized attribute": "check the spelling against the MJCF reference, or remove the attribute",
    "unrecognized element": "check the spelling against the MJCF reference, or remove the element",
    "invalid keyword": "check the spelling against the MJCF reference",
    "not found": "check the spelling; the name must exist in the file",
    "unknown": "check the spelling; the name must exist in the file",
}
_WRAPPING = re.compile(r"^(XML )?(Error: )*|\s*Element (name )?'[^']*'(, id -?\d+)?, line \d+\s*$")
_CHECKED = ("mass.", "inertia.", "inertial.", "limit.", "axis.")


def mujoco_module() -> Any:
    """The package mujoco, imported only when it is needed; type checkers do not know its names."""
    import mujoco

    return mujoco


def compiled_by_mujoco(document: Document) -> tuple[Any, Any]:
    """MuJoCo's MjSpec and MjModel of a document; its warnings join the document's problems.

    Raises:
        ModelError: MuJoCo refuses the model.
    """
    mujoco = mujoco_module()

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mjspec = mujoco.MjSpec.from_string(document.text, include=document.models, assets=document.assets)
            # our own merging keeps the names of fixed bodies, and what is only seen may still be drawn
            mjspec.compiler.fusestatic = False
            mjspec.compiler.discardvisual = False
            compiled = mjspec.compile()
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise ModelError(_refusal(document, str(error))) from None
    for text in dict.fromkeys(str(warning.message).strip() for warning in caught):
        place = document.node(text) or _holder_of_attribute(document, text) or document.root
        document.problems.append(place.problem("mjcf.warning", f"MuJoCo: {text}", "", Severity.WARNING))
    return mjspec, compiled


def _holder_of_attribute(document: Document, text: str) -> Node | None:
    match = re.search(r"attribute '(\w+)'", text)
    holders = (node for node in document.lines if match and match.group(1) in node.element.attributes)
    return next(holders, None)


def _refusal(document: Document, text: str) -> list[Problem]:
    """Everything that is known to be wrong with a document that MuJoCo refused with the message `text`."""
    node = document.node(text)
    message = _WRAPPING.sub("", text).strip().rstrip(".")
    fix = next((fix for hint, fix in _FIXES.items() if hint in text), "")
    others = _inertial_and_joint_problems(document)
    culprits = [problem for problem in others if _is_about(problem, node)]
    problems = [*document.problems, *others]
    if not culprits:
        place = node or document.root
        what = f"{place.title}: {message}" if node else message
        problems.append(place.problem("mjcf.refused", f"MuJoCo refuses this: {what}", fix))
    return sorted(problems, key=lambda problem: problem.line)


def _is_about(problem: Problem, node: Node | None) -> bool:
    """Whether a problem of ours is what MuJoCo means; it names a body where we name its inertial."""
    if node is None:
        return False
    lines = {node.element.line, *(child.line for child in node.element.children if child.tag == "inertial")}
    return problem.file == node.element.file and problem.line in lines


def _inertial_and_joint_problems(document: Document) -> list[Problem]:
    """Impossible mass properties, zero axes and swapped limits that the text shows by itself."""
    reader, bodies = Reader(), []
    for k, node in enumerate(document.root.walk()):
        element = node.element
        source = Source(element.file, element.line)
        owner = node.parent.get("name") if node.parent else ""
        if node.tag == "inertial":
            entries = reader.vector(element, "diaginertia", 3, (1.0, 1.0, 1.0))
            if "fullinertia" in element.attributes:
                entries = reader.vector(element, "fullinertia", 6, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
            inertial = Inertial(reader.number(element, "mass", 1.0), np.zeros(3), inertia_matrix(entries))
            joint = JointSpec(f"joint{k}", JointKind.FIXED)
            bodies.append(BodySpec(owner or f"body{k}", "world", joint, inertial=inertial, inertial_source=source))
        elif node.tag == "joint" and node.get("type", "hinge") in ("hinge", "slide") and _in_body(node):
            joint = JointSpec(node.get("name") or f"of body {owner!r}", armature=1.0, source=source)
            joint.axis = reader.vector(element, "axis", 3, (0.0, 0.0, 1.0))
            if len(node.get("range").split()) == 2:
                joint.lower, joint.upper = reader.vector(element, "range", 2)
            bodies.append(BodySpec(f"body{k}", "world", joint))
    return [p for p in [*reader.problems, *problems_of(ModelSpec("", bodies))] if p.code.startswith(_CHECKED)]


def _in_body(node: Node) -> bool:
    return node.parent is not None and node.parent.tag in ("body", "frame", "replicate")

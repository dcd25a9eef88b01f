"""Compilation with MuJoCo, with its errors and warnings mapped to source lines and fixes.

MuJoCo stops at the first error. The most common errors, invalid mass properties and limits, can be detected in the text
of the file, so all of them are reported in one pass.
"""

import re
import warnings
from typing import Any

from hybridsim.core.errors import ModelError, Problem, Severity
from hybridsim.io.mjcf.read_document import Document
from hybridsim.io.mjcf.read_node import Node, mujoco_module
from hybridsim.io.mjcf.read_validate import sort_problems, value_problems

_FIXES = {
    "larger than mjMINVAL": "add an <inertial> with mass or a <geom> with volume to the body",
    "A + B >= C": "no mass distribution has such moments; check the largest one",
    "positive eigenvalues": "check signs and off-diagonal entries; an inertia matrix must be positive definite",
    "axis too small": 'specify a non-zero vector such as axis="0 0 1"',
    "attribute missing": "add the attribute",
    "autolimits": 'add limited="true" to the joint, or remove its range',
    "repeated name": "rename one of the two",
    "free joint can only": "a free joint must be attached to the world; make the body a root body",
    "more than 6 dofs": "remove joints; a body has at most 6 degrees of freedom",
    "global coordinates": "convert the file by loading and saving it with MuJoCo 2.3.3 or older",
    "unrecognized attribute": "check the spelling against the MJCF reference, or remove the attribute",
    "unrecognized element": "check the spelling against the MJCF reference, or remove the element",
    "invalid keyword": "check the spelling against the MJCF reference",
    "allocate memory": "the model is too large; reduce the counts",
    "not found": "check the spelling; the name must be defined in the file",
    "unknown": "check the spelling; the name must be defined in the file",
}
_WRAPPING = re.compile(r"^(XML )?(Error: )*|\s*Element (name )?'[^']*'(, id -?\d+)?(, line \d+)?\s*$")
_ADVICE = re.compile(r"(.*\bdeprecated\b[^:]*):\s*(.*)", re.DOTALL)


def compile_with_mujoco(document: Document) -> tuple[Any, Any]:
    """MjSpec and MjModel of a document; MuJoCo's warnings are added to the problems of the document.

    Raises:
        ModelError: the compilation fails.
    """
    mujoco = mujoco_module()

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mjspec = mujoco.MjSpec.from_string(document.text, include=document.models, assets=document.assets)
            # fixed bodies are merged after the import, which preserves their names; visual geoms may be rendered
            mjspec.compiler.fusestatic = False
            mjspec.compiler.discardvisual = False
            # muscles are not supported; computing their length ranges by simulation may be slow or fail
            mjspec.compiler.LRopt.mode = int(mujoco.mjtLRMode.mjLRMODE_NONE)
            compiled = mjspec.compile()
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise ModelError(_compilation_problems(document, str(error))) from None
    for text in dict.fromkeys(str(warning.message).strip() for warning in caught):
        node = document.node_at(text) or _node_with_attribute(document, text) or document.root
        message, fix = _strip_location(text), "see MuJoCo's XML reference; the model can be used"
        if advice := _ADVICE.fullmatch(message):
            message, fix = advice.groups()
        document.problems.append(node.problem("mjcf.warning", f"MuJoCo: {message}", fix, Severity.WARNING))
    return mjspec, compiled


def _strip_location(text: str) -> str:
    """A MuJoCo message on one line, without its prefix and element location."""
    return " ".join(_WRAPPING.sub("", text).split()).rstrip(".")


def _node_with_attribute(document: Document, text: str) -> Node | None:
    match = re.search(r"attribute '(\w+)'", text)
    nodes = (node for node in document.lines if match and match.group(1) in node.element.attributes)
    return next(nodes, None)


def _compilation_problems(document: Document, text: str) -> list[Problem]:
    """All problems of a document whose compilation failed with the message `text`."""
    node = document.node_at(text)
    message = _strip_location(text)
    fix = next((fix for hint, fix in _FIXES.items() if hint in text), "see MuJoCo's XML reference for this element")
    detected = value_problems(document)
    same_cause = [problem for problem in detected if _is_about(problem, node)]
    problems = [*document.problems, *detected]
    if not same_cause:
        location = node or document.root
        description = f"{location.title}: {message}" if node else message
        problems.append(location.problem("mjcf.refused", f"MuJoCo cannot compile {description}", fix))
    return sort_problems(problems, document)


def _is_about(problem: Problem, node: Node | None) -> bool:
    """Whether a detected problem is at the node of MuJoCo's error, which for inertial errors is the body."""
    if node is None:
        return False
    lines = {node.element.line, *(child.line for child in node.element.children if child.tag == "inertial")}
    return problem.file == node.element.file and problem.line in lines

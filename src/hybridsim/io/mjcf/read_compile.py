"""Compiling with MuJoCo, and what to say when it refuses: its message at the right line, and a way out.

MuJoCo stops at the first thing that it cannot compile. Mass properties and limits are the usual culprits, and
those of the whole file can be checked from its text, so they are all reported in one pass.
"""

import re
import warnings
from typing import Any

from hybridsim.core.errors import ModelError, Problem, Severity
from hybridsim.io.mjcf.read_document import Document
from hybridsim.io.mjcf.read_node import Node, mujoco_module
from hybridsim.io.mjcf.read_validate import in_order, value_problems

_FIXES = {
    "larger than mjMINVAL": "give the body an <inertial> with mass, or a <geom> with volume",
    "A + B >= C": "no distribution of mass has such moments; check the largest one",
    "positive eigenvalues": "check signs and off-diagonal entries; an inertia is a positive definite matrix",
    "axis too small": 'give a vector of non-zero length, such as axis="0 0 1"',
    "attribute missing": "add the attribute",
    "autolimits": 'write limited="true" on the joint, or remove its range',
    "repeated name": "rename one of the two",
    "free joint can only": "a free joint must hang on the world; move the body out of its parent",
    "more than 6 dofs": "remove joints: a free joint needs no others",
    "global coordinates": "load and save the file with MuJoCo 2.3.3 or older, which converts it",
    "unrecognized attribute": "check the spelling against the MJCF reference, or remove the attribute",
    "unrecognized element": "check the spelling against the MJCF reference, or remove the element",
    "invalid keyword": "check the spelling against the MJCF reference",
    "allocate memory": "the model is too large; lower the counts",
    "not found": "check the spelling; the name must exist in the file",
    "unknown": "check the spelling; the name must exist in the file",
}
_WRAPPING = re.compile(r"^(XML )?(Error: )*|\s*Element (name )?'[^']*'(, id -?\d+)?(, line \d+)?\s*$")
_ADVICE = re.compile(r"(.*\bdeprecated\b[^:]*):\s*(.*)", re.DOTALL)


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
            # muscles are not modelled; simulating them to find their lengths could take any time, and fail
            mjspec.compiler.LRopt.mode = int(mujoco.mjtLRMode.mjLRMODE_NONE)
            compiled = mjspec.compile()
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise ModelError(_refusal(document, str(error))) from None
    for text in dict.fromkeys(str(warning.message).strip() for warning in caught):
        place = document.node(text) or _holder_of_attribute(document, text) or document.root
        message, fix = _bare(text), "the model can be used as it is; see MuJoCo's XML reference"
        if advice := _ADVICE.fullmatch(message):
            message, fix = advice.groups()
        document.problems.append(place.problem("mjcf.warning", f"MuJoCo: {message}", fix, Severity.WARNING))
    return mjspec, compiled


def _bare(text: str) -> str:
    """A message of MuJoCo in one line, without the element that it names in its own way."""
    return " ".join(_WRAPPING.sub("", text).split()).rstrip(".")


def _holder_of_attribute(document: Document, text: str) -> Node | None:
    match = re.search(r"attribute '(\w+)'", text)
    holders = (node for node in document.lines if match and match.group(1) in node.element.attributes)
    return next(holders, None)


def _refusal(document: Document, text: str) -> list[Problem]:
    """Everything that is known to be wrong with a document that MuJoCo refused with the message `text`."""
    node = document.node(text)
    message = _bare(text)
    fix = next((fix for hint, fix in _FIXES.items() if hint in text), "see MuJoCo's XML reference for this element")
    others = value_problems(document)
    culprits = [problem for problem in others if _is_about(problem, node)]
    problems = [*document.problems, *others]
    if not culprits:
        place = node or document.root
        what = f"{place.title}: {message}" if node else message
        problems.append(place.problem("mjcf.refused", f"MuJoCo refuses this: {what}", fix))
    return in_order(problems, document)


def _is_about(problem: Problem, node: Node | None) -> bool:
    """Whether a problem of ours is what MuJoCo means; it names a body where we name its inertial."""
    if node is None:
        return False
    lines = {node.element.line, *(child.line for child in node.element.children if child.tag == "inertial")}
    return problem.file == node.element.file and problem.line in lines

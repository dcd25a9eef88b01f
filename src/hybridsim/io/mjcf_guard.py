"""What MuJoCo must not be given: numbers that make no sense, and models that grow without bounds."""

import math
import re

from hybridsim.core.errors import ModelError, Problem
from hybridsim.io.mjcf_node import Node, words
from hybridsim.io.numbers import Reader
from hybridsim.io.xml import Element

MAX_ELEMENTS = 100_000
"""Elements that a model may have after `<replicate>`, `<composite>` and `<flexcomp>` are written out."""
MAX_GRID = 10_000_000
"""Points of a height field."""
MAX_MESH_PARAMETER = 1000
"""Subdivisions of a built-in mesh."""

_NUMERIC = words(
    "mass diaginertia fullinertia pos quat euler axisangle xyaxes zaxis axis ref springref stiffness damping "
    "frictionloss armature size fromto friction density gear kp kv gainprm biasprm gravity timestep offset"
)
_REFERENCES = words(
    "name class childclass prefix file model body body1 body2 joint joint1 joint2 jointinparent geom geom1 "
    "geom2 site site1 site2 tendon tendon1 tendon2 mesh hfield flex target objname refname refsite "
    "slidersite cranksite sidesite actuator camera subtree1 subtree2 material texture"
)
"""Attributes that hold names."""
_NAN = re.compile(r"(?<!\S)[+-]?nan", re.IGNORECASE)
_RANGES = words("range ctrlrange forcerange actuatorfrcrange")
_CHECKED_TAGS = words("body inertial joint geom site frame replicate option general motor position velocity")


def check_numbers(element: Element, problems: list[Problem]) -> None:
    """Note all numbers of an element that cannot be read or are not finite.

    MuJoCo would stop at the first number that it cannot read, accept an infinite mass, and on NaN write a log file
    into the working folder.
    """
    reader = Reader(problems)
    checked = element.tag in _CHECKED_TAGS
    for name, text in element.attributes.items():
        is_number = checked and (name in _NUMERIC or (name in _RANGES and "inf" not in text.lower()))
        if is_number or (name not in _REFERENCES and _NAN.search(text)):
            size = len(text.split())
            reader.vector(element, name, size, [0.0] * size)


def expanded_size(root: Node, sizes: dict[str, float]) -> float:
    """Number of elements once everything is written out; a few bytes can ask for a billion of them.

    Args:
        root: the model.
        sizes: number of elements of the models that it attaches.

    Raises:
        ModelError: there would be too many.
    """
    total = 0.0

    def count(node: Node, times: float) -> None:
        nonlocal total
        if node.tag in ("replicate", "composite", "flexcomp"):
            times *= math.prod(_whole_numbers(node.get("count")))
        total += times * sizes.get(node.get("model"), 1.0) if node.tag == "attach" else times
        message = ""
        if total > MAX_ELEMENTS:
            message = f"{node.title} makes the model grow beyond {MAX_ELEMENTS} elements"
        grid = f"{node.get('nrow')} {node.get('ncol')}"
        if node.tag == "hfield" and math.prod(_whole_numbers(grid)) > MAX_GRID:
            message = f"{node.title} has more than {MAX_GRID} points"
        if node.tag == "mesh" and max(_whole_numbers(node.get("params")), default=0) > MAX_MESH_PARAMETER:
            message = f"{node.title} asks for a far too fine mesh"
        if message:
            raise ModelError([node.problem("mjcf.too_large", message, "lower the counts")])
        for child in node.children:
            count(child, times)

    count(root, 1.0)
    return total


def _whole_numbers(text: str) -> list[float]:
    numbers = [float(word) for word in text.split() if re.fullmatch(r"\d{1,12}", word)]
    return [max(number, 1.0) for number in numbers]

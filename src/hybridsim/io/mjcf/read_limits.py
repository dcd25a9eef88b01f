"""What MuJoCo must not be given: numbers that make no sense, and models that grow without bounds.

MuJoCo compiles in this process, so a file must not be able to keep it busy for minutes or to fill the memory. A few
bytes can ask for a billion bodies. The limits leave room for any robot and keep the compilation of the worst file to
about a minute.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator

from hybridsim.core.errors import Problem
from hybridsim.io.attributes import Reader
from hybridsim.io.mjcf.read_node import Node, words
from hybridsim.io.xml import Element

MAX_NESTED_BODIES = 200
"""Bodies one inside the other."""
MAX_TREE = 1e9
"""Number of bodies, squared, times how many are one inside the other: the time to compile grows with that."""
MAX_NAME = 1000
"""Characters of a name; copies write it out again and again."""
MAX_POINTS_PER_BYTE = 1 / 20
"""Points of a flexible body that a file describes."""
LIMITS: dict[str, tuple[float, str]] = {
    "elements": (50_000, "lower the counts"),
    "bodies": (5_000, "lower the counts"),
    "characters": (100_000_000, "lower the counts, or shorten the attributes"),
    "copies of references": (1_000_000, "lower the count of the <replicate>, or refer to less in it"),
    "points of height fields": (10_000_000, "use a coarser height field"),
    "points of built-in meshes": (300_000, "ask for fewer subdivisions"),
    "bytes of meshes and height fields": (200_000_000, "simplify the meshes"),
    "activations and samples": (1_000_000, "lower 'actdim' or 'nsample'"),
}
"""How much a model may have, all copies written out, and what to do if it is more."""

_NUMERIC = words(
    "mass diaginertia fullinertia pos quat euler axisangle xyaxes zaxis axis ref springref stiffness damping "
    "frictionloss armature size fromto friction density gear kp kv gainprm biasprm gravity timestep offset "
    "solref solimp"
)
_NAMES = words("name class childclass prefix sep")
_REFERENCES = _NAMES | words(
    "file model body body1 body2 joint joint1 joint2 jointinparent geom geom1 "
    "geom2 site site1 site2 tendon tendon1 tendon2 mesh hfield flex target objname refname refsite "
    "slidersite cranksite sidesite actuator camera subtree1 subtree2 material texture"
)
"""Attributes that hold names."""
_NAN = re.compile(r"(?<!\S)[+-]?nan", re.IGNORECASE)
_RANGES = words("range ctrlrange forcerange actuatorfrcrange")
_CHECKED_TAGS = words("body inertial joint geom site frame replicate option general motor position velocity")
_PNG = b"\x89PNG\r\n\x1a\n"


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


class Growth:
    """How large one model becomes; what is too much is noted where it happens."""

    def __init__(self, problems: list[Problem]):
        self.problems = problems
        self.is_too_large = False
        self.totals: dict[str, float] = defaultdict(float)
        self.depth = 0.0
        """Bodies one inside the other."""
        self.attached: dict[str, Growth] = {}
        """Models that this one attaches, by name."""
        self._mesh_points: dict[str, float] = {}
        self._copied: dict[str, float] = {}
        """How often the named elements inside `<replicate>` are copied."""

    def add(self, node: Node, what: str, amount: float) -> None:
        """Count something; the element with which it becomes too much gets the blame."""
        limit, fix = LIMITS[what]
        self.totals[what] += amount
        if self.totals[what] > limit:
            self._refuse(node, f"{node.title} makes the model grow beyond {limit:.0f} {what}", fix)

    def add_file(self, node: Node, content: bytes) -> None:
        """Count the content of an asset's file."""
        self.add(node, "bytes of meshes and height fields", len(content))
        if node.tag == "hfield" and content.startswith(_PNG):
            # a small image can unpack to a huge one; its size stands at the beginning
            width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
            self.add(node, "points of height fields", width * height)
        if node.tag == "flexcomp":
            self.add(node, "bodies", len(content) * MAX_POINTS_PER_BYTE)

    def add_model(self, root: Node) -> None:
        """Count all elements of a model, copies written out."""
        for section in sorted(root.children, key=lambda node: node.tag != "asset"):
            if section.is_used:
                self._count(section, 1.0, 0.0)
        for node in (node for node in root.walk() if node.is_used):
            copies = max((self._copied.get(text, 1.0) for text in _references(node)), default=1.0)
            if copies > 1.0:
                self.add(node, "copies of references", copies**2)

    def _count(self, node: Node, times: float, depth: float) -> None:
        self._check_names(node)
        depth += node.tag == "body"
        times, depth = self._multiplied(node, times, depth)
        self.add(node, "elements", times)
        self.add(node, "characters", times * sum(map(len, node.element.attributes.values())))
        if node.tag in ("body", "composite", "flexcomp"):
            self.add(node, "bodies", times)
        if node.tag == "attach":
            depth = self._count_attached(node, times, depth)
        if depth > MAX_NESTED_BODIES:
            message = f"{node.title} nests more than {MAX_NESTED_BODIES} bodies in each other"
            self._refuse(node, message, "shorten the chain")
        self.depth = max(self.depth, depth)
        if self.totals["bodies"] ** 2 * self.depth > MAX_TREE:
            bodies = f"{self.totals['bodies']:.0f} bodies, up to {self.depth:.0f} in each other"
            self._refuse(node, f"{node.title} makes a tree of {bodies}", "make fewer or shorter chains")
        if times > 1.0 and node.get("name"):
            self._copied[node.get("name")] = times
        self._count_numbers(node, times)
        for child in node.children:
            if child.is_used:
                self._count(child, times, depth)

    def _multiplied(self, node: Node, times: float, depth: float) -> tuple[float, float]:
        """How often an element is there, and how deep, once it is written out."""
        if node.tag == "replicate":
            return times * _product(node.get("count")), depth
        if node.tag == "composite":
            links = max(_product(node.get("count")), len(node.get("vertex").split()) / 3)
            return times * links, depth + links
        if node.tag == "flexcomp":
            cells = math.prod(2.0 * count + 1.0 for count in _numbers(node.get("cellcount")))
            points = max(_product(node.get("count", "10 10 10")), cells)
            listed = len(node.get("point").split()) / 3
            return times * max(points, listed, self._mesh_points.get(node.get("mesh"), 0.0)), depth
        return times, depth

    def _count_attached(self, node: Node, times: float, depth: float) -> float:
        child = self.attached.get(node.get("model"))
        if child is None:
            return depth
        for what, amount in child.totals.items():
            self.add(node, what, times * amount)
        self.add(node, "characters", times * child.totals["elements"] * len(node.get("prefix")))
        return depth + child.depth

    def _count_numbers(self, node: Node, times: float) -> None:
        """Count numbers that a few characters ask for."""
        if node.tag == "hfield":
            self.add(node, "points of height fields", _product(f"{node.get('nrow')} {node.get('ncol')}"))
        if node.tag == "mesh" and node.get("builtin"):
            # some shapes have one resolution for both directions
            first, second, *_ = [*_numbers(node.get("params")), 1.0, 1.0]
            points = first * max(first, second)
            self._mesh_points[node.get("name")] = points
            self.add(node, "points of built-in meshes", points)
        asked = _product(node.get("actdim")) * _product(node.get("nsample"))
        if asked > 1.0:
            self.add(node, "activations and samples", times * asked)

    def _check_names(self, node: Node) -> None:
        for attribute in _NAMES:
            if len(node.get(attribute)) > MAX_NAME:
                message = f"{attribute!r} of <{node.tag}> has {len(node.get(attribute))} characters"
                self._refuse(node, message, f"names may have at most {MAX_NAME}")

    def _refuse(self, node: Node, message: str, fix: str) -> None:
        """Note the first thing that is too much; the rest follows from it."""
        if not self.is_too_large:
            self.problems.append(node.problem("mjcf.too_large", message, fix))
        self.is_too_large = True


def _references(node: Node) -> Iterator[str]:
    return (text for name, text in node.element.attributes.items() if name in _REFERENCES - _NAMES)


def _product(text: str) -> float:
    return math.prod(_numbers(text))


def _numbers(text: str) -> list[float]:
    """The numbers of a text, at least one each, as factors; what is no number has been, or will be, refused."""
    numbers = []
    for word in text.split():
        try:
            numbers.append(max(float(word), 1.0))
        except ValueError:
            continue
    return numbers

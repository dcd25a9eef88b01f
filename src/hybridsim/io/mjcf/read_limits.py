"""Limits on numeric values and expanded model size, checked before MuJoCo compiles a file.

MuJoCo compiles in this process, so a file must not be able to block it for minutes or to exhaust the memory. A few
bytes can define a billion bodies. The limits are generous for any robot and keep the compilation time of the worst
file to about a minute.
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
"""Maximum depth of nested bodies."""
MAX_TREE_COST = 1e9
"""Upper bound on (number of bodies)² · depth, to which the compilation time is proportional."""
MAX_NAME_CHARACTERS = 1000
"""Maximum number of characters of a name, since every copy repeats it."""
MAX_POINTS_PER_BYTE = 1 / 20
"""Maximum number of points of a flexible body per byte of its file."""
LIMITS: dict[str, tuple[float, str]] = {
    "elements": (50_000, "reduce the counts"),
    "bodies": (5_000, "reduce the counts"),
    "characters": (100_000_000, "reduce the counts, or shorten the attributes"),
    "copies of references": (1_000_000, "reduce the count of the <replicate>, or the references to its elements"),
    "points of height fields": (10_000_000, "use a coarser height field"),
    "points of built-in meshes": (300_000, "reduce the subdivisions"),
    "bytes of meshes and height fields": (200_000_000, "simplify the meshes"),
    "activations and samples": (1_000_000, "reduce 'actdim' or 'nsample'"),
}
"""Upper bounds on the expanded model, each with a fix."""

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
"""Attributes whose values are names."""
_NAN = re.compile(r"(?<!\S)[+-]?nan", re.IGNORECASE)
_RANGES = words("range ctrlrange forcerange actuatorfrcrange")
_CHECKED_TAGS = words("body inertial joint geom site frame replicate option general motor position velocity")
_PNG = b"\x89PNG\r\n\x1a\n"


def check_numbers(element: Element, problems: list[Problem]) -> None:
    """Report all numbers of an element that cannot be parsed or are not finite.

    MuJoCo would stop at the first invalid number, accept an infinite mass, and on NaN write a log file into the working
    directory.
    """
    reader = Reader(problems)
    checked = element.tag in _CHECKED_TAGS
    for name, text in element.attributes.items():
        is_number = checked and (name in _NUMERIC or (name in _RANGES and "inf" not in text.lower()))
        if is_number or (name not in _REFERENCES and _NAN.search(text)):
            size = len(text.split())
            values = reader.vector(element, name, size, [0.0] * size)
            if element.tag == "option" and name == "timestep" and size == 1 and values[0] <= 0.0:
                message = f"the time step is {values[0]:g}"
                reader.report(element, "timestep.invalid", message, "specify a positive value in seconds")


class SizeCounter:
    """Size of a model after expansion; the element that exceeds a limit is reported."""

    def __init__(self, problems: list[Problem]):
        self.problems = problems
        self.is_too_large = False
        self.totals: dict[str, float] = defaultdict(float)
        self.depth = 0.0
        """Depth of nested bodies."""
        self.attached: dict[str, SizeCounter] = {}
        """Sizes of attached models, by name."""
        self._mesh_points: dict[str, float] = {}
        self._copy_counts: dict[str, float] = {}
        """Number of copies of named elements inside `<replicate>`."""

    def add(self, node: Node, what: str, amount: float) -> None:
        """Add to a total; reports the element if the total exceeds its limit."""
        limit, fix = LIMITS[what]
        self.totals[what] += amount
        if self.totals[what] > limit:
            self._report_excess(node, f"at {node.title} the model exceeds {limit:.0f} {what}", fix)

    def add_file(self, node: Node, content: bytes) -> None:
        """Count the content of an asset file."""
        self.add(node, "bytes of meshes and height fields", len(content))
        if node.tag == "hfield" and content.startswith(_PNG):
            # a small image file can decompress to a huge image, whose size is in the header
            width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
            self.add(node, "points of height fields", width * height)
        if node.tag == "flexcomp":
            self.add(node, "bodies", len(content) * MAX_POINTS_PER_BYTE)

    def add_model(self, root: Node) -> None:
        """Count all elements of a model, including copies."""
        for section in sorted(root.children, key=lambda node: node.tag != "asset"):
            if section.is_used:
                self._count(section, 1.0, 0.0)
        for node in (node for node in root.walk() if node.is_used):
            copies = max((self._copy_counts.get(text, 1.0) for text in _references(node)), default=1.0)
            if copies > 1.0:
                self.add(node, "copies of references", copies**2)

    def _count(self, node: Node, copies: float, depth: float) -> None:
        self._check_names(node)
        depth += node.tag == "body"
        copies, depth = self._expanded_count(node, copies, depth)
        self.add(node, "elements", copies)
        self.add(node, "characters", copies * sum(map(len, node.element.attributes.values())))
        if node.tag in ("body", "composite", "flexcomp"):
            self.add(node, "bodies", copies)
        if node.tag == "attach":
            depth = self._count_attached(node, copies, depth)
        if depth > MAX_NESTED_BODIES:
            message = f"{node.title} is nested more than {MAX_NESTED_BODIES} bodies deep"
            self._report_excess(node, message, "shorten the kinematic chain")
        self.depth = max(self.depth, depth)
        if self.totals["bodies"] ** 2 * self.depth > MAX_TREE_COST:
            bodies = f"{self.totals['bodies']:.0f} bodies, up to {self.depth:.0f} levels deep"
            self._report_excess(node, f"at {node.title} the tree has {bodies}", "use fewer or shorter kinematic chains")
        if copies > 1.0 and node.get("name"):
            self._copy_counts[node.get("name")] = copies
        self._count_sizes(node, copies)
        for child in node.children:
            if child.is_used:
                self._count(child, copies, depth)

    def _expanded_count(self, node: Node, copies: float, depth: float) -> tuple[float, float]:
        """Number of copies of an element after expansion, and their nesting depth."""
        if node.tag == "replicate":
            return copies * _product(node.get("count")), depth
        if node.tag == "composite":
            links = max(_product(node.get("count")), len(node.get("vertex").split()) / 3)
            return copies * links, depth + links
        if node.tag == "flexcomp":
            cells = math.prod(2.0 * count + 1.0 for count in _parse_counts(node.get("cellcount")))
            points = max(_product(node.get("count", "10 10 10")), cells)
            explicit = len(node.get("point").split()) / 3
            return copies * max(points, explicit, self._mesh_points.get(node.get("mesh"), 0.0)), depth
        return copies, depth

    def _count_attached(self, node: Node, copies: float, depth: float) -> float:
        child = self.attached.get(node.get("model"))
        if child is None:
            return depth
        for what, amount in child.totals.items():
            self.add(node, what, copies * amount)
        self.add(node, "characters", copies * child.totals["elements"] * len(node.get("prefix")))
        return depth + child.depth

    def _count_sizes(self, node: Node, copies: float) -> None:
        """Count the sizes of arrays that attributes define."""
        if node.tag == "hfield":
            self.add(node, "points of height fields", _product(f"{node.get('nrow')} {node.get('ncol')}"))
        if node.tag == "mesh" and node.get("builtin"):
            # some built-in shapes have a single resolution for both directions
            first, second, *_ = [*_parse_counts(node.get("params")), 1.0, 1.0]
            points = first * max(first, second)
            self._mesh_points[node.get("name")] = points
            self.add(node, "points of built-in meshes", points)
        samples = _product(node.get("actdim")) * _product(node.get("nsample"))
        if samples > 1.0:
            self.add(node, "activations and samples", copies * samples)

    def _check_names(self, node: Node) -> None:
        for attribute in _NAMES:
            if len(node.get(attribute)) > MAX_NAME_CHARACTERS:
                message = f"{attribute!r} of <{node.tag}> has {len(node.get(attribute))} characters"
                self._report_excess(node, message, f"names may have at most {MAX_NAME_CHARACTERS} characters")

    def _report_excess(self, node: Node, message: str, fix: str) -> None:
        """Report the first excess only; further ones are consequences."""
        if not self.is_too_large:
            self.problems.append(node.problem("mjcf.too_large", message, fix))
        self.is_too_large = True


def _references(node: Node) -> Iterator[str]:
    return (text for name, text in node.element.attributes.items() if name in _REFERENCES - _NAMES)


def _product(text: str) -> float:
    return math.prod(_parse_counts(text))


def _parse_counts(text: str) -> list[float]:
    """Numbers in a text, clipped to at least 1; invalid words are skipped, since they are reported elsewhere."""
    numbers = []
    for word in text.split():
        try:
            numbers.append(max(float(word), 1.0))
        except ValueError:
            continue
    return numbers

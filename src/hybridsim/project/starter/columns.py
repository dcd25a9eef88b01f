"""What a column measures, guessed from its name: `pos_meas1`, `q:elbow`, `shoulder_velocity [deg/s]`, `tau2`."""

import re
from dataclasses import dataclass
from enum import StrEnum

from hybridsim.data.units import UNITS


class Kind(StrEnum):
    """Kinds of columns."""

    TIME = "time"
    POSITION = "position"
    VELOCITY = "velocity"
    TORQUE = "torque"
    COMMAND = "command"


_WORDS = {
    Kind.TIME: "time t timestamp timestamps stamp sec secs seconds ts clock",
    Kind.POSITION: "q pos position positions theta phi angle angles ang enc encoder qpos",
    Kind.VELOCITY: "qd dq vel velocity velocities omega speed speeds qvel dtheta thetad qdot dphi rate",
    Kind.TORQUE: "tau torque torques effort efforts force forces moment trq",
    Kind.COMMAND: "u ctrl control controls command commands cmd action actions",
}
KINDS = {word: kind for kind, words in _WORDS.items() for word in words.split()}
NOT_MEASURED = frozenset(
    "des desired ref reference target goal setpoint sp err error fric friction acc accel acceleration qdd ddq ddot qacc"
    " std var cov".split()
)
"""Words of columns that are neither measured nor what drove the motion."""
RANKS = {
    "meas": 0,
    "measured": 0,
    "raw": 0,
    "actual": 0,
    "filt": 2,
    "filtered": 2,
    "smooth": 2,
    "est": 3,
    "cmd": 2,
    "con": 2,
}
"""Of several columns that measure the same, the one with the least rank is taken; those without any of these have 1."""
_UNITS = {
    Kind.TIME: ("s", "ms", "us", "ns", "min"),
    Kind.POSITION: ("deg", "rad", "mrad", "rev", "mm", "cm", "m"),
    Kind.VELOCITY: ("rpm", "deg/s", "rad/s", "rev/s", "mm/s", "cm/s", "m/s"),
    Kind.TORQUE: ("Nm", "mNm", "N", "mN", "kN"),
    Kind.COMMAND: ("Nm", "mNm", "N", "V", "A", "rad", "deg", "rad/s"),
}
"""Units that a name may end with."""


@dataclass(frozen=True)
class Column:
    """What the name of a column says."""

    name: str
    words: tuple[str, ...]
    unit: str = ""
    """Empty if it does not say."""

    def without(self, part: tuple[str, ...]) -> "Column | None":
        """The column without the words of a name; None if they are not there, one after the other."""
        for k in range(len(self.words) - len(part) + 1):
            if self.words[k : k + len(part)] == part:
                return Column(self.name, self.words[:k] + self.words[k + len(part) :], self.unit)
        return None

    @property
    def kind(self) -> Kind | None:
        """What it is, if its words say so."""
        if NOT_MEASURED & set(self.words):
            return None
        found = {KINDS[word] for word in self.words if word in KINDS}
        if "dot" in self.words or {"d", "dt"} <= set(self.words):
            return Kind.VELOCITY if Kind.POSITION in found else None
        for kind in (Kind.TORQUE, Kind.VELOCITY):
            if kind in found:
                return kind
        # a position that is commanded was not measured
        if {Kind.POSITION, Kind.COMMAND} <= found:
            return None
        return next((kind for kind in Kind if kind in found), None)

    @property
    def number(self) -> int | None:
        """The only number in its name."""
        numbers = [int(word) for word in self.words if word.isdigit()]
        return numbers[0] if len(numbers) == 1 else None

    @property
    def rank(self) -> int:
        """How much else than a plain measurement it seems to be."""
        return min((RANKS[word] for word in self.words if word in RANKS), default=1)


def read_name(name: str) -> Column:
    """What the name of a column says."""
    rest, unit = name, ""
    bracket = re.fullmatch(r"(.*?)\s*[\[(]\s*([^\[\]()]+?)\s*[\])]", name)
    # a number in brackets is the column of an array
    if bracket and bracket[2] in UNITS and not bracket[2].isdigit():
        rest, unit = bracket[1], bracket[2]
    words = words_of(rest)
    kind = Column(name, words).kind
    if not unit and kind is not None:
        for candidate in sorted(_UNITS[kind], key=len, reverse=True):
            ending = re.search(rf"[_\s.:/-]{candidate.replace('/', '[_/p]?')}$", rest, re.IGNORECASE)
            if ending:
                unit, words = candidate, words_of(rest[: ending.start()])
                break
    return Column(name, words, unit)


def words_of(name: str) -> tuple[str, ...]:
    """Words and numbers in a name, in small letters: `leftElbow_2` has three."""
    return tuple(word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name))

"""Quantity of a column, guessed from its name: `pos_meas1`, `q:elbow`, `shoulder_velocity [deg/s]`, `tau2`."""

import re
from dataclasses import dataclass
from enum import StrEnum

from hybridsim.data.units import UNITS


class ColumnKind(StrEnum):
    """Kinds of columns."""

    TIME = "time"
    POSITION = "position"
    VELOCITY = "velocity"
    TORQUE = "torque"
    COMMAND = "command"


_WORDS = {
    ColumnKind.TIME: "time t timestamp timestamps stamp sec secs seconds ts clock",
    ColumnKind.POSITION: "q pos position positions theta phi angle angles ang enc encoder qpos",
    ColumnKind.VELOCITY: "qd dq vel velocity velocities omega speed speeds qvel dtheta thetad qdot dphi rate",
    ColumnKind.TORQUE: "tau torque torques effort efforts force forces moment trq",
    ColumnKind.COMMAND: "u ctrl control controls command commands cmd action actions",
}
KINDS = {word: kind for kind, words in _WORDS.items() for word in words.split()}
NOT_MEASURED = frozenset(
    "des desired ref reference target goal setpoint sp err error fric friction acc accel acceleration qdd ddq ddot qacc"
    " std var cov".split()
)
"""Words in the names of columns that are neither measurements nor commands."""
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
"""Ranks of words: of several columns of a quantity, the one with the lowest rank is used; the default rank is 1."""
_UNITS = {
    ColumnKind.TIME: ("s", "ms", "us", "ns", "min"),
    ColumnKind.POSITION: ("deg", "rad", "mrad", "rev", "mm", "cm", "m"),
    ColumnKind.VELOCITY: ("rpm", "deg/s", "rad/s", "rev/s", "mm/s", "cm/s", "m/s"),
    ColumnKind.TORQUE: ("Nm", "mNm", "N", "mN", "kN"),
    ColumnKind.COMMAND: ("Nm", "mNm", "N", "V", "A", "rad", "deg", "rad/s"),
}
"""Units that are recognized at the end of a name."""


@dataclass(frozen=True)
class LogColumn:
    """Parsed name of a column."""

    name: str
    words: tuple[str, ...]
    unit: str = ""
    """Unit in the name; empty if there is none."""

    def remove_words(self, part: tuple[str, ...]) -> "LogColumn | None":
        """Column without consecutive words; None if it does not contain them."""
        for k in range(len(self.words) - len(part) + 1):
            if self.words[k : k + len(part)] == part:
                return LogColumn(self.name, self.words[:k] + self.words[k + len(part) :], self.unit)
        return None

    @property
    def kind(self) -> ColumnKind | None:
        """Kind of the column; None if its words do not determine it."""
        if NOT_MEASURED & set(self.words):
            return None
        kinds = {KINDS[word] for word in self.words if word in KINDS}
        if "dot" in self.words or {"d", "dt"} <= set(self.words):
            return ColumnKind.VELOCITY if ColumnKind.POSITION in kinds else None
        for kind in (ColumnKind.TORQUE, ColumnKind.VELOCITY):
            if kind in kinds:
                return kind
        # a commanded position is not a measurement
        if {ColumnKind.POSITION, ColumnKind.COMMAND} <= kinds:
            return None
        return next((kind for kind in ColumnKind if kind in kinds), None)

    @property
    def number(self) -> int | None:
        """Number in the name, if there is exactly one."""
        numbers = [int(word) for word in self.words if word.isdigit()]
        return numbers[0] if len(numbers) == 1 else None

    @property
    def rank(self) -> int:
        """Rank among columns of the same quantity; 0 for columns marked as measured, 1 by default."""
        return min((RANKS[word] for word in self.words if word in RANKS), default=1)


def parse_column_name(name: str) -> LogColumn:
    """Parse the name of a column."""
    stem, unit = name, ""
    bracket = re.fullmatch(r"(.*?)\s*[\[(]\s*([^\[\]()]+?)\s*[\])]", name)
    # a number in brackets is the column index of an array
    if bracket and bracket[2] in UNITS and not bracket[2].isdigit():
        stem, unit = bracket[1], bracket[2]
    words = words_of(stem)
    kind = LogColumn(name, words).kind
    if not unit and kind is not None:
        for candidate in sorted(_UNITS[kind], key=len, reverse=True):
            suffix = re.search(rf"[_\s.:/-]{candidate.replace('/', '[_/p]?')}$", stem, re.IGNORECASE)
            if suffix:
                unit, words = candidate, words_of(stem[: suffix.start()])
                break
    return LogColumn(name, words, unit)


def words_of(name: str) -> tuple[str, ...]:
    """Words and numbers in a name, in lower case: `leftElbow_2` has three."""
    return tuple(word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name))

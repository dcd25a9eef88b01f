"""Which columns of recordings belong to which joints of a model, guessed from their names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hybridsim.model.joints import JointType
from hybridsim.model.model import Model
from hybridsim.project.starter.columns import Column, Kind, read_name, words_of

OWN_PREFIXES = {"q:": Kind.POSITION, "qd:": Kind.VELOCITY}
"""How columns begin that `hybridsim simulate` writes; the rest is the coordinate's name."""


@dataclass(frozen=True)
class Match:
    """A column that was recognised."""

    column: Column
    kind: Kind
    target: str
    """Name of a coordinate, degree of freedom or joint."""


@dataclass(frozen=True)
class Matches:
    """What was made of all columns."""

    found: tuple[Match, ...]
    """In the order of the model, positions first."""
    spare: tuple[Match, ...]
    """Columns that measure the same as one that was found."""
    unknown: tuple[str, ...]

    def of(self, *kinds: Kind) -> list[Match]:
        """Those of some kinds."""
        return [match for match in self.found if match.kind in kinds]


def match_columns(names: Iterable[str], model: Model, time: str = "") -> Matches:
    """Find the joint of every column.

    A column belongs to the joint whose name it contains, or else to the one that its number means: the joint with that
    number in its own name, or the so manieth one, counted from 0 if any column has a 0, else from 1.

    Args:
        names: of the columns.
        model: the mechanism.
        time: the time column, which is passed over.
    """
    columns = [read_name(name) for name in names if name != time]
    joints = scalar_joints(model)
    sure = [match for column in columns if (match := _by_own_name(column, model) or _by_name(column, joints))]
    done = {match.column.name for match in sure}
    numbered = _by_number([column for column in columns if column.name not in done], joints)
    order = {name: k for k, name in enumerate((*model.topology.coordinate_names, *model.topology.dof_names))}
    best: dict[tuple[Kind, str], Match] = {}
    spare = []
    for match in sorted([*sure, *numbered], key=lambda m: (list(Kind).index(m.kind), order[m.target], m.column.rank)):
        if (match.kind, match.target) in best:
            spare.append(match)
        else:
            best[match.kind, match.target] = match
    known = {match.column.name for match in (*best.values(), *spare)}
    return Matches(
        tuple(best.values()), tuple(spare), tuple(column.name for column in columns if column.name not in known)
    )


def scalar_joints(model: Model) -> list[str]:
    """Joints with one coordinate of their own."""
    topology = model.topology
    return [
        name
        for name, kind, master in zip(topology.joint_names, topology.joint_types, topology.mimics, strict=True)
        if kind in (JointType.REVOLUTE, JointType.PRISMATIC) and master < 0
    ]


def slides(model: Model, joint: str) -> bool:
    """Does a joint slide, rather than turn?"""
    topology = model.topology
    return joint in topology.joint_names and (
        topology.joint_types[topology.joint_names.index(joint)] is JointType.PRISMATIC
    )


def _by_own_name(column: Column, model: Model) -> Match | None:
    """Columns that this program wrote."""
    for prefix, kind in OWN_PREFIXES.items():
        names = model.topology.coordinate_names if kind is Kind.POSITION else model.topology.dof_names
        if column.name.startswith(prefix) and column.name[len(prefix) :] in names:
            return Match(column, kind, column.name[len(prefix) :])
    return None


def _by_name(column: Column, joints: Sequence[str]) -> Match | None:
    """A column that contains the name of a joint, and of several the longest."""
    rests: Mapping[str, Column] = {
        joint: rest for joint in joints if (rest := column.without(words_of(joint))) is not None and words_of(joint)
    }
    if not rests:
        return None
    most = max(len(words_of(joint)) for joint in rests)
    longest = [joint for joint in rests if len(words_of(joint)) == most]
    if len(longest) > 1:
        return None
    rest = rests[longest[0]]
    # a column that has the name of the joint and nothing else is its position
    kind = rest.kind or (Kind.POSITION if not rest.words else None)
    return Match(column, kind, longest[0]) if kind not in (None, Kind.TIME) else None


def _by_number(columns: Sequence[Column], joints: Sequence[str]) -> list[Match]:
    found = []
    for kind in Kind:
        if kind is Kind.TIME:
            continue
        own = [column for column in columns if column.kind is kind]
        numbers = {column.number for column in own if column.number is not None}
        target = _numbering(numbers, joints)
        for column in own:
            if column.number is None:
                # without a number only where there is no choice
                joint = joints[0] if len(joints) == 1 else None
            else:
                joint = target.get(column.number)
            if joint is not None:
                found.append(Match(column, kind, joint))
    return found


def _numbering(numbers: set[int], joints: Sequence[str]) -> dict[int, str]:
    """Which joint each number means."""
    own = {int(words_of(joint)[-1]): joint for joint in joints if words_of(joint) and words_of(joint)[-1].isdigit()}
    if len(own) == len(joints) and numbers <= set(own):
        return own
    first = 0 if 0 in numbers else 1
    return dict(enumerate(joints, start=first))

"""Matching of columns to joints of a model by name."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.model import Model
from hybridsim.project.starter.columns import ColumnKind, LogColumn, parse_column_name, words_of

SIMULATED_COLUMN_PREFIXES = {"q:": ColumnKind.POSITION, "qd:": ColumnKind.VELOCITY}
"""Prefixes of columns written by `hybridsim simulate`; the name of the coordinate follows."""


@dataclass(frozen=True)
class Match:
    """A recognized column."""

    column: LogColumn
    kind: ColumnKind
    target: str
    """Name of a coordinate, degree of freedom or joint."""


@dataclass(frozen=True)
class Matches:
    """Result of matching all columns."""

    best: tuple[Match, ...]
    """One match for each quantity, in the order of the model, positions first."""
    duplicates: tuple[Match, ...]
    """Columns of quantities for which there is a better match."""
    unrecognized: tuple[str, ...]

    def select_kinds(self, *kinds: ColumnKind) -> list[Match]:
        """Best matches of given kinds."""
        return [match for match in self.best if match.kind in kinds]


def match_columns(names: Iterable[str], model: Model, time: str = "") -> Matches:
    """Match columns to joints.

    A column is matched to the joint whose name it contains, or else by its number: to the joint with that number in its
    name, or to the joint with that index, counted from 0 if any column has a 0, else from 1.

    Args:
        names: names of the columns.
        model: the mechanism.
        time: time column, which is skipped.
    """
    columns = [parse_column_name(name) for name in names if name != time]
    joints = one_dof_joints(model)
    by_name = ((_match_simulated_column(column, model) or _match_name(column, joints)) for column in columns)
    named = [match for match in by_name if match is not None]
    matched = {match.column.name for match in named}
    numbered = _match_numbers([column for column in columns if column.name not in matched], joints)
    order = {name: k for k, name in enumerate((*model.topology.coordinate_names, *model.topology.dof_names))}
    best: dict[tuple[ColumnKind, str], Match] = {}
    duplicates = []
    kinds = list(ColumnKind)
    for match in sorted([*named, *numbered], key=lambda m: (kinds.index(m.kind), order[m.target], m.column.rank)):
        if (match.kind, match.target) in best:
            duplicates.append(match)
        else:
            best[match.kind, match.target] = match
    recognized = {match.column.name for match in (*best.values(), *duplicates)}
    unrecognized = tuple(column.name for column in columns if column.name not in recognized)
    return Matches(tuple(best.values()), tuple(duplicates), unrecognized)


def one_dof_joints(model: Model) -> list[str]:
    """Independent joints with one degree of freedom."""
    topology = model.topology
    return [
        name
        for name, kind, master in zip(topology.joint_names, topology.joint_types, topology.masters, strict=True)
        if kind in (ElementaryJointType.REVOLUTE, ElementaryJointType.PRISMATIC) and master < 0
    ]


def is_prismatic(model: Model, joint: str) -> bool:
    """Whether a joint is prismatic."""
    topology = model.topology
    return joint in topology.joint_names and (
        topology.joint_types[topology.joint_names.index(joint)] is ElementaryJointType.PRISMATIC
    )


def _match_simulated_column(column: LogColumn, model: Model) -> Match | None:
    """Match of a column written by `hybridsim simulate`."""
    for prefix, kind in SIMULATED_COLUMN_PREFIXES.items():
        names = model.topology.coordinate_names if kind is ColumnKind.POSITION else model.topology.dof_names
        if column.name.startswith(prefix) and column.name[len(prefix) :] in names:
            return Match(column, kind, column.name[len(prefix) :])
    return None


def _match_name(column: LogColumn, joints: Sequence[str]) -> Match | None:
    """Match of a column with the joint of the longest name that it contains."""
    remainders: Mapping[str, LogColumn] = {
        joint: remainder
        for joint in joints
        if (remainder := column.remove_words(words_of(joint))) is not None and words_of(joint)
    }
    if not remainders:
        return None
    length = max(len(words_of(joint)) for joint in remainders)
    longest = [joint for joint in remainders if len(words_of(joint)) == length]
    if len(longest) > 1:
        return None
    remainder = remainders[longest[0]]
    # a column with the name of the joint only is its position
    kind = remainder.kind or (ColumnKind.POSITION if not remainder.words else None)
    return Match(column, kind, longest[0]) if kind not in (None, ColumnKind.TIME) else None


def _match_numbers(columns: Sequence[LogColumn], joints: Sequence[str]) -> list[Match]:
    matches = []
    for kind in ColumnKind:
        if kind is ColumnKind.TIME:
            continue
        of_kind = [column for column in columns if column.kind is kind]
        numbers = {column.number for column in of_kind if column.number is not None}
        targets = _joints_by_number(numbers, joints)
        for column in of_kind:
            if column.number is None:
                # a column without a number matches only a single joint
                joint = joints[0] if len(joints) == 1 else None
            else:
                joint = targets.get(column.number)
            if joint is not None:
                matches.append(Match(column, kind, joint))
    return matches


def _joints_by_number(numbers: set[int], joints: Sequence[str]) -> dict[int, str]:
    """Joints by the numbers in names of columns."""
    numbered = {
        int(words_of(joint)[-1]): joint for joint in joints if words_of(joint) and words_of(joint)[-1].isdigit()
    }
    if len(numbered) == len(joints) and numbers <= set(numbered):
        return numbered
    first = 0 if 0 in numbers else 1
    return dict(enumerate(joints, start=first))

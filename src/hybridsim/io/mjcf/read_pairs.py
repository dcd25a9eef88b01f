"""Pairs of shapes that an MJCF file lets collide by name, each with a friction of its own.

MuJoCo takes nothing of such a contact from the two shapes, not even what the `<pair>` leaves out: its friction is then
1, whatever the shapes' is. Here the friction is the pair's, and how it gives way the shapes'.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from hybridsim.io.mjcf.read_shapes import FRICTIONLESS, sliding_friction

NamedPairs = dict[tuple[str, str], int]
"""MuJoCo's numbers of pairs, by the names of their shapes."""
_USUAL = {"solref": (0.02, 1.0), "solimp": (0.9, 0.95, 0.001, 0.5, 2.0)}
"""What MuJoCo gives to a pair, and to a shape, if the file says nothing."""


def named_pairs(m: Any, shapes: list[str], kept: set[str]) -> NamedPairs:
    """Pairs of a compiled model; of a pair that is given twice the last one.

    Args:
        m: the `MjModel`.
        shapes: names of all its shapes.
        kept: names of those that can collide here.
    """
    pairs: NamedPairs = {}
    for k, (a, b) in enumerate(zip(m.pair_geom1.tolist(), m.pair_geom2.tolist(), strict=True)):
        names = (shapes[a], shapes[b])
        if kept.issuperset(names):
            pairs[names] = k
    return pairs


def pair_friction(m: Any, pairs: NamedPairs) -> dict[tuple[str, str], float]:
    """Coulomb's μ of every pair."""
    return {names: sliding_friction(m.pair_dim[k], m.pair_friction[k]) for names, k in pairs.items()}


def pair_doubts(m: Any, pairs: NamedPairs) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """What of pairs is not followed: a message, a way out, and the pairs that it is about."""
    ends = list(zip(m.pair_geom1.tolist(), m.pair_geom2.tolist(), strict=True))
    judged = (
        (
            "friction of pairs differs between the two tangents; the first number is used for both",
            "write the same number twice",
            lambda k: m.pair_dim[k] != FRICTIONLESS and m.pair_friction[k, 0] != m.pair_friction[k, 1],
        ),
        (
            "pairs are given more than once; the last one is used",
            "keep one of them",
            lambda k: ends.count(ends[k]) > 1,
        ),
        (
            # what a pair says itself is reported where it says it
            "solref and solimp are not taken from shapes by MuJoCo for pairs that do not give them; here they are",
            "leave them out of the shapes, or the pairs",
            lambda k: _is_usual(m, "pair", k) and not all(_is_usual(m, "geom", g) for g in ends[k]),
        ),
    )
    for message, fix, concerns in judged:
        if concerned := [names for names, k in pairs.items() if concerns(k)]:
            yield message, fix, concerned


def _is_usual(m: Any, kind: str, k: int) -> bool:
    return all(np.array_equal(getattr(m, f"{kind}_{what}")[k], usual) for what, usual in _USUAL.items())

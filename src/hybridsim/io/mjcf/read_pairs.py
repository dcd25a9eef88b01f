"""Explicit contact pairs of MJCF, each with its own friction.

In such a contact MuJoCo ignores the parameters of the two geoms; those that the `<pair>` does not specify have their
defaults, such as a friction of 1. hybridsim takes the friction from the pair and the compliance from the geoms.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from hybridsim.core.messages import name_list
from hybridsim.io.compare import pair_name
from hybridsim.io.mjcf.read_shapes import FRICTIONLESS, sliding_friction

NamedPairs = dict[tuple[str, str], int]
"""MuJoCo ids of pairs by the names of their geoms."""
_DEFAULTS = {"solref": (0.02, 1.0), "solimp": (0.9, 0.95, 0.001, 0.5, 2.0)}
"""MuJoCo's default values for pairs and geoms."""


def named_pairs(m: Any, geom_names: list[str], supported: set[str]) -> NamedPairs:
    """Pairs of a compiled model; the last definition of a pair applies.

    Args:
        m: the `MjModel`.
        geom_names: names of all its geoms.
        supported: names of the geoms that hybridsim supports.
    """
    pairs: NamedPairs = {}
    for k, (a, b) in enumerate(zip(m.pair_geom1.tolist(), m.pair_geom2.tolist(), strict=True)):
        names = (geom_names[a], geom_names[b])
        if supported.issuperset(names):
            pairs[names] = k
    return pairs


def pair_frictions(m: Any, pairs: NamedPairs) -> dict[tuple[str, str], float]:
    """Coulomb friction coefficient of every pair."""
    return {names: sliding_friction(m.pair_dim[k], m.pair_friction[k]) for names, k in pairs.items()}


def pair_warnings(m: Any, pairs: NamedPairs) -> Iterator[tuple[str, str, str]]:
    """Unsupported settings of pairs: message, fix and the name of the first affected pair."""
    pair_geoms = list(zip(m.pair_geom1.tolist(), m.pair_geom2.tolist(), strict=True))
    checks = (
        (
            "friction of pairs {} differs between the two tangents; the first value is used for both",
            "specify the same value twice",
            lambda k: m.pair_dim[k] != FRICTIONLESS and m.pair_friction[k, 0] != m.pair_friction[k, 1],
        ),
        (
            "pairs {} are defined more than once; the last definition is used",
            "remove the others",
            lambda k: pair_geoms.count(pair_geoms[k]) > 1,
        ),
        (
            # values specified on the pair itself are reported as unsupported attributes
            "pairs {} specify neither solref nor solimp, so those of the geoms are used; MuJoCo uses its defaults",
            "remove solref and solimp from the geoms, or remove the pairs",
            lambda k: _is_default(m, "pair", k) and not all(_is_default(m, "geom", g) for g in pair_geoms[k]),
        ),
    )
    for message, fix, applies in checks:
        if affected := [pair_name(names) for names, k in pairs.items() if applies(k)]:
            yield message.format(name_list(affected)), fix, affected[0]


def _is_default(m: Any, kind: str, k: int) -> bool:
    return all(np.array_equal(getattr(m, f"{kind}_{what}")[k], default) for what, default in _DEFAULTS.items())

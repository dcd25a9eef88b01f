"""The parts of a simulator: values that are handed to compiled code, and what decides what is computed."""

import os
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

FOLDABLE_ONES = ("R", "axis", "mimic_ratio", "rest", "home")
"""Parameters in which a one means "along this axis" or "as it is", so that it may become part of the code.

Zeros and infinities mean "not there" in all parameters but those of networks. A mass or a time step that happens to be
one is a value like any other."""
MIN_STEPS_FOR_THREADS = 20_000
"""Steps, counted over all trajectories, below which starting threads takes longer than it saves."""


def partition_simulator(sim: Any) -> tuple[Any, Any]:
    """A simulator's values, and the rest of it."""
    return eqx.partition(sim, jax.tree_util.tree_map_with_path(_is_handed_over, sim))


def runtime_cells(known: Any) -> frozenset[int]:
    """Cells of a simulator's values that are just a value, though it is one that could be part of the code."""
    found, first = [], 0
    for path, leaf in jax.tree_util.tree_flatten_with_path(known)[0]:
        names = [key.name for key in path if isinstance(key, jax.tree_util.GetAttrKey)]
        values = np.ravel(leaf)
        if names[0] == "blueprint":
            found += range(first, first + values.size)
        elif names[-1] not in FOLDABLE_ONES:
            found += (first + np.flatnonzero(np.abs(values) == 1.0)).tolist()
        first += values.size
    return frozenset(found)


def threads_for(batch: int, steps: int) -> int:
    """How many threads to use for so many trajectories of so many steps."""
    if batch * steps < MIN_STEPS_FOR_THREADS:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _is_handed_over(path: Any, x: Any) -> bool:
    """Is a leaf of a simulator a value, rather than something that decides what is computed?

    A plain number in a network may be either (`for _ in range(self.depth)`), so it decides, as it does for XLA.
    """
    if isinstance(x, Tracer | jax.Array | np.ndarray | np.generic):
        return True
    return isinstance(x, float) and path[0].name != "blueprint"

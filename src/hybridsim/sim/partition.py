"""Partition of a simulator into run-time values and static structure."""

import os
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

FOLDABLE_ONES = ("R", "axis", "mimic_ratio", "rest", "home")
"""Parameters in which a one is structural ("along this axis", "unchanged"), so that it may be compiled in.

Zeros and infinities are structural ("absent") in all parameters except those of networks. A mass or time step that
happens to be one is an ordinary value."""
MIN_STEPS_FOR_THREADS = 20_000
"""Total number of steps over all trajectories below which starting threads costs more than it saves."""


def partition_simulator(sim: Any) -> tuple[Any, Any]:
    """Run-time values of a simulator, and its static structure."""
    return eqx.partition(sim, jax.tree_util.tree_map_with_path(_is_runtime_value, sim))


def runtime_cells(untraced: Any) -> frozenset[int]:
    """Indices of packed values that stay run-time values although their current value could be compiled in."""
    cells, first = [], 0
    for path, leaf in jax.tree_util.tree_flatten_with_path(untraced)[0]:
        names = [key.name for key in path if isinstance(key, jax.tree_util.GetAttrKey)]
        values = np.ravel(leaf)
        if names[0] == "blueprint":
            cells += range(first, first + values.size)
        elif names[-1] not in FOLDABLE_ONES:
            cells += (first + np.flatnonzero(np.abs(values) == 1.0)).tolist()
        first += values.size
    return frozenset(cells)


def thread_count(batch: int, steps: int) -> int:
    """Number of threads for a batch of trajectories with this many steps each."""
    if batch * steps < MIN_STEPS_FOR_THREADS:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _is_runtime_value(path: Any, x: Any) -> bool:
    """Whether a leaf of a simulator is a run-time value rather than static.

    A Python scalar in a network may control the computation (`for _ in range(self.depth)`), so it is static, as it is
    for XLA.
    """
    if isinstance(x, Tracer | jax.Array | np.ndarray | np.generic):
        return True
    return isinstance(x, float) and path[0].name != "blueprint"

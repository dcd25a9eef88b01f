"""Numbers of a tree of arrays by place: a path of attributes and indices to an array, and a number's position in it.

Numbers are put in place by joining static slices, so that native code sees no indexing. As long as nothing is traced,
all of it is NumPy and nothing is compiled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import DictKey, GetAttrKey, KeyPath, SequenceKey

from hybridsim.core.types import AnyArray

Step = str | int | tuple[str]
"""An attribute by its name, an item of a sequence by its number, an entry of a dictionary by its key in a tuple."""
Path = tuple[Step, ...]


@dataclass(frozen=True)
class Number:
    """The place of one number."""

    path: Path
    index: int
    """Position in the array, row by row."""


def dotted(text: str) -> Path:
    """The path of attributes `sim.model.body`."""
    return tuple(text.split("."))


def path_of(keys: KeyPath) -> Path | None:
    """A path as JAX spells it; none if it goes through a container that knows its parts by no name."""
    steps: list[Step] = []
    for key in keys:
        if isinstance(key, GetAttrKey):
            steps.append(key.name)
        elif isinstance(key, SequenceKey):
            steps.append(key.idx)
        elif isinstance(key, DictKey) and isinstance(key.key, str):
            steps.append((key.key,))
        else:
            return None
    return tuple(steps)


def spelled(path: Path) -> str:
    """A path as users write it: `.layers[0].weight`."""
    return "".join(f".{s}" if isinstance(s, str) else f"[{s[0] if isinstance(s, tuple) else s}]" for s in path)


def leaf_at(tree: Any, path: Path) -> Any:
    """What lies at the end of a path."""
    for step in path:
        tree = getattr(tree, step) if isinstance(step, str) else tree[step[0] if isinstance(step, tuple) else step]
    return tree


class Writing:
    """Collects numbers to be put into a tree."""

    def __init__(self, tree: Any):
        self.tree = tree
        self.leaves: dict[Path, Any] = {}

    def put(self, path: Path, indices: Sequence[int], values: AnyArray) -> None:
        """Put numbers (n,) in these places of a leaf; in all of them if no place is given."""
        leaf = self.leaves[path] if path in self.leaves else leaf_at(self.tree, path)
        self.leaves[path] = _written(leaf, indices, values)

    def done(self) -> Any:
        """The tree with all numbers in place."""
        paths = list(self.leaves)
        if not paths:
            return self.tree
        return eqx.tree_at(lambda tree: [leaf_at(tree, p) for p in paths], self.tree, list(self.leaves.values()))


def is_jax(x: Any) -> bool:
    """Is it JAX's to compute with, rather than NumPy's?"""
    return isinstance(x, Tracer | jax.Array)


def _written(leaf: AnyArray, indices: Sequence[int], values: AnyArray) -> AnyArray:
    shape = np.shape(leaf)
    if not (is_jax(leaf) or is_jax(values)):
        flat = np.array(leaf).reshape(-1)
        flat[list(indices) if indices else slice(None)] = values
        return flat.reshape(shape)
    leaf = jnp.asarray(leaf)
    values = jnp.asarray(values).astype(leaf.dtype)
    if not indices:
        return values.reshape(shape)
    flat, parts, done = leaf.reshape(-1), [], 0
    for first, start, size in _runs(indices):
        parts += [flat[done:first], values[start : start + size]]
        done = first + size
    parts.append(flat[done:])
    return jnp.concatenate([part for part in parts if part.size]).reshape(shape)


def _runs(indices: Sequence[int]) -> list[tuple[int, int, int]]:
    """Numbers that stay side by side, in the order of the leaf: first place, first value and how many."""
    runs: list[tuple[int, int, int]] = []
    for place, k in sorted((place, k) for k, place in enumerate(indices)):
        if runs and (place, k) == (runs[-1][0] + runs[-1][2], runs[-1][1] + runs[-1][2]):
            runs[-1] = (*runs[-1][:2], runs[-1][2] + 1)
        else:
            runs.append((place, k, 1))
    return runs

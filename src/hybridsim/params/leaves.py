"""Entries of pytree leaves: a path of attributes and indices to an array, and a flat index into it.

Values are written by concatenating static slices, so that native code contains no scatter operations.
Without JAX arrays everything is NumPy and nothing is compiled.
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

PathKey = str | int | tuple[str]
"""An attribute by its name, an item of a sequence by its index, an entry of a dictionary by its key in a tuple."""
Path = tuple[PathKey, ...]


@dataclass(frozen=True)
class LeafEntry:
    """Location of one array entry."""

    path: Path
    index: int
    """Flat index into the array, row-major."""


def parse_path(text: str) -> Path:
    """The path of a dotted attribute name such as `sim.model.body`."""
    return tuple(text.split("."))


def path_from_keys(keys: KeyPath) -> Path | None:
    """The path of a JAX key path; None if it passes through a container whose children have no names."""
    path: list[PathKey] = []
    for key in keys:
        if isinstance(key, GetAttrKey):
            path.append(key.name)
        elif isinstance(key, SequenceKey):
            path.append(key.idx)
        elif isinstance(key, DictKey) and isinstance(key.key, str):
            path.append((key.key,))
        else:
            return None
    return tuple(path)


def format_path(path: Path) -> str:
    """A path as users write it: `.layers[0].weight`."""
    return "".join(f".{k}" if isinstance(k, str) else f"[{k[0] if isinstance(k, tuple) else k}]" for k in path)


def leaf_at(tree: Any, path: Path) -> Any:
    """The subtree or leaf at a path."""
    for key in path:
        tree = getattr(tree, key) if isinstance(key, str) else tree[key[0] if isinstance(key, tuple) else key]
    return tree


class LeafWriter:
    """Collects values to write into the leaves of a tree."""

    def __init__(self, tree: Any):
        self.tree = tree
        self.leaves: dict[Path, Any] = {}

    def put(self, path: Path, indices: Sequence[int], values: AnyArray) -> None:
        """Write values (n,) to these indices of a leaf; to the whole leaf if indices is empty."""
        leaf = self.leaves[path] if path in self.leaves else leaf_at(self.tree, path)
        self.leaves[path] = _with_values(leaf, indices, values)

    def result(self) -> Any:
        """The tree with all values written."""
        paths = list(self.leaves)
        if not paths:
            return self.tree
        return eqx.tree_at(lambda tree: [leaf_at(tree, p) for p in paths], self.tree, list(self.leaves.values()))


def is_jax(x: Any) -> bool:
    """Whether x is a JAX array or tracer, rather than NumPy."""
    return isinstance(x, Tracer | jax.Array)


def _with_values(leaf: AnyArray, indices: Sequence[int], values: AnyArray) -> AnyArray:
    shape = np.shape(leaf)
    if not (is_jax(leaf) or is_jax(values)):
        flat = np.array(leaf).reshape(-1)
        flat[list(indices) if indices else slice(None)] = values
        return flat.reshape(shape)
    leaf = jnp.asarray(leaf)
    values = jnp.asarray(values).astype(leaf.dtype)
    if not indices:
        return values.reshape(shape)
    flat, parts, position = leaf.reshape(-1), [], 0
    for first, first_value, size in _contiguous_runs(indices):
        parts += [flat[position:first], values[first_value : first_value + size]]
        position = first + size
    parts.append(flat[position:])
    return jnp.concatenate([part for part in parts if part.size]).reshape(shape)


def _contiguous_runs(indices: Sequence[int]) -> list[tuple[int, int, int]]:
    """Runs of values that stay contiguous in the leaf, in leaf order: first index, first value, length."""
    runs: list[tuple[int, int, int]] = []
    for index, k in sorted((index, k) for k, index in enumerate(indices)):
        if runs and (index, k) == (runs[-1][0] + runs[-1][2], runs[-1][1] + runs[-1][2]):
            runs[-1] = (*runs[-1][:2], runs[-1][2] + 1)
        else:
            runs.append((index, k, 1))
    return runs

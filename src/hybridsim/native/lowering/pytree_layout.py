"""Trees of arrays as rows of cells: eight bytes for every number, in the order of the tree's leaves."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hybridsim.core.errors import UnsupportedPrimitive
from hybridsim.native.graph import arrays as large
from hybridsim.native.graph.graph import BOOL, FLOAT, INT, Graph
from hybridsim.native.lowering.lower import Nodes, kind_of


@dataclass(frozen=True)
class LeafLayout:
    """One array of a tree."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """Numbers in it."""
        return math.prod(self.shape)

    @property
    def kind(self) -> str:
        """Kind of its numbers."""
        return kind_of(self.dtype)

    @property
    def is_large(self) -> bool:
        """Does it stay where the caller has it, if it is a parameter? Matrices of networks do, tables of bodies not."""
        is_matrix = len(self.shape) > 1 and min(self.shape[-2:]) >= large.MIN_MATRIX_DIM
        return is_matrix and self.size >= large.MIN_LARGE_SIZE and self.dtype == "float64"


@dataclass(frozen=True)
class PytreeLayout:
    """How a tree lies in a row of cells."""

    treedef: Any
    leaves: tuple[LeafLayout, ...]

    @staticmethod
    def from_tree(tree: Any) -> "PytreeLayout":
        """The form of a tree of arrays, or of things with a shape and a type."""
        leaves, structure = jax.tree.flatten(tree)
        found = []
        for leaf in leaves:
            given = leaf if hasattr(leaf, "dtype") and hasattr(leaf, "shape") else np.asarray(leaf)
            if str(given.dtype) not in _SUPPORTED_DTYPES:
                raise UnsupportedPrimitive(f"arrays of type {given.dtype} have no native code")
            found.append(LeafLayout(tuple(given.shape), str(given.dtype)))
        return PytreeLayout(structure, tuple(found))

    @property
    def size(self) -> int:
        """Cells of the row."""
        return sum(leaf.size for leaf in self.leaves)

    def shapes(self) -> Any:
        """The tree with shapes for arrays."""
        return self.treedef.unflatten([jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in self.leaves])

    def floats(self, tree: Any) -> list[Any]:
        """The leaves that have derivatives."""
        return [x for x, leaf in zip(jax.tree.leaves(tree), self.leaves, strict=True) if leaf.kind == FLOAT]

    def with_floats(self, tree: Any, floats: list[Any]) -> Any:
        """A tree with other values for the leaves that have derivatives."""
        new = iter(floats)
        leaves = zip(jax.tree.leaves(tree), self.leaves, strict=True)
        return self.treedef.unflatten([next(new) if leaf.kind == FLOAT else x for x, leaf in leaves])

    def offsets(self) -> list[int]:
        """The first cell of each leaf."""
        return [0, *np.cumsum([leaf.size for leaf in self.leaves]).tolist()][: len(self.leaves)]

    def large_leaves(self) -> list[tuple[int, int]]:
        """First cell and size of every large leaf."""
        return [(first, leaf.size) for leaf, first in zip(self.leaves, self.offsets(), strict=True) if leaf.is_large]

    def input_nodes(
        self,
        graph: Graph,
        slot: str,
        baked: dict[int, float],
        *,
        floats_only: bool = False,
        in_place: str | None = None,
    ) -> list[Nodes]:
        """Nodes that read the leaves, except cells whose value is part of the code.

        Args:
            graph: to make them in.
            slot: that they are read from.
            baked: values that are part of the code, by cell.
            floats_only: leave the other leaves out.
            in_place: slot that large leaves are read from; without one they are like the others.
        """
        arrays = []
        for leaf, first in zip(self.leaves, self.offsets(), strict=True):
            if floats_only and leaf.kind != FLOAT:
                continue
            if in_place is not None and leaf.is_large:
                array = large.array_node(graph, large.ArrayInput(in_place, first, leaf.size))
                arrays.append(large.element_ids(graph, array).reshape(leaf.shape))
                continue
            nodes = [
                _constant(graph, baked[k], leaf.kind) if k in baked else graph.input(slot, k, leaf.kind)
                for k in range(first, first + leaf.size)
            ]
            arrays.append(np.array(nodes, dtype=np.int64).reshape(leaf.shape))
        return arrays

    def output_nodes(
        self, graph: Graph, slot: str, arrays: list[Nodes], *, floats_only: bool = False, in_place: str | None = None
    ) -> dict[tuple[str, int], int]:
        """Where the nodes of leaves are written; an array is written from its place on.

        Args:
            graph: that they are in.
            slot: that they are written to.
            arrays: nodes of the leaves.
            floats_only: only of the leaves of floats.
            in_place: slot for large leaves; without one they are like the others.
        """
        found = {}
        leaves = [
            (leaf, first)
            for leaf, first in zip(self.leaves, self.offsets(), strict=True)
            if leaf.kind == FLOAT or not floats_only
        ]
        for (leaf, first), nodes in zip(leaves, arrays, strict=True):
            if in_place is not None and leaf.is_large:
                if not large.has_elements(nodes) and all(graph.constants.get(n) == 0.0 for n in set(nodes.flat)):
                    continue
                found[in_place, first] = large.as_array(graph, nodes)
            elif large.has_elements(nodes) and nodes.size > large.MAX_UNROLLED_SIZE:
                found[slot, first] = large.as_array(graph, nodes)
            else:
                numbers = large.scalarize(graph, nodes).ravel().tolist()
                found |= {(slot, first + k): node for k, node in enumerate(numbers)}
        return found

    def pack(self, tree: Any, leading: tuple[int, ...] = ()) -> np.ndarray:
        """Arrays as rows of cells.

        Args:
            tree: arrays of the tree's form, each with the same leading axes.
            leading: these axes.
        """
        leaves = jax.tree.leaves(tree)
        parts = []
        for leaf, value in zip(self.leaves, leaves, strict=True):
            value = np.asarray(value)
            if value.shape != (*leading, *leaf.shape):
                raise ValueError(f"an array has shape {value.shape}, but {(*leading, *leaf.shape)} was compiled")
            value = value.astype(leaf.dtype).astype(np.float64 if leaf.kind == FLOAT else np.int64).view(np.float64)
            parts.append(value.reshape((*leading, leaf.size)))
        return np.ascontiguousarray(np.concatenate(parts, axis=-1)) if parts else np.zeros((*leading, 0))

    def unpack(self, cells: np.ndarray) -> Any:
        """Arrays from rows of cells."""
        leading = cells.shape[:-1]
        arrays = []
        for leaf, first in zip(self.leaves, self.offsets(), strict=True):
            part = cells[..., first : first + leaf.size]
            if leaf.kind != FLOAT:
                part = np.ascontiguousarray(part).view(np.int64)
            arrays.append(part.astype(leaf.dtype).reshape((*leading, *leaf.shape)))
        return self.treedef.unflatten(arrays)

    def pack_traced(self, tree: Any) -> jnp.ndarray:
        """Arrays of one tree as a row of cells, inside JAX."""
        parts = []
        for leaf, value in zip(self.leaves, jax.tree.leaves(tree), strict=True):
            value = jnp.asarray(value)
            if leaf.kind != FLOAT:
                value = jax.lax.bitcast_convert_type(value.astype(jnp.int64), jnp.float64)
            parts.append(value.astype(jnp.float64).reshape(leaf.size))
        return jnp.concatenate(parts) if parts else jnp.zeros(0)

    def unpack_traced(self, cells: jnp.ndarray) -> Any:
        """Arrays from rows of cells, inside JAX; leading axes stay."""
        leading = cells.shape[:-1]
        arrays = []
        for leaf, first in zip(self.leaves, self.offsets(), strict=True):
            part = cells[..., first : first + leaf.size]
            if leaf.kind != FLOAT:
                part = jax.lax.bitcast_convert_type(part, jnp.int64)
            arrays.append(part.astype(leaf.dtype).reshape((*leading, *leaf.shape)))
        return self.treedef.unflatten(arrays)


_SUPPORTED_DTYPES = ("float64", "float32", "int64", "int32", "int16", "int8", "uint32", "uint16", "uint8", "bool")


def _constant(graph: Graph, value: float, kind: str) -> int:
    return graph.constant({FLOAT: float, INT: int, BOOL: bool}[kind](value))

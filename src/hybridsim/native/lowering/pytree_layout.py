"""Memory layout of pytrees: one row of 8-byte cells, leaf by leaf."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.graph import arrays as graph_arrays
from hybridsim.native.graph.graph import BOOL, FLOAT, INT, Graph
from hybridsim.native.lowering.lower import Nodes, kind_of


@dataclass(frozen=True)
class LeafLayout:
    """Shape and type of one leaf."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def kind(self) -> str:
        """Kind of the elements."""
        return kind_of(self.dtype)

    @property
    def is_large(self) -> bool:
        """Whether the leaf, as a parameter, is read in place: true of weight matrices, but not of per-body tables."""
        is_matrix = len(self.shape) > 1 and min(self.shape[-2:]) >= graph_arrays.MIN_MATRIX_DIM
        return is_matrix and self.size >= graph_arrays.MIN_LARGE_SIZE and self.dtype == "float64"


@dataclass(frozen=True)
class PytreeLayout:
    """Layout of a pytree in a row of cells."""

    treedef: Any
    leaves: tuple[LeafLayout, ...]

    @staticmethod
    def from_tree(tree: Any) -> "PytreeLayout":
        """Layout of a pytree of arrays, or of anything with `shape` and `dtype`."""
        leaves, structure = jax.tree.flatten(tree)
        layouts = []
        for leaf in leaves:
            array = leaf if hasattr(leaf, "dtype") and hasattr(leaf, "shape") else np.asarray(leaf)
            if str(array.dtype) not in _SUPPORTED_DTYPES:
                raise UnsupportedOperationError(
                    f"arrays of type {array.dtype} are not supported by the native back-end"
                )
            layouts.append(LeafLayout(tuple(array.shape), str(array.dtype)))
        return PytreeLayout(structure, tuple(layouts))

    @property
    def size(self) -> int:
        """Number of cells."""
        return sum(leaf.size for leaf in self.leaves)

    def shapes(self) -> Any:
        """The pytree with `ShapeDtypeStruct` leaves."""
        return self.treedef.unflatten([jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in self.leaves])

    def float_leaves(self, tree: Any) -> list[Any]:
        """Float leaves, which have derivatives."""
        return [x for x, leaf in zip(jax.tree.leaves(tree), self.leaves, strict=True) if leaf.kind == FLOAT]

    def with_float_leaves(self, tree: Any, floats: list[Any]) -> Any:
        """A copy of a pytree with other float leaves."""
        new = iter(floats)
        leaves = zip(jax.tree.leaves(tree), self.leaves, strict=True)
        return self.treedef.unflatten([next(new) if leaf.kind == FLOAT else x for x, leaf in leaves])

    def offsets(self) -> list[int]:
        """First cell of each leaf."""
        return [0, *np.cumsum([leaf.size for leaf in self.leaves]).tolist()][: len(self.leaves)]

    def large_leaves(self) -> list[tuple[int, int]]:
        """First cell and size of every large leaf."""
        return [(first, leaf.size) for leaf, first in zip(self.leaves, self.offsets(), strict=True) if leaf.is_large]

    def input_nodes(
        self,
        graph: Graph,
        slot: str,
        constant_cells: dict[int, float],
        *,
        floats_only: bool = False,
        in_place_slot: str | None = None,
    ) -> list[Nodes]:
        """Input nodes of the leaves; constants for some cells.

        Args:
            graph: graph to add nodes to.
            slot: slot to read from.
            constant_cells: values of compile-time constants, by cell.
            floats_only: whether to skip leaves that are not floats.
            in_place_slot: slot of large leaves; by default they are read like the others.
        """
        arrays = []
        for leaf, first in zip(self.leaves, self.offsets(), strict=True):
            if floats_only and leaf.kind != FLOAT:
                continue
            if in_place_slot is not None and leaf.is_large:
                array = graph_arrays.array_node(graph, graph_arrays.ArrayInput(in_place_slot, first, leaf.size))
                arrays.append(graph_arrays.element_ids(graph, array).reshape(leaf.shape))
                continue
            nodes = [
                _constant(graph, constant_cells[k], leaf.kind)
                if k in constant_cells
                else graph.input(slot, k, leaf.kind)
                for k in range(first, first + leaf.size)
            ]
            arrays.append(np.array(nodes, dtype=np.int64).reshape(leaf.shape))
        return arrays

    def output_nodes(
        self,
        graph: Graph,
        slot: str,
        arrays: list[Nodes],
        *,
        floats_only: bool = False,
        in_place_slot: str | None = None,
    ) -> dict[tuple[str, int], int]:
        """Nodes to store, by slot and index; an array node is keyed by its first cell.

        Args:
            graph: graph of the nodes.
            slot: slot to store to.
            arrays: nodes of the leaves.
            floats_only: whether `arrays` has float leaves only.
            in_place_slot: slot of large leaves; by default they are stored like the others.
        """
        outputs = {}
        leaves = [
            (leaf, first)
            for leaf, first in zip(self.leaves, self.offsets(), strict=True)
            if leaf.kind == FLOAT or not floats_only
        ]
        for (leaf, first), nodes in zip(leaves, arrays, strict=True):
            if in_place_slot is not None and leaf.is_large:
                if not graph_arrays.has_elements(nodes) and all(graph.constants.get(n) == 0.0 for n in set(nodes.flat)):
                    continue
                outputs[in_place_slot, first] = graph_arrays.array_node_of(graph, nodes)
            elif graph_arrays.has_elements(nodes) and nodes.size > graph_arrays.MAX_UNROLLED_SIZE:
                outputs[slot, first] = graph_arrays.array_node_of(graph, nodes)
            else:
                scalars = graph_arrays.scalarize(graph, nodes).ravel().tolist()
                outputs |= {(slot, first + k): node for k, node in enumerate(scalars)}
        return outputs

    def pack(self, tree: Any, leading: tuple[int, ...] = ()) -> np.ndarray:
        """Rows of cells from a pytree of arrays.

        Args:
            tree: pytree with this layout, each leaf with the same leading axes.
            leading: sizes of the leading axes.
        """
        leaves = jax.tree.leaves(tree)
        blocks = []
        for leaf, value in zip(self.leaves, leaves, strict=True):
            value = np.asarray(value)
            if value.shape != (*leading, *leaf.shape):
                raise ValueError(
                    f"an array has shape {value.shape}, but the kernel was compiled for {(*leading, *leaf.shape)}"
                )
            value = value.astype(leaf.dtype).astype(np.float64 if leaf.kind == FLOAT else np.int64).view(np.float64)
            blocks.append(value.reshape((*leading, leaf.size)))
        return np.ascontiguousarray(np.concatenate(blocks, axis=-1)) if blocks else np.zeros((*leading, 0))

    def unpack(self, cells: np.ndarray) -> Any:
        """Pytree of arrays from rows of cells."""
        leading = cells.shape[:-1]
        arrays = []
        for leaf, first in zip(self.leaves, self.offsets(), strict=True):
            part = cells[..., first : first + leaf.size]
            if leaf.kind != FLOAT:
                part = np.ascontiguousarray(part).view(np.int64)
            arrays.append(part.astype(leaf.dtype).reshape((*leading, *leaf.shape)))
        return self.treedef.unflatten(arrays)

    def pack_traced(self, tree: Any) -> jnp.ndarray:
        """Row of cells from a pytree, traceable by JAX."""
        blocks = []
        for leaf, value in zip(self.leaves, jax.tree.leaves(tree), strict=True):
            value = jnp.asarray(value)
            if leaf.kind != FLOAT:
                value = jax.lax.bitcast_convert_type(value.astype(jnp.int64), jnp.float64)
            blocks.append(value.astype(jnp.float64).reshape(leaf.size))
        return jnp.concatenate(blocks) if blocks else jnp.zeros(0)

    def unpack_traced(self, cells: jnp.ndarray) -> Any:
        """Pytree of arrays from rows of cells, traceable by JAX."""
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

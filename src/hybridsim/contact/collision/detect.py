"""Collision detection: gaps, normals and nearest points of all candidate pairs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hybridsim.contact.candidates import Candidates
from hybridsim.contact.collision.contact_points import ContactPoints, PlacedShape
from hybridsim.contact.collision.dispatch import ROUTINES, Routine
from hybridsim.core.rows import merge, take
from hybridsim.model.geometry import Geometry
from hybridsim.model.topology import WORLD
from hybridsim.spatial.transform import Pose

MIN_LOOP_PAIRS = 6
"""Minimum number of pairs of one kind for which an expensive routine is applied in a loop instead of in lanes, to limit
the size of the native code for a pile of boxes."""


def detect(geometry: Geometry, X_WB: Pose, candidates: Candidates) -> ContactPoints:
    """Contact points of all candidate pairs, one per row.

    Args:
        geometry: shapes of the model.
        X_WB: poses of all bodies.
        candidates: candidate pairs.
    """
    parts: list[ContactPoints] = []
    rows: list[list[int]] = []
    offsets = np.cumsum([0, *(pair.max_points for pair in candidates.pairs)])
    for kinds, members in candidates.pair_groups:
        first, axes_first = place_shapes(geometry, X_WB, [candidates.pairs[k].first for k in members])
        second, axes_second = place_shapes(geometry, X_WB, [candidates.pairs[k].second for k in members])
        points = _pair_contacts(ROUTINES[kinds], (first, second), (axes_first, axes_second), len(members))
        parts.append(jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), points))
        rows.append([row for k in members for row in range(offsets[k], offsets[k + 1])])
    if not parts:
        empty = jnp.zeros((0, 3))
        return ContactPoints(jnp.zeros(0), empty, empty, empty)
    return merge(parts, rows)


def _pair_contacts(
    routine: Routine, shapes: tuple[PlacedShape, PlacedShape], axes: tuple[PlacedShape, PlacedShape], count: int
) -> ContactPoints:
    """Contact points of all pairs of one kind."""
    if not routine.is_expensive or count < MIN_LOOP_PAIRS:
        return jax.vmap(routine.contacts, in_axes=axes)(*shapes)
    is_batched = jax.tree.map(lambda axis: axis is not None, axes, is_leaf=lambda axis: axis is None)
    rows, shared = eqx.partition(shapes, is_batched)
    return jax.lax.map(lambda row: routine.contacts(*eqx.combine(row, shared)), rows)


def place_shapes(geometry: Geometry, X_WB: Pose, shapes: list[int]) -> tuple[PlacedShape, PlacedShape]:
    """Shapes of one kind placed in the world, one per row, and their batch axes for `vmap`.

    Shapes with the same points or heights, such as a common height field, share one array.
    """
    infos = [geometry.infos[k] for k in shapes]
    X_BG = take(jax.tree.map(jnp.asarray, geometry.placement), shapes)
    if all(info.body == WORLD for info in infos):
        X_WG = X_BG
    else:
        X_WB = jax.tree.map(lambda x, w: jnp.concatenate([jnp.asarray(w)[None], x]), X_WB, Pose(np.eye(3), np.zeros(3)))
        X_WG = jax.vmap(lambda a, b: a @ b)(take(X_WB, [info.body + 1 for info in infos]), X_BG)
    size = take(jnp.asarray(geometry.size), shapes)
    data, data_axis = None, None
    if infos[0].data_index >= 0:
        arrays = [jnp.asarray(geometry.data[info.data_index]) for info in infos]
        shared = len({info.data_index for info in infos}) == 1
        data, data_axis = (arrays[0], None) if shared else (jnp.stack(arrays), 0)
    shape = PlacedShape(X_WG, size, data, infos[0].faces)
    axes = jax.tree.map(lambda _: 0, shape)
    return shape, axes if data is None else eqx.tree_at(lambda s: s.data, axes, data_axis)

"""Initial overlap of shapes, which contact would resolve by pushing them apart violently."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from hybridsim.contact.candidates import Candidates, Pair
from hybridsim.contact.collision.bounding_faces import bounding_box
from hybridsim.contact.collision.detect import detect
from hybridsim.core.warnings import warn_user
from hybridsim.model.coordinates import expand_q
from hybridsim.model.geometry import Geometry, Shape
from hybridsim.model.model import Model
from hybridsim.model.topology import WORLD
from hybridsim.spatial.transform import Pose

MIN_OVERLAP = 1e-3
"""Depth [m] above which an overlap is reported: smaller ones are assumed to be intended contact."""
MAX_NAMES = 4
"""Maximum number of pairs listed by name in a message; the others are only counted."""


def warn_about_overlaps(model: Model, candidates: Candidates, *, within_trees: bool) -> None:
    """Warn about candidate pairs whose shapes overlap in the model's home configuration.

    Args:
        model: the mechanism.
        candidates: the candidate pairs.
        within_trees: whether to check pairs within one tree of bodies, whose relative placement does not depend on the
            base pose, or all others.
    """
    parts = (model.home, model.joint.placement, model.joint.axis, model.joint.anchor, model.geometry.placement)
    parts += (model.geometry.size, model.geometry.data, model.joint.mimic_ratio, model.joint.mimic_offset)
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(parts)):
        return
    checked = tuple(pair for pair in candidates.pairs if _is_within_tree(model, pair) == within_trees)
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        overlapping = overlaps(model, replace(candidates, pairs=checked))
    if overlapping:
        names = [f"{name} by {1e3 * depth:.3g} mm" for name, depth in overlapping]
        more = f" and {len(overlapping) - MAX_NAMES} more" if len(overlapping) > MAX_NAMES else ""
        warn_user(
            f"shapes of model {model.name!r} overlap in its home configuration, and contact will push them apart "
            f"violently: {', '.join(names[:MAX_NAMES])}{more}; move them apart, or exclude the pairs: "
            f"exclude=({overlapping[0][0]!r},)"
        )


def overlaps(model: Model, candidates: Candidates) -> list[tuple[str, float]]:
    """Candidate pairs whose shapes overlap in the home configuration, with the depth [m], deepest first."""
    poses = home_poses(model)
    placed = {}
    for shape in {shape for pair in candidates.pairs for shape in (pair.first, pair.second)}:
        body, X_BG = model.geometry.infos[shape].body, model.geometry.placement
        X = Pose(np.asarray(X_BG.R)[shape], np.asarray(X_BG.p)[shape])
        placed[shape] = X if body == WORLD else poses[body] @ X
    possible = tuple(pair for pair in candidates.pairs if _can_overlap(model.geometry, placed, pair))
    if not possible:
        return []
    checked = replace(candidates, pairs=possible)
    X_WB = Pose(jnp.stack([X.R for X in poses]), jnp.stack([X.p for X in poses]))
    gaps = np.asarray(jax.jit(lambda X_WB: detect(model.geometry, X_WB, checked).gap)(X_WB))
    depths = [-float(gaps[np.array(checked.pair_indices) == k].min()) for k in range(len(possible))]
    overlapping = [(pair.name, depth) for pair, depth in zip(possible, depths, strict=True) if depth > MIN_OVERLAP]
    return sorted(overlapping, key=lambda item: -item[1])


def _is_within_tree(model: Model, pair: Pair) -> bool:
    bodies = [model.geometry.infos[shape].body for shape in (pair.first, pair.second)]
    return WORLD not in bodies and len({model.topology.root_paths[body][0] for body in bodies}) == 1


def home_poses(model: Model) -> list[Pose]:
    """Poses of the bodies in the model's home configuration."""
    joint, topology, poses = model.joint, model.topology, []
    q = np.asarray(expand_q(model, np.asarray(model.home)))
    offset = 0
    for i, kind in enumerate(topology.joint_types):
        q_i, offset = q[offset : offset + kind.nq], offset + kind.nq
        X_PJ = Pose(np.asarray(joint.placement.R)[i], np.asarray(joint.placement.p)[i])
        X_PB = X_PJ @ kind.joint.numpy_transform(np.asarray(joint.axis)[i], np.asarray(joint.anchor)[i], q_i)
        poses.append(X_PB if topology.parents[i] == WORLD else poses[topology.parents[i]] @ X_PB)
    return poses


def _can_overlap(geometry: Geometry, placed: dict[int, Pose], pair: Pair) -> bool:
    """Whether the bounding boxes of two shapes overlap, or one reaches below the highest point of the ground."""
    first, second = placed[pair.first], placed[pair.second]
    (centre, half), (other_centre, other_half) = (bounding_box(geometry, shape) for shape in (pair.first, pair.second))
    ground = geometry.infos[pair.second]
    if ground.shape in (Shape.PLANE, Shape.HEIGHTFIELD):
        top = 0.0 if ground.shape is Shape.PLANE else float(np.max(geometry.data[ground.data_index]))
        up = second.R[:, 2]
        return bool((first.point(centre) - second.p) @ up - half @ np.abs(first.R.T @ up) < top - MIN_OVERLAP)
    offset = second.point(other_centre) - first.point(centre)
    return all(
        half @ np.abs(first.R.T @ axis) + other_half @ np.abs(second.R.T @ axis) - abs(offset @ axis) > MIN_OVERLAP
        for axis in _separating_axes(first.R, second.R)
    )


def _separating_axes(one: np.ndarray, other: np.ndarray) -> Iterator[np.ndarray]:
    """Candidate separating axes of two boxes: face normals and cross products of edges."""
    yield from one.T
    yield from other.T
    for a, b in itertools.product(one.T, other.T):
        axis = np.cross(a, b)
        if (length := float(np.linalg.norm(axis))) > 1e-6:
            yield axis / length

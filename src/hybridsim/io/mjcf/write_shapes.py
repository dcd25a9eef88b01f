"""Surfaces and height fields in the form in which MuJoCo takes them."""

import numpy as np

from hybridsim.io.mjcf.read_surface import HARDEST, SOFTEST, solimp, solref
from hybridsim.io.write_document import Notes
from hybridsim.model.geometry import DEFAULT_FRICTION, DEFAULT_RECOVERY_TIME, DEFAULT_SOFTNESS, Shape
from hybridsim.model.specs import GeomSpec, ModelSpec
from hybridsim.spatial.transform import Pose

BASE_DEPTH = 0.1
"""How far the solid below a height field reaches [m]; MuJoCo asks for some depth, and nothing here depends on it."""


def surface_attributes(geom: GeomSpec, notes: Notes) -> dict:
    """Attributes that say what a surface is like, where it is not as usual; what MJCF cannot say is noted."""
    time, soft = None, None
    if geom.recovery_time != DEFAULT_RECOVERY_TIME:
        time = solref(geom.recovery_time)
        if time is None:
            notes.add("recovery times that are not positive are not part of MJCF", geom.name)
    if geom.softness != DEFAULT_SOFTNESS:
        bounded = float(np.clip(geom.softness, HARDEST, SOFTEST))
        soft = solimp(bounded)
        if bounded != geom.softness:
            notes.add(f"softness is brought into the range of MJCF, {HARDEST:.2g} to {SOFTEST:.2g}", geom.name)
    if geom.restitution:
        notes.add("restitution is not part of MJCF", geom.name)
    if np.isfinite([geom.stiffness, geom.damping]).any():
        notes.add("stiffness and damping of compliant contacts are not part of MJCF", geom.name)
    return {
        "friction": geom.friction if geom.friction != DEFAULT_FRICTION else None,
        "solref": time,
        "solimp": soft,
        "priority": geom.priority or None,
    }


def pair_friction(spec: ModelSpec, a: str, b: str, notes: Notes) -> tuple[float, float] | None:
    """Friction of two shapes along both tangents, if it is not as usual: MuJoCo does not take it from the shapes."""
    own = spec.pair_friction.get((a, b), spec.pair_friction.get((b, a)))
    if own is None:
        surfaces = [geom for geom in spec.geoms if geom.name in (a, b)]
        highest = max((geom.priority, geom.has_friction) for geom in surfaces)
        own = max(geom.friction for geom in surfaces if (geom.priority, geom.has_friction) == highest)
        notes.add("pairs are given the friction of their shapes, which MuJoCo does not look at", f"{a} and {b}")
    return (own, own) if own != DEFAULT_FRICTION else None


def note_open_friction(spec: ModelSpec, notes: Notes) -> None:
    """Note shapes that leave their friction to what they touch, where that has less than MuJoCo gives them."""

    def may_touch(a: GeomSpec, b: GeomSpec) -> bool:
        return a.body != b.body and bool(a.group & b.mask or b.group & a.mask)

    slippery = [geom for geom in spec.geoms if geom.has_friction and geom.friction < DEFAULT_FRICTION]
    is_open = [geom for geom in spec.geoms if not geom.has_friction and geom.friction == DEFAULT_FRICTION]
    names = [geom.name for geom in is_open if any(may_touch(geom, other) for other in slippery)]
    if names:
        notes.add("friction that shapes leave open is 1 in MuJoCo, where the larger one counts", *names)


def has_heights(geom: GeomSpec) -> bool:
    """Whether a shape is a height field with two rows, two columns and an extent at least."""
    if geom.shape is not Shape.HEIGHTFIELD or geom.data is None:
        return False
    return min(geom.data.shape) > 1 and bool((geom.size[:2] > 0.0).all())


def field_attributes(geom: GeomSpec) -> dict:
    """Attributes of the `<hfield>` with a shape's heights, of which the lowest is its zero.

    MuJoCo has rows along y and writes the last one first.
    """
    heights = np.asarray(geom.data)
    low, high = float(heights.min()), float(heights.max())
    return {
        "nrow": heights.shape[1],
        "ncol": heights.shape[0],
        "size": (*geom.size[:2], high - low or 1.0, BASE_DEPTH),
        "elevation": (heights - low).T[::-1].ravel(),
    }


def placement_of(geom: GeomSpec) -> Pose:
    """Pose of a written shape; that of a height field is at its lowest height."""
    if geom.shape is not Shape.HEIGHTFIELD or geom.data is None:
        return geom.placement
    return geom.placement @ Pose(np.eye(3), np.array([0.0, 0.0, float(geom.data.min())]))

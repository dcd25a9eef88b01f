"""Conversion of surface parameters and height fields to MJCF."""

import numpy as np

from hybridsim.io.mjcf.read_surface import MAX_SOFTNESS, MIN_SOFTNESS, solimp, solref
from hybridsim.io.write_document import Notes
from hybridsim.model.geometry import DEFAULT_FRICTION, DEFAULT_RECOVERY_TIME, DEFAULT_SOFTNESS, Shape
from hybridsim.model.specs import GeomSpec, ModelSpec
from hybridsim.spatial.transform import Pose

BASE_DEPTH = 0.1
"""Depth of the base below a height field [m], which MuJoCo requires to be positive; it has no effect here."""


def surface_attributes(geom: GeomSpec, notes: Notes) -> dict:
    """Attributes of surface parameters that differ from the defaults; unsupported ones are noted."""
    solref_values, solimp_values = None, None
    if geom.recovery_time != DEFAULT_RECOVERY_TIME:
        solref_values = solref(geom.recovery_time)
        if solref_values is None:
            notes.add("MJCF requires positive recovery times", geom.name, remark="the default is written")
    if geom.softness != DEFAULT_SOFTNESS:
        clipped = float(np.clip(geom.softness, MIN_SOFTNESS, MAX_SOFTNESS))
        solimp_values = solimp(clipped)
        if clipped != geom.softness:
            notes.add(f"softness is clipped to the range of MJCF, {MIN_SOFTNESS:.2g} to {MAX_SOFTNESS:.2g}", geom.name)
    if geom.restitution:
        notes.add("MJCF does not support restitution", geom.name)
    if np.isfinite([geom.stiffness, geom.damping]).any():
        notes.add("MJCF does not support stiffness and damping of compliant contacts", geom.name)
    return {
        "friction": geom.friction if geom.friction != DEFAULT_FRICTION else None,
        "solref": solref_values,
        "solimp": solimp_values,
        "priority": geom.priority or None,
    }


def pair_friction_attribute(spec: ModelSpec, a: str, b: str, notes: Notes) -> tuple[float, float] | None:
    """Friction of a pair along both tangents, None for the default; MuJoCo does not take it from the geoms."""
    friction = spec.pair_friction.get((a, b), spec.pair_friction.get((b, a)))
    if friction is None:
        surfaces = [geom for geom in spec.geoms if geom.name in (a, b)]
        highest = max((geom.priority, geom.is_friction_specified) for geom in surfaces)
        friction = max(geom.friction for geom in surfaces if (geom.priority, geom.is_friction_specified) == highest)
        notes.add("pairs without friction get that of their shapes, which MuJoCo would ignore", f"{a} and {b}")
    return (friction, friction) if friction != DEFAULT_FRICTION else None


def note_default_friction(spec: ModelSpec, notes: Notes) -> None:
    """Note shapes without specified friction that can collide with shapes whose friction is below MuJoCo's default."""

    def can_collide(a: GeomSpec, b: GeomSpec) -> bool:
        return a.body != b.body and bool(a.group & b.mask or b.group & a.mask)

    low_friction = [geom for geom in spec.geoms if geom.is_friction_specified and geom.friction < DEFAULT_FRICTION]
    unspecified = [geom for geom in spec.geoms if not geom.is_friction_specified and geom.friction == DEFAULT_FRICTION]
    names = [geom.name for geom in unspecified if any(can_collide(geom, other) for other in low_friction)]
    if names:
        notes.add("unspecified friction of shapes is 1 in MuJoCo, which uses the maximum of two shapes", *names)


def has_heights(geom: GeomSpec) -> bool:
    """Whether a shape is a height field with nonzero extent and at least two rows and columns."""
    if geom.shape is not Shape.HEIGHTFIELD or geom.data is None:
        return False
    return min(geom.data.shape) > 1 and bool((geom.size[:2] > 0.0).all())


def heightfield_attributes(geom: GeomSpec) -> dict:
    """Attributes of `<hfield>` for the heights of a shape, relative to the minimum.

    MuJoCo has rows along y, the last one first.
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
    """Pose of a shape in MJCF; the origin of a height field is at its minimum."""
    if geom.shape is not Shape.HEIGHTFIELD or geom.data is None:
        return geom.placement
    return geom.placement @ Pose(np.eye(3), np.array([0.0, 0.0, float(geom.data.min())]))

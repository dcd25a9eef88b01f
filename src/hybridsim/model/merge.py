"""Merging bodies on fixed joints into their parents, without losing inertia, shapes or names.

A merged body lives on as a named frame, so that a URDF's `tool0` can still be asked for.
"""

from dataclasses import replace

from hybridsim.model.inertial import Inertial
from hybridsim.model.specs import FrameSpec, JointKind, ModelSpec, identity_pose
from hybridsim.spatial.transform import Pose


def merge_fixed(spec: ModelSpec) -> tuple[ModelSpec, dict[str, tuple[str, Pose]]]:
    """The description without fixed joints, and for each merged body its new carrier and pose X_BL in it."""
    placements: dict[str, tuple[str, Pose]] = {}

    def carrier(name: str) -> tuple[str, Pose]:
        return placements.get(name, (name, identity_pose()))

    kept, extra = [], {}
    frames = []
    for body in spec.bodies:
        parent, X_BP = carrier(body.parent)
        X_BL = X_BP @ body.placement
        if body.joint.kind is JointKind.FIXED:
            placements[body.name] = (parent, X_BL)
            extra[parent] = extra.get(parent, Inertial()) + body.inertial.moved(X_BL)
            frames.append(FrameSpec(body.name, parent, X_BL))
        else:
            kept.append(replace(body, parent=parent, placement=X_BL))

    kept = [replace(b, inertial=b.inertial + extra[b.name]) if b.name in extra else b for b in kept]
    geoms = [_reattached(g, *carrier(g.body)) for g in spec.geoms]
    frames += [_reattached(f, *carrier(f.body)) for f in spec.frames]
    carriers = {name: body for name, (body, _) in placements.items()}
    excluded = {tuple(carriers.get(name, name) for name in pair) for pair in spec.excluded_pairs}
    merged = replace(
        spec,
        bodies=kept,
        geoms=geoms,
        frames=frames,
        excluded_pairs=sorted((a, b) for a, b in excluded if a != b),
    )
    return merged, placements


def _reattached(spec, body: str, X_BL: Pose):
    return replace(spec, body=body, placement=X_BL @ spec.placement)

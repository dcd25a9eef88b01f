"""Merging bodies on fixed joints into their parents, without losing inertia, shapes or names.

A merged body lives on as a named frame, so that a URDF's `tool0` can still be asked for, and its shapes remember it as
their link, so that what must not collide with it still may collide with its carrier.
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
    geoms = [replace(_reattached(g, *carrier(g.body)), link=g.link or g.body) for g in spec.geoms]
    frames += [_reattached(f, *carrier(f.body)) for f in spec.frames]
    merged = replace(spec, bodies=kept, geoms=geoms, frames=frames)
    return merged, placements


def _reattached(spec, body: str, X_BL: Pose):
    return replace(spec, body=body, placement=X_BL @ spec.placement)

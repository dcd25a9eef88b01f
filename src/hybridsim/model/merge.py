"""Merging bodies on fixed joints into their parents, without losing inertia, shapes or names.

A merged body lives on as a named frame, so that a URDF's `tool0` can still be asked for, and its shapes remember it as
their link, so that what must not collide with it still may collide with its carrier.
"""

from dataclasses import replace

from hybridsim.model.inertial import Inertial
from hybridsim.model.specs import WORLD_NAME, FrameSpec, JointKind, ModelSpec, identity_pose
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
    merged = replace(spec, bodies=kept, geoms=geoms, frames=frames, carried_pairs=_carried(spec, placements))
    return merged, placements


def _carried(spec: ModelSpec, placements: dict[str, tuple[str, Pose]]) -> list[tuple[str, str]]:
    """Pairs of a link that is merged into the world and one that moves against it on a joint.

    An arm's first link does not collide with its base: one carries the other. After merging that can no longer be told,
    since the base is then part of the world, and so is the floor.
    """
    pieces: dict[str, str] = {}
    """Of links at rest, the first one of those that are fixed to each other."""
    for body in spec.bodies:
        if body.joint.kind is JointKind.FIXED and placements[body.name][0] == WORLD_NAME:
            pieces[body.name] = pieces.get(body.parent, body.name)
    on_body: dict[str, list[str]] = {}
    for body in spec.bodies:
        on_body.setdefault(placements.get(body.name, (body.name,))[0], []).append(body.name)
    return [
        (link, own)
        for body in spec.bodies
        if body.parent in pieces and body.joint.kind is not JointKind.FIXED
        for link, piece in pieces.items()
        if piece == pieces[body.parent]
        for own in on_body[body.name]
    ]


def _reattached(spec, body: str, X_BL: Pose):
    return replace(spec, body=body, placement=X_BL @ spec.placement)

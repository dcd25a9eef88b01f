"""Merging of bodies on fixed joints into their parents; inertia, shapes and names are preserved.

A merged body remains available as a named frame, such as a URDF's `tool0`. Its shapes still name it as their link, so
that collision exclusions of the merged body do not extend to the body it is merged into.
"""

from dataclasses import replace

from hybridsim.model.inertial import Inertial
from hybridsim.model.specs import WORLD_NAME, FrameSpec, JointKind, ModelSpec, identity_pose
from hybridsim.spatial.transform import Pose


def merge_fixed_joints(spec: ModelSpec) -> tuple[ModelSpec, dict[str, tuple[str, Pose]]]:
    """The description without fixed joints, and for each merged link the body it is merged into and its pose X_BL."""
    merged_into: dict[str, tuple[str, Pose]] = {}

    def attachment(name: str) -> tuple[str, Pose]:
        return merged_into.get(name, (name, identity_pose()))

    bodies, merged_inertia = [], {}
    frames = []
    for body in spec.bodies:
        parent, X_BP = attachment(body.parent)
        X_BL = X_BP @ body.placement
        if body.joint.kind is JointKind.FIXED:
            merged_into[body.name] = (parent, X_BL)
            merged_inertia[parent] = merged_inertia.get(parent, Inertial()) + body.inertial.transform(X_BL)
            frames.append(FrameSpec(body.name, parent, X_BL))
        else:
            bodies.append(replace(body, parent=parent, placement=X_BL))

    bodies = [
        replace(b, inertial=b.inertial + merged_inertia[b.name]) if b.name in merged_inertia else b for b in bodies
    ]
    geoms = [replace(_reattach(g, *attachment(g.body)), link=g.link or g.body) for g in spec.geoms]
    frames += [_reattach(f, *attachment(f.body)) for f in spec.frames]
    merged = replace(
        spec, bodies=bodies, geoms=geoms, frames=frames, parent_child_pairs=_parent_child_pairs(spec, merged_into)
    )
    return merged, merged_into


def _parent_child_pairs(spec: ModelSpec, merged_into: dict[str, tuple[str, Pose]]) -> list[tuple[str, str]]:
    """Pairs of a link merged into the world and a link connected to it by a joint.

    An arm's first link must not collide with its base, which is its parent. After merging, the base belongs to the
    world, just like the floor, and this relation is no longer visible in the tree; hence it is recorded here.
    """
    # for each link merged into the world, the first link of its rigidly connected group
    groups: dict[str, str] = {}
    for body in spec.bodies:
        if body.joint.kind is JointKind.FIXED and merged_into[body.name][0] == WORLD_NAME:
            groups[body.name] = groups.get(body.parent, body.name)
    links_of_body: dict[str, list[str]] = {}
    for body in spec.bodies:
        links_of_body.setdefault(merged_into.get(body.name, (body.name,))[0], []).append(body.name)
    return [
        (parent_link, child_link)
        for body in spec.bodies
        if body.parent in groups and body.joint.kind is not JointKind.FIXED
        for parent_link, group in groups.items()
        if group == groups[body.parent]
        for child_link in links_of_body[body.name]
    ]


def _reattach(spec, body: str, X_BL: Pose):
    return replace(spec, body=body, placement=X_BL @ spec.placement)

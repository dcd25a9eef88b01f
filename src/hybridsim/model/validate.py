"""Validation of model descriptions: reports all problems in one pass, each with its element, location and fix."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hybridsim.core.errors import Problem, Severity
from hybridsim.model.compound_joints import axes_of, elementary_chain
from hybridsim.model.geometry import Shape
from hybridsim.model.inertial import Inertial
from hybridsim.model.singular_joints import bodies_with_singular_joints
from hybridsim.model.specs import (
    ONE_DOF_JOINTS,
    WORLD_NAME,
    BodySpec,
    JointKind,
    ModelSpec,
    Source,
)
from hybridsim.model.validate_settings import problem_at, setting_problems

TRIANGLE_TOLERANCE = 1e-6
"""Relative violation of the triangle inequality of the principal moments that is attributed to rounding in the file."""
MAX_PLAUSIBLE_LENGTH = 100.0
"""Link length [m] above which the unit is more likely millimetres."""
NEGLIGIBLE_MASS = 0.01
"""Fraction of the model's total mass below which the inertia unit of a body is not checked (placeholder bodies)."""
MAX_GYRATION_RATIO = 3.0
"""Ratio of radius of gyration to body extent above which the inertia is more likely in another unit."""


def model_problems(spec: ModelSpec) -> list[Problem]:
    """All errors and warnings about a description."""
    problems = [*_name_problems(spec), *_tree_problems(spec)]
    for body in spec.bodies:
        problems += (replace(problem, element=body.name) for problem in _body_problems(body))
        problems += (replace(problem, element=body.joint.name) for problem in _joint_problems(body))
    problems += _mimic_problems(spec)
    problems += [*_geom_problems(spec), *_reference_problems(spec)]
    problems += setting_problems(spec)
    if not any(p.severity is Severity.ERROR for p in problems):
        problems += _singular_joint_problems(spec)
        problems += _unit_problems(spec)
    return problems


def _name_problems(spec: ModelSpec) -> Iterator[Problem]:
    named = [("body", b.name, b.source) for b in spec.bodies] + [
        ("joint", b.joint.name, b.joint.source) for b in spec.bodies
    ]
    first_sources: dict[tuple[str, str], Source] = {}
    for what, name, source in named:
        if not name:
            yield problem_at(source, "name.missing", f"a {what} has no name", f"give the {what} a unique name")
        elif (what, name) in first_sources:
            first = first_sources[what, name]
            also = f" (first at line {first.line})" if first.line else ""
            plural = {"body": "bodies", "joint": "joints"}[what]
            yield problem_at(source, "name.duplicate", f"two {plural} are named {name!r}{also}", f"rename one {what}")
        first_sources.setdefault((what, name), source)
        if what == "body" and name == WORLD_NAME:
            yield problem_at(
                source, "name.world", "a body is named 'world'", "the name is reserved for the world; rename the body"
            )


def _tree_problems(spec: ModelSpec) -> Iterator[Problem]:
    added = {WORLD_NAME}
    names = {WORLD_NAME} | {body.name for body in spec.bodies}
    if not spec.bodies:
        yield problem_at(Source(), "tree.empty", f"model {spec.name!r} has no body", "add at least one body")
    for body in spec.bodies:
        if body.parent not in names:
            yield problem_at(
                body.source,
                "tree.parent",
                f"parent {body.parent!r} of body {body.name!r} does not exist",
                f"the bodies are {', '.join(sorted(names))}",
            )
        elif body.parent not in added:
            yield problem_at(
                body.source,
                "tree.order",
                f"body {body.name!r} comes before its parent {body.parent!r}",
                "add parents before children; kinematic loops are not supported",
            )
        if body.joint.kind is JointKind.FREE and body.parent != WORLD_NAME:
            yield problem_at(
                body.joint.source,
                "joint.free_not_root",
                f"free joint {body.joint.name!r} is attached to body {body.parent!r}",
                f"a free joint must be attached to the world; make body {body.name!r} a root body",
            )
        added.add(body.name)


def _body_problems(body: BodySpec) -> Iterator[Problem]:
    for problem in inertial_problems(body.name, body.inertial, body.inertial_source):
        if problem.code == "mass.zero_with_inertia" and body.joint.kind is JointKind.FIXED:
            # the composite body that it is merged into can still be valid
            message = f"{problem.message}; its inertia is added to the body that it is fixed to"
            problem = replace(problem, severity=Severity.WARNING, message=message)
        yield problem


def inertial_problems(name: str, inertial: Inertial, source: Source) -> Iterator[Problem]:
    """Physically inconsistent mass properties of the body with this name."""
    values = [np.array([inertial.mass]), inertial.com, inertial.inertia.ravel()]
    if not all(np.isfinite(n).all() for n in values):
        yield problem_at(
            source,
            "inertial.nonfinite",
            f"mass properties of body {name!r} are not finite",
            "write finite values",
        )
        return
    if inertial.mass < 0.0:
        yield problem_at(
            source,
            "mass.negative",
            f"mass of body {name!r} is {inertial.mass:g} kg",
            "mass must be positive, or zero for a massless body",
        )
        return
    if not np.allclose(inertial.inertia, inertial.inertia.T, rtol=0.0, atol=1e-9 * np.abs(inertial.inertia).max()):
        yield problem_at(
            source, "inertia.asymmetric", f"inertia of body {name!r} is not symmetric", "check its entries"
        )
        return
    moments = np.linalg.eigvalsh(inertial.inertia)
    if inertial.mass == 0.0:
        if np.abs(inertial.inertia).max() > 0.0:
            yield problem_at(
                source,
                "mass.zero_with_inertia",
                f"body {name!r} has inertia but no mass",
                "give it a mass, or remove the inertia",
            )
        return
    scale = max(moments[-1], 0.0)
    if moments[0] < -TRIANGLE_TOLERANCE * scale or scale < 0.0 or moments[-1] < 0.0:
        yield problem_at(
            source,
            "inertia.indefinite",
            f"inertia of body {name!r} has a negative principal moment: {_format_values(moments)} kg·m²",
            "check signs and off-diagonal entries; principal moments must not be negative",
        )
    elif moments[2] > (moments[0] + moments[1]) * (1.0 + TRIANGLE_TOLERANCE):
        yield problem_at(
            source,
            "inertia.triangle",
            f"principal moments of body {name!r}, {_format_values(moments)} kg·m², violate the triangle inequality "
            "I3 ≤ I1 + I2",
            "no mass distribution has such moments; check the largest one",
        )


def _joint_problems(body: BodySpec) -> Iterator[Problem]:
    joint = body.joint
    if not (np.isfinite(body.placement.p).all() and np.isfinite(body.placement.R).all()):
        yield problem_at(
            joint.source,
            "placement.nonfinite",
            f"placement of joint {joint.name!r} is not finite",
            "write finite values",
        )
    for axis in axes_of(joint):
        length = np.linalg.norm(axis)
        if not np.isfinite(length) or length < 1e-9:
            yield problem_at(
                joint.source,
                "axis.zero",
                f"axis of joint {joint.name!r} is ({_format_values(axis)}), which has no direction",
                "specify a non-zero vector such as 0 0 1",
            )
    if joint.lower > joint.upper and joint.kind in ONE_DOF_JOINTS:
        yield problem_at(
            joint.source,
            "limit.order",
            f"limits of joint {joint.name!r} are swapped: lower {joint.lower:g} > upper {joint.upper:g}",
            "swap the two values",
        )
    for field in ("armature", "stiffness", "damping", "friction", "stribeck_friction", "effort_limit"):
        value = getattr(joint, field)
        if np.isnan(value) or value < 0.0 or (np.isinf(value) and field != "effort_limit"):
            yield problem_at(
                joint.source,
                f"{field}.invalid",
                f"{field.replace('_', ' ')} of joint {joint.name!r} is {value:g}",
                "it must be nonnegative" if field == "effort_limit" else "it must be finite and nonnegative",
            )
    for field in ("lower", "upper"):
        if np.isnan(getattr(joint, field)):
            yield problem_at(
                joint.source,
                "limit.nan",
                f"{field} limit of joint {joint.name!r} is NaN",
                "write a finite value",
            )


def _mimic_problems(spec: ModelSpec) -> Iterator[Problem]:
    joints = {body.joint.name: body.joint for body in spec.bodies}
    for joint in joints.values():
        if not joint.mimic:
            continue
        master = joints.get(joint.mimic)
        where = f"joint {joint.name!r} mimics {joint.mimic!r}"
        if master is None:
            yield problem_at(
                joint.source,
                "mimic.unknown",
                f"{where}, which does not exist",
                f"the joints are {', '.join(joints)}",
            )
        elif master is joint:
            yield problem_at(joint.source, "mimic.self", f"joint {joint.name!r} mimics itself", "name another joint")
        elif master.mimic:
            yield problem_at(
                joint.source,
                "mimic.chain",
                f"{where}, which is itself a mimic joint",
                f"mimic the first joint of the chain, {master.mimic!r}, with the product of the multipliers",
            )
        elif joint.kind not in ONE_DOF_JOINTS or master.kind not in ONE_DOF_JOINTS:
            yield problem_at(
                joint.source,
                "mimic.kind",
                f"{where}, but one of the two does not have exactly one degree of freedom",
                "only revolute, continuous and prismatic joints can mimic each other",
            )


def _geom_problems(spec: ModelSpec) -> Iterator[Problem]:
    bodies = {body.name for body in spec.bodies} | {WORLD_NAME}
    for geom in spec.geoms:
        if geom.body not in bodies:
            yield problem_at(
                geom.source,
                "geom.body",
                f"body {geom.body!r} of shape {geom.name!r} does not exist",
                "attach the shape to an existing body",
            )
        # the scale of a mesh may be negative, which mirrors it
        negative = geom.shape is not Shape.MESH and (np.asarray(geom.size) < 0.0).any()
        if not np.isfinite(geom.size).all() or negative:
            yield problem_at(
                geom.source,
                "geom.size",
                f"size of shape {geom.name!r} is {_format_values(geom.size)}",
                "sizes must be finite and nonnegative",
            )


def _reference_problems(spec: ModelSpec) -> Iterator[Problem]:
    """Unknown bodies of frames, and joints that actuators cannot act on."""
    bodies = {body.name for body in spec.bodies} | {WORLD_NAME}
    joints = {body.joint.name: body.joint for body in spec.bodies}
    for frame in spec.frames:
        if frame.body not in bodies:
            yield problem_at(
                Source(),
                "frame.body",
                f"body {frame.body!r} of frame {frame.name!r} does not exist",
                "attach the frame to an existing body",
            )
    actuatable = [name for name, joint in joints.items() if joint.kind in ONE_DOF_JOINTS and not joint.mimic]
    actuatable += [part.name for joint in joints.values() if joint.kind.is_compound for part in elementary_chain(joint)]
    for actuator in spec.actuators:
        if actuator.joint not in actuatable:
            yield problem_at(
                actuator.source,
                "actuator.joint",
                f"actuator {actuator.name!r} acts on {actuator.joint!r}, which is not an independent joint with one "
                "degree of freedom",
                f"joints that can be actuated: {', '.join(actuatable) or 'none'}",
            )


def _singular_joint_problems(spec: ModelSpec) -> Iterator[Problem]:
    """Movable joints without inertia, whose acceleration would be 0/0."""
    subtree_mass = {body.name: body.inertial.mass for body in spec.bodies}
    for body in reversed(spec.bodies):
        if body.parent != WORLD_NAME:
            subtree_mass[body.parent] += subtree_mass[body.name]
    for body in bodies_with_singular_joints(spec):
        code = "mass.massless_subtree"
        message = f"joint {body.joint.name!r} carries no mass: body {body.name!r} and its descendants are massless"
        fix = "give the body a mass and an inertia, or make its joint fixed"
        if subtree_mass[body.name] > 0.0:
            code = "joint.singular"
            message = (
                f"joint {body.joint.name!r} can move without moving any mass: body {body.name!r} and its descendants "
                "have no inertia about or along some axis of the joint"
            )
            fix = "give the body an inertia, or make its joint fixed"
        yield replace(problem_at(body.source, code, message, fix), element=body.name)


def _unit_problems(spec: ModelSpec) -> Iterator[Problem]:
    """Values that look like millimetres, grams or a wrong power of ten."""
    extents = _extents(spec)
    total = sum(body.inertial.mass for body in spec.bodies)
    for body in spec.bodies:
        distance = max(_length(body.placement.p), _length(body.inertial.com))
        if distance > MAX_PLAUSIBLE_LENGTH:
            yield problem_at(
                body.source,
                "units.length",
                f"body {body.name!r} or its centre of mass is {distance:g} m away from its reference frame: "
                "this looks like millimetres",
                "lengths are in metres; divide by 1000",
                Severity.WARNING,
            )
        extent = extents[body.name]
        if body.inertial.mass > NEGLIGIBLE_MASS * total and extent > 0.0:
            gyration_radius = float(np.sqrt(np.trace(body.inertial.inertia) / 2.0 / body.inertial.mass))
            if gyration_radius > MAX_GYRATION_RATIO * extent:
                yield problem_at(
                    body.inertial_source,
                    "units.inertia",
                    f"inertia of body {body.name!r} is that of a body {gyration_radius / extent:.0f} times its size "
                    f"(radius of gyration {gyration_radius:g} m, extent {extent:g} m)",
                    "inertia is in kg·m² and mass in kg; check both units",
                    Severity.WARNING,
                )


def _extents(spec: ModelSpec) -> dict[str, float]:
    """Extent of each body from its origin [m], from joints, centre of mass and shapes; 0 with meshes or planes."""
    extents = {WORLD_NAME: 0.0}
    for body in spec.bodies:
        offset = _length(body.placement.p)
        extents[body.name] = max(offset, _length(body.inertial.com))
        extents[body.parent] = max(extents[body.parent], offset)
    for geom in spec.geoms:
        extents[geom.body] = max(extents[geom.body], _length(geom.placement.p) + float(np.abs(geom.size).max()))
    for geom in spec.geoms:
        if geom.shape in (Shape.MESH, Shape.PLANE):
            extents[geom.body] = 0.0
    return extents


def _length(vector) -> float:
    return float(np.linalg.norm(vector))


def _format_values(values) -> str:
    return ", ".join(f"{value:g}" for value in values)

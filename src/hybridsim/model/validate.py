"""Checks of a model description: every problem in one pass, with its element, its place and a way out."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hybridsim.core.errors import Problem, Severity
from hybridsim.model.geometry import Shape
from hybridsim.model.inertial import Inertial
from hybridsim.model.mobility import singular_joints
from hybridsim.model.specs import PARTS, WORLD_NAME, BodySpec, JointKind, ModelSpec, Source
from hybridsim.model.validate_settings import problem_at, settings_problems

TRIANGLE_SLACK = 1e-6
"""Relative excess of a principal moment over the sum of the others that passes as rounding in the file."""
PLAUSIBLE_LENGTH = 100.0
"""Links longer than this [m] are more likely in millimetres."""
NEGLIGIBLE_MASS = 0.01
"""Share of the model's mass below which a body is a token, whose units are not looked at."""
PLAUSIBLE_GYRATION = 3.0
"""Radius of gyration over the body's extent beyond which the inertia is more likely in other units."""

_ONE_DOF = (JointKind.REVOLUTE, JointKind.CONTINUOUS, JointKind.PRISMATIC)


def problems_of(spec: ModelSpec) -> list[Problem]:
    """Everything that is wrong or doubtful about a description."""
    problems = [*_name_problems(spec), *_tree_problems(spec)]
    for body in spec.bodies:
        problems += (replace(problem, element=body.name) for problem in _body_problems(body))
        problems += (replace(problem, element=body.joint.name) for problem in _joint_problems(body))
    problems += _mimic_problems(spec)
    problems += _attachment_problems(spec)
    problems += settings_problems(spec)
    if not any(p.severity is Severity.ERROR for p in problems):
        problems += _massless_problems(spec)
        problems += _unit_problems(spec)
    return problems


def _name_problems(spec: ModelSpec) -> Iterator[Problem]:
    named = [("body", b.name, b.source) for b in spec.bodies] + [
        ("joint", b.joint.name, b.joint.source) for b in spec.bodies
    ]
    seen: dict[tuple[str, str], Source] = {}
    for what, name, source in named:
        if not name:
            yield problem_at(source, "name.missing", f"a {what} has no name", f"give the {what} a unique name")
        elif (what, name) in seen:
            first = seen[what, name]
            also = f" (first at line {first.line})" if first.line else ""
            many = {"body": "bodies", "joint": "joints"}[what]
            yield problem_at(source, "name.duplicate", f"two {many} are named {name!r}{also}", f"rename one {what}")
        seen.setdefault((what, name), source)
        if what == "body" and name == WORLD_NAME:
            yield problem_at(
                source, "name.world", "a body is named 'world'", "the name stands for the ground; rename it"
            )


def _tree_problems(spec: ModelSpec) -> Iterator[Problem]:
    known = {WORLD_NAME}
    names = {WORLD_NAME} | {body.name for body in spec.bodies}
    if not spec.bodies:
        yield problem_at(Source(), "tree.empty", f"model {spec.name!r} has no body", "add at least one body")
    for body in spec.bodies:
        if body.parent not in names:
            yield problem_at(
                body.source,
                "tree.parent",
                f"body {body.name!r} hangs on {body.parent!r}, which does not exist",
                f"the bodies are {', '.join(sorted(names))}",
            )
        elif body.parent not in known:
            yield problem_at(
                body.source,
                "tree.order",
                f"body {body.name!r} comes before its parent {body.parent!r}",
                "add parents before children; a loop of bodies cannot be a tree",
            )
        if body.joint.kind is JointKind.FREE and body.parent != WORLD_NAME:
            yield problem_at(
                body.joint.source,
                "joint.free_inside",
                f"free joint {body.joint.name!r} hangs on body {body.parent!r}",
                f"a free joint must hang on the world; make body {body.name!r} a root of its own",
            )
        known.add(body.name)


def _body_problems(body: BodySpec) -> Iterator[Problem]:
    for problem in inertial_problems(body.name, body.inertial, body.inertial_source):
        if problem.code == "mass.zero_with_inertia" and body.joint.kind is JointKind.FIXED:
            # the whole that the body is part of can still be sound
            message = f"{problem.message}; its inertia counts for the body that it is fixed to"
            problem = replace(problem, severity=Severity.WARNING, message=message)
        yield problem


def inertial_problems(name: str, inertial: Inertial, source: Source) -> Iterator[Problem]:
    """What is impossible about the mass properties of the body with this name."""
    numbers = [np.array([inertial.mass]), inertial.com, inertial.inertia.ravel()]
    if not all(np.isfinite(n).all() for n in numbers):
        yield problem_at(
            source,
            "inertial.nonfinite",
            f"mass properties of body {name!r} are not finite",
            "write plain finite numbers",
        )
        return
    if inertial.mass < 0.0:
        yield problem_at(
            source,
            "mass.negative",
            f"mass of body {name!r} is {inertial.mass:g} kg",
            "a mass must be positive",
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
    if moments[0] < -TRIANGLE_SLACK * scale or scale < 0.0 or moments[-1] < 0.0:
        yield problem_at(
            source,
            "inertia.indefinite",
            f"inertia of body {name!r} is not positive definite: principal moments {_list(moments)} kg·m²",
            "check signs and off-diagonal entries; an inertia is a positive definite matrix",
        )
    elif moments[2] > (moments[0] + moments[1]) * (1.0 + TRIANGLE_SLACK):
        yield problem_at(
            source,
            "inertia.triangle",
            f"inertia of body {name!r} is impossible: its principal moments {_list(moments)} kg·m² break I3 ≤ I1 + I2",
            "no distribution of mass has such moments; check the largest one",
        )


def _joint_problems(body: BodySpec) -> Iterator[Problem]:
    joint = body.joint
    if not (np.isfinite(body.placement.p).all() and np.isfinite(body.placement.R).all()):
        yield problem_at(
            joint.source,
            "placement.nonfinite",
            f"placement of joint {joint.name!r} is not finite",
            "write plain finite numbers",
        )
    axes = {JointKind.UNIVERSAL: (joint.axis, joint.axis2), JointKind.PLANAR: (joint.axis,)}
    for axis in axes.get(joint.kind, (joint.axis,) if joint.kind in _ONE_DOF else ()):
        length = np.linalg.norm(axis)
        if not np.isfinite(length) or length < 1e-9:
            yield problem_at(
                joint.source,
                "axis.zero",
                f"axis of joint {joint.name!r} is ({_list(axis)}), which has no direction",
                "give a vector of non-zero length, such as 0 0 1",
            )
    if joint.lower > joint.upper and joint.kind in _ONE_DOF:
        yield problem_at(
            joint.source,
            "limit.order",
            f"limits of joint {joint.name!r} are swapped: lower {joint.lower:g} > upper {joint.upper:g}",
            "exchange the two numbers",
        )
    for field in ("armature", "stiffness", "damping", "friction", "breakaway", "effort_limit"):
        value = getattr(joint, field)
        if np.isnan(value) or value < 0.0 or (np.isinf(value) and field != "effort_limit"):
            yield problem_at(
                joint.source,
                f"{field}.invalid",
                f"{field.replace('_', ' ')} of joint {joint.name!r} is {value:g}",
                "it must be a finite number that is not negative",
            )
    for field in ("lower", "upper"):
        if np.isnan(getattr(joint, field)):
            yield problem_at(
                joint.source,
                "limit.nan",
                f"{field} limit of joint {joint.name!r} is not a number",
                "write a finite number",
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
                f"let it mimic the first joint of the chain, {master.mimic!r}, with the multipliers' product",
            )
        elif joint.kind not in _ONE_DOF or master.kind not in _ONE_DOF:
            yield problem_at(
                joint.source,
                "mimic.kind",
                f"{where}, but one of the two has not exactly one degree of freedom",
                "mimic works between revolute, continuous and prismatic joints",
            )


def _attachment_problems(spec: ModelSpec) -> Iterator[Problem]:
    bodies = {body.name for body in spec.bodies} | {WORLD_NAME}
    joints = {body.joint.name: body.joint for body in spec.bodies}
    for geom in spec.geoms:
        if geom.body not in bodies:
            yield problem_at(
                geom.source,
                "geom.body",
                f"shape {geom.name!r} sits on {geom.body!r}, which does not exist",
                "name a body",
            )
        # the scale of a mesh may be negative: that mirrors it
        negative = geom.shape is not Shape.MESH and (np.asarray(geom.size) < 0.0).any()
        if not np.isfinite(geom.size).all() or negative:
            yield problem_at(
                geom.source,
                "geom.size",
                f"size of shape {geom.name!r} is {_list(geom.size)}",
                "sizes are positive numbers",
            )
    for frame in spec.frames:
        if frame.body not in bodies:
            yield problem_at(
                Source(),
                "frame.body",
                f"frame {frame.name!r} sits on {frame.body!r}, which does not exist",
                "name a body",
            )
    drivable = [name for name, joint in joints.items() if joint.kind in _ONE_DOF and not joint.mimic]
    drivable += [f"{name}.{part}" for name, joint in joints.items() for part in PARTS.get(joint.kind, ())]
    for actuator in spec.actuators:
        if actuator.joint not in drivable:
            yield problem_at(
                actuator.source,
                "actuator.joint",
                f"actuator {actuator.name!r} drives joint {actuator.joint!r}, which does not have "
                "one degree of freedom of its own",
                f"those that have are {', '.join(drivable) or 'none'}",
            )


def _massless_problems(spec: ModelSpec) -> Iterator[Problem]:
    """Moving joints that carry nothing: their acceleration would be 0/0."""
    carried = {body.name: body.inertial.mass for body in spec.bodies}
    for body in reversed(spec.bodies):
        if body.parent != WORLD_NAME:
            carried[body.parent] += carried[body.name]
    for body in singular_joints(spec):
        code = "mass.nothing_carried"
        message = f"joint {body.joint.name!r} carries no mass: body {body.name!r} and all below it have none"
        fix = "give the body a mass and an inertia, or fix its joint"
        if carried[body.name] > 0.0:
            code = "joint.singular"
            message = (
                f"joint {body.joint.name!r} can move without moving any mass: body {body.name!r} and what it "
                "carries have no inertia about or along some axis of the joint"
            )
            fix = "give the body an inertia, or fix its joint"
        yield replace(problem_at(body.source, code, message, fix), element=body.name)


def _unit_problems(spec: ModelSpec) -> Iterator[Problem]:
    """Numbers that look like millimetres, grams or a wrong power of ten."""
    extents = _extents(spec)
    total = sum(body.inertial.mass for body in spec.bodies)
    for body in spec.bodies:
        distance = max(_length(body.placement.p), _length(body.inertial.com))
        if distance > PLAUSIBLE_LENGTH:
            yield problem_at(
                body.source,
                "units.length",
                f"body {body.name!r} is {distance:g} m away from its parent or its own frame: "
                "this looks like millimetres",
                "lengths are in metres; divide by 1000",
                Severity.WARNING,
            )
        extent = extents[body.name]
        if body.inertial.mass > NEGLIGIBLE_MASS * total and extent > 0.0:
            gyration = float(np.sqrt(np.trace(body.inertial.inertia) / 2.0 / body.inertial.mass))
            if gyration > PLAUSIBLE_GYRATION * extent:
                yield problem_at(
                    body.inertial_source,
                    "units.inertia",
                    f"inertia of body {body.name!r} fits something {gyration / extent:.0f} times its size "
                    f"(radius of gyration {gyration:g} m, extent {extent:g} m)",
                    "inertia is in kg·m² and mass in kg; check both units",
                    Severity.WARNING,
                )


def _extents(spec: ModelSpec) -> dict[str, float]:
    """How far each body reaches from its frame [m], as far as its description tells; 0 if it does not."""
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


def _list(values) -> str:
    return ", ".join(f"{value:g}" for value in values)

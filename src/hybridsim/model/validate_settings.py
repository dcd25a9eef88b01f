"""Validation of settings: joint parameters, surfaces, home configuration, gravity, names of frames and actuators."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from hybridsim.core.errors import Problem, Severity
from hybridsim.model.compound_joints import elementary_types
from hybridsim.model.specs import JointKind, JointSpec, ModelSpec, Source

UNIT_QUATERNION_TOLERANCE = 1e-6
"""Tolerance on the norm of a quaternion in a file."""


def setting_problems(spec: ModelSpec) -> Iterator[Problem]:
    """Settings that the engine cannot use or would misinterpret."""
    for body in spec.bodies:
        yield from _joint_setting_problems(body.joint)
    yield from _surface_problems(spec)
    yield from _pair_friction_problems(spec)
    yield from _home_problems(spec)
    yield from _duplicate_name_problems(spec)
    if not np.isfinite(spec.gravity).all():
        yield Problem("gravity is not finite", "write three finite values", code="gravity.nonfinite")
    if not (np.isfinite(spec.timestep) and spec.timestep > 0.0):
        fix = "specify a positive value in seconds"
        yield Problem(f"the time step is {spec.timestep:g}", fix, code="timestep.invalid")
    if spec.bodies and all(body.joint.kind is JointKind.FIXED for body in spec.bodies):
        fix = "give at least one body a joint that is not fixed"
        yield Problem(f"model {spec.name!r} has no movable joint", fix, code="tree.static")


def _joint_setting_problems(joint: JointSpec) -> Iterator[Problem]:
    def problem(code: str, message: str, fix: str) -> Problem:
        return problem_at(joint.source, code, f"joint {joint.name!r} {message}", fix)

    types = [kind.joint for kind in elementary_types(joint.kind)]
    has_quaternion, has_spring = not all(t.is_euclidean for t in types), all(t.has_spring for t in types)
    if has_quaternion and (np.isfinite(joint.lower) or np.isfinite(joint.upper)):
        yield problem("limit.kind", f"is {joint.kind} and has position limits", "limits need a joint with an axis")
    if not has_spring and joint.stiffness != 0.0:
        fix = f"remove the stiffness; a {joint.kind} joint has no rest position"
        yield problem("stiffness.kind", f"is {joint.kind} and has a spring", fix)
    rest = np.asarray(joint.rest, dtype=float)
    if has_quaternion and has_spring and rest.shape != () and not _is_unit_quaternion(rest):
        yield problem("rest.quaternion", f"has rest position {rest.tolist()}", "specify a unit quaternion w x y z")
    if not (has_quaternion and has_spring) and rest.shape != ():
        yield problem("rest.shape", f"has rest position {rest.tolist()}", "specify one value [rad or m]")
    for field in ("friction_width", "stribeck_velocity"):
        value = getattr(joint, field)
        if value is not None and not (np.isfinite(value) and value > 0.0):
            yield problem(
                f"{field}.invalid", f"has {field.replace('_', ' ')} {value:g}", "it must be finite and positive"
            )
    for field in ("limit_stiffness", "limit_damping"):
        value = getattr(joint, field)
        if value is not None and not (np.isfinite(value) and value >= 0.0):
            fix = "it must be finite and nonnegative"
            yield problem(f"{field}.invalid", f"has {field.replace('_', ' ')} {value:g}", fix)


def _surface_problems(spec: ModelSpec) -> Iterator[Problem]:
    for geom in spec.geoms:
        for field, upper in (
            ("friction", np.inf),
            ("restitution", 1.0),
            ("recovery_time", np.inf),
            ("softness", np.inf),
        ):
            value = getattr(geom, field)
            if not (np.isfinite(value) and 0.0 <= value <= upper):
                yield problem_at(
                    geom.source,
                    "geom.surface",
                    f"{field.replace('_', ' ')} of shape {geom.name!r} is {value:g}",
                    "it must be finite and nonnegative" if upper > 1.0 else "it must be between 0 and 1",
                )
        for field, is_valid in (("stiffness", geom.stiffness > 0.0), ("damping", geom.damping >= 0.0)):
            if not is_valid:
                message = f"{field} of shape {geom.name!r} is {getattr(geom, field):g}"
                fix = "it must be positive" if field == "stiffness" else "it must be nonnegative"
                yield problem_at(geom.source, "geom.surface", message, fix)


def _pair_friction_problems(spec: ModelSpec) -> Iterator[Problem]:
    names = {geom.name for geom in spec.geoms}
    for pair, friction in spec.pair_friction.items():
        where = f"friction of the shapes {pair[0]!r} and {pair[1]!r}"
        for name in sorted({*pair} - names):
            fix = f"the shapes are {', '.join(sorted(names)) or 'none'}"
            yield Problem(f"{where}: there is no shape {name!r}", fix, code="geom.pair")
        if pair[::-1] in spec.pair_friction:
            yield Problem(f"{where} is specified twice, in both orders", "remove one of the two", code="geom.pair")
        if not (np.isfinite(friction) and friction >= 0.0):
            yield Problem(f"{where} is {friction:g}", "it must be finite and nonnegative", code="geom.surface")


def _home_problems(spec: ModelSpec) -> Iterator[Problem]:
    joints = {body.joint.name: body.joint for body in spec.bodies}
    for name, value in spec.home.items():
        joint, value = joints.get(name), np.asarray(value, dtype=float)
        where = f"home of joint {name!r}"
        if joint is None:
            yield Problem(
                f"{where}: there is no such joint", f"the joints are {', '.join(joints)}", code="home.unknown"
            )
            continue
        types = [kind.joint for kind in elementary_types(joint.kind)]
        source, expected = joint.source, sum(t.nq for t in types)
        if joint.mimic:
            yield problem_at(source, "home.mimic", f"{where}: it mimics {joint.mimic!r}", "set the home of that joint")
        elif value.size != expected or not np.isfinite(value).all():
            fix = f"a {joint.kind} joint has {expected} coordinate{'s' * (expected != 1)}"
            yield problem_at(source, "home.size", f"{where} is {value.tolist()}", fix)
        elif not types[-1].is_euclidean and not _is_unit_quaternion(value[-4:]):
            yield problem_at(
                source, "home.quaternion", f"{where} is {value.tolist()}", "its quaternion w x y z must have unit norm"
            )


def _duplicate_name_problems(spec: ModelSpec) -> Iterator[Problem]:
    for what, names in (("frame", [f.name for f in spec.frames]), ("actuator", [a.name for a in spec.actuators])):
        for name, count in Counter(names).items():
            if count > 1:
                message = f"{count} {what}s are named {name!r}"
                yield Problem(message, f"rename all but one {what}", code="name.duplicate")


def problem_at(source: Source, code: str, message: str, fix: str, severity: Severity = Severity.ERROR) -> Problem:
    """Problem located at the source of a description."""
    return Problem(message, fix, source.file, source.line, severity, code)


def _is_unit_quaternion(quat: np.ndarray) -> bool:
    return quat.shape == (4,) and abs(float(np.linalg.norm(quat)) - 1.0) < UNIT_QUATERNION_TOLERANCE

"""Values of a model in the form in which MuJoCo takes them: chains of joints, inertias, actuators, poses."""

from collections import Counter
from collections.abc import Container

import numpy as np
from scipy.spatial.transform import Rotation

from hybridsim.io.model_to_spec import SCALAR_JOINTS
from hybridsim.io.write_document import Notes
from hybridsim.model.inertial import Inertial
from hybridsim.model.specs import ActuatorSpec, BodySpec, JointKind, ModelSpec
from hybridsim.spatial.transform import Pose

TOKEN_INERTIA = 1e-14
"""What MuJoCo takes for positive [kg or kg·m²]: it refuses smaller masses and moments."""
_MAX_DOFS = 6
"""Degrees of freedom that MuJoCo allows between two bodies."""


def chains(spec: ModelSpec) -> list[list[BodySpec]]:
    """Bodies of the file, each with the massless ones before it that become further joints of it."""
    bodies = {body.name: body for body in spec.bodies}
    children = Counter(body.parent for body in spec.bodies)
    occupied = {part.body for part in (*spec.geoms, *spec.frames)}

    def folds(name: str) -> bool:
        body = bodies.get(name)
        if body is None or body.inertial.mass or body.inertial.inertia.any() or name in occupied:
            return False
        return body.joint.kind in SCALAR_JOINTS and children[name] == 1

    ended: dict[str, list[BodySpec]] = {}
    for body in spec.bodies:
        chain = [body]
        joins = body.joint.kind in (*SCALAR_JOINTS, JointKind.SPHERICAL) and folds(body.parent)
        room = _MAX_DOFS - (3 if body.joint.kind is JointKind.SPHERICAL else 1)
        if joins and len(ended[body.parent]) <= room:
            chain = [*ended.pop(body.parent), body]
        ended[body.name] = chain
    # by their first joint, which keeps the order of the coordinates
    order = {body.name: i for i, body in enumerate(spec.bodies)}
    return sorted(ended.values(), key=lambda chain: order[chain[0].name])


def bodies_apart(spec: ModelSpec, written: Container[str], notes: Notes) -> list[tuple[str, str]]:
    """Pairs of bodies of the file of which no shapes collide; what cannot be said by bodies is noted.

    Args:
        spec: the model, which excludes pairs of links: bodies, and those that were merged into them.
        written: names of the bodies that the file has.
        notes: what the file does not hold.
    """
    carriers = {frame.name: frame.body for frame in spec.frames} | {body.name: body.name for body in spec.bodies}
    on_body: dict[str, set[str]] = {}
    for geom in spec.geoms:
        carriers[geom.link or geom.body] = geom.body
        on_body.setdefault(geom.body, set()).add(geom.link or geom.body)
    excluded = {frozenset(pair) for pair in spec.excluded_pairs}
    apart: dict[tuple[str, str], None] = {}
    for pair in spec.excluded_pairs:
        a, b = (carriers.get(link, link) for link in pair)
        if a not in written or b not in written:
            notes.add("excluded pairs are left out with a massless body", " and ".join(pair))
        elif all(frozenset((x, y)) in excluded for x in on_body.get(a, {a}) for y in on_body.get(b, {b})):
            apart[a, b] = None
        elif a != b:
            notes.add("excluded pairs are left out, since they hold for some shapes of a body only", " and ".join(pair))
    return [pair for pair in apart if pair[0] != pair[1]]


def accepted_by_mujoco(inertial: Inertial) -> tuple[np.ndarray, float]:
    """An inertia with positive moments that keep I3 ≤ I1 + I2, and what was added to its diagonal."""
    matrix = inertial.inertia
    low, middle, high = np.linalg.eigvalsh(matrix)
    # MuJoCo computes the principal moments of a full matrix, with rounding
    rounding = 0.0 if _is_diagonal(matrix) else 1e-14 * high
    missing = max(TOKEN_INERTIA + rounding - low, high + rounding - low - middle, 0.0)
    if missing == 0.0:
        return matrix, 0.0
    added = 1.001 * missing
    return matrix + added * np.eye(3), added


def _is_diagonal(matrix: np.ndarray) -> bool:
    return not (matrix - np.diag(np.diag(matrix))).any()


def inertia_attributes(matrix: np.ndarray) -> dict[str, np.ndarray]:
    """Attribute of `<inertial>` that gives this matrix."""
    if _is_diagonal(matrix):
        return {"diaginertia": np.diag(matrix)}
    return {"fullinertia": Inertial(inertia=matrix).entries()}


def law(spec: ActuatorSpec) -> tuple[str, dict]:
    """Tag and parameters of an actuator, in the simplest form that has exactly its numbers."""
    gain, (constant, stiffness, damping) = spec.gain, spec.bias
    if constant == 0.0 and gain > 0.0:
        if stiffness == 0.0 and damping == 0.0 and gain == 1.0:
            return "motor", {}
        if stiffness == -gain and damping <= 0.0:
            return "position", {"kp": gain, "kv": -damping if damping else None}
        if stiffness == 0.0 and damping == -gain:
            return "velocity", {"kv": gain}
    if not any(spec.bias):
        return "general", {"gainprm": gain}
    if stiffness == -gain and damping > 0.0:
        # MuJoCo would take the last number for a damping ratio; the smallest difference keeps it from that
        stiffness = float(np.nextafter(stiffness, 0.0))
    return "general", {"gainprm": gain, "biastype": "affine", "biasprm": (constant, stiffness, damping)}


def range_of(lower: float, upper: float) -> tuple[float, float] | None:
    """A range as MuJoCo accepts it, open on one side if need be; None where there is none."""
    if np.isneginf(lower) and np.isposinf(upper):
        return None
    # the two ends must differ
    return lower, float(max(upper, np.nextafter(lower, np.inf), lower + 1e-300))


def pose_attributes(X: Pose) -> dict[str, np.ndarray | None]:
    """Attributes that give a pose; none for the identity."""
    turned = not np.array_equal(X.R, np.eye(3))
    return {"pos": unless_zero(X.p), "quat": quaternion(X.R) if turned else None}


def quaternion(R) -> np.ndarray:
    """Unit quaternion of a rotation matrix, w first and not negative."""
    return Rotation.from_matrix(np.asarray(R)).as_quat(canonical=True, scalar_first=True)


def is_identity(X: Pose) -> bool:
    """Whether a pose is exactly none."""
    return np.array_equal(X.R, np.eye(3)) and not np.any(X.p)


def unless_zero(vector) -> np.ndarray | None:
    """The vector, or None for one that need not be written."""
    return np.asarray(vector) if np.any(vector) else None

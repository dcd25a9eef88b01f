"""Conversion of model values to MJCF: joint chains, inertias, actuators, ranges and poses."""

from collections import Counter
from collections.abc import Container

import numpy as np
from scipy.spatial.transform import Rotation

from hybridsim.io.write_document import Notes
from hybridsim.model.inertial import Inertial
from hybridsim.model.specs import ONE_DOF_JOINTS, ActuatorSpec, BodySpec, JointKind, ModelSpec
from hybridsim.spatial.transform import Pose

MIN_WRITTEN_INERTIAL = 1e-14
"""Lower bound on written masses and principal moments [kg or kg·m²]; MuJoCo's own, `mjMINVAL`, is 1e-15."""
_MAX_DOFS = 6
"""Maximum number of degrees of freedom between two bodies in MuJoCo."""


def body_chains(spec: ModelSpec) -> list[list[BodySpec]]:
    """MJCF bodies as chains: each body with the massless bodies before it, whose joints become joints of the body."""
    bodies = {body.name: body for body in spec.bodies}
    children = Counter(body.parent for body in spec.bodies)
    occupied = {part.body for part in (*spec.geoms, *spec.frames)}

    def can_fold(name: str) -> bool:
        body = bodies.get(name)
        if body is None or body.inertial.mass or body.inertial.inertia.any() or name in occupied:
            return False
        return body.joint.kind in ONE_DOF_JOINTS and children[name] == 1

    open_chains: dict[str, list[BodySpec]] = {}
    for body in spec.bodies:
        chain = [body]
        extends_chain = body.joint.kind in (*ONE_DOF_JOINTS, JointKind.SPHERICAL) and can_fold(body.parent)
        max_length = _MAX_DOFS - (3 if body.joint.kind is JointKind.SPHERICAL else 1)
        if extends_chain and len(open_chains[body.parent]) <= max_length:
            chain = [*open_chains.pop(body.parent), body]
        open_chains[body.name] = chain
    # sorted by their first joint, which preserves the order of the coordinates
    order = {body.name: i for i, body in enumerate(spec.bodies)}
    return sorted(open_chains.values(), key=lambda chain: order[chain[0].name])


def excluded_body_pairs(spec: ModelSpec, written: Container[str], notes: Notes) -> list[tuple[str, str]]:
    """Pairs of MJCF bodies that never collide; exclusions that cannot be expressed for bodies are noted.

    Args:
        spec: the model, with excluded pairs of links: bodies and links merged into them.
        written: names of the bodies in the file.
        notes: collects notes on unsupported features.
    """
    body_of_link = {frame.name: frame.body for frame in spec.frames} | {body.name: body.name for body in spec.bodies}
    links_of_body: dict[str, set[str]] = {}
    for geom in spec.geoms:
        body_of_link[geom.link or geom.body] = geom.body
        links_of_body.setdefault(geom.body, set()).add(geom.link or geom.body)
    excluded = {frozenset(pair) for pair in spec.excluded_pairs}
    body_pairs: dict[tuple[str, str], None] = {}
    for pair in spec.excluded_pairs:
        a, b = (body_of_link.get(link, link) for link in pair)
        if a not in written or b not in written:
            notes.add("excluded pairs with an omitted massless body are omitted", " and ".join(pair))
        elif all(frozenset((x, y)) in excluded for x in links_of_body.get(a, {a}) for y in links_of_body.get(b, {b})):
            body_pairs[a, b] = None
        elif a != b:
            notes.add("excluded pairs that apply to some shapes of a body only are omitted", " and ".join(pair))
    return [pair for pair in body_pairs if pair[0] != pair[1]]


def mujoco_inertia(inertial: Inertial) -> tuple[np.ndarray, float]:
    """Inertia with positive principal moments satisfying I3 ≤ I1 + I2, and the value that was added to its diagonal."""
    matrix = inertial.inertia
    low, middle, high = np.linalg.eigvalsh(matrix)
    # margin for rounding in MuJoCo's eigenvalues of a full matrix
    margin = 0.0 if _is_diagonal(matrix) else 1e-14 * high
    deficit = max(MIN_WRITTEN_INERTIAL + margin - low, high + margin - low - middle, 0.0)
    if deficit == 0.0:
        return matrix, 0.0
    added = 1.001 * deficit
    return matrix + added * np.eye(3), added


def _is_diagonal(matrix: np.ndarray) -> bool:
    return not (matrix - np.diag(np.diag(matrix))).any()


def inertia_attributes(matrix: np.ndarray) -> dict[str, np.ndarray]:
    """Attribute of `<inertial>` for an inertia matrix."""
    if _is_diagonal(matrix):
        return {"diaginertia": np.diag(matrix)}
    return {"fullinertia": Inertial(inertia=matrix).entries()}


def actuator_element(spec: ActuatorSpec) -> tuple[str, dict]:
    """Tag and parameters of an actuator in the simplest form that represents it exactly."""
    gain, (constant, per_length, per_speed) = spec.gain, spec.bias
    if constant == 0.0 and gain > 0.0:
        if per_length == 0.0 and per_speed == 0.0 and gain == 1.0:
            return "motor", {}
        if per_length == -gain and per_speed <= 0.0:
            return "position", {"kp": gain, "kv": -per_speed if per_speed else None}
        if per_length == 0.0 and per_speed == -gain:
            return "velocity", {"kv": gain}
    if not any(spec.bias):
        return "general", {"gainprm": gain}
    if per_length == -gain and per_speed > 0.0:
        # keeps MuJoCo from interpreting the last value as a damping ratio
        per_length = float(np.nextafter(per_length, 0.0))
    return "general", {"gainprm": gain, "biastype": "affine", "biasprm": (constant, per_length, per_speed)}


def range_of(lower: float, upper: float) -> tuple[float, float] | None:
    """A range as MuJoCo accepts it, possibly one-sided; None if unlimited."""
    if np.isneginf(lower) and np.isposinf(upper):
        return None
    # the two limits must differ
    return lower, float(max(upper, np.nextafter(lower, np.inf), lower + 1e-300))


def pose_attributes(X: Pose) -> dict[str, np.ndarray | None]:
    """Attributes of a pose; None for those of the identity."""
    rotated = not np.array_equal(X.R, np.eye(3))
    return {"pos": nonzero_or_none(X.p), "quat": quaternion(X.R) if rotated else None}


def quaternion(R) -> np.ndarray:
    """Unit quaternion of a rotation matrix, w first and nonnegative."""
    return Rotation.from_matrix(np.asarray(R)).as_quat(canonical=True, scalar_first=True)


def is_identity(X: Pose) -> bool:
    """Whether a pose is exactly the identity."""
    return np.array_equal(X.R, np.eye(3)) and not np.any(X.p)


def nonzero_or_none(vector) -> np.ndarray | None:
    """The vector; None if it is zero."""
    return np.asarray(vector) if np.any(vector) else None

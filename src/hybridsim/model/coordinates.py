"""Coordinates of the whole mechanism: moving on their manifold, and mimic joints.

`q` has a quaternion for every spherical or free joint, so `q + delta` makes no sense; `retract` and `difference`
do. Mimic joints have no coordinate of their own: `expand` gives the tree's coordinates from the independent ones.
"""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray, Numbers, Q, Qd
from hybridsim.model import joints
from hybridsim.model.joints import JointType
from hybridsim.model.model import Model
from hybridsim.model.topology import Topology

_SCALAR = (JointType.REVOLUTE, JointType.PRISMATIC)


def checked(model: Model, what: str, values: Numbers, *, size: int, names: tuple[str, ...]) -> Float[AnyArray, " n"]:
    """`values` as an array, if there are as many as the model wants; raises `ValueError` with their names."""
    array = jnp.asarray(values)
    if array.shape != (size,):
        listed = f": {', '.join(names)}" if names else ""
        raise ValueError(f"{what} has shape {array.shape}, but model {model.name!r} wants {size} numbers{listed}")
    return array


def checked_q(model: Model, q: Numbers) -> Q:
    """Coordinates of the right length."""
    return checked(model, "q", q, size=model.nq, names=model.topology.coordinate_names)


def checked_v(model: Model, what: str, values: Numbers) -> Qd:
    """Velocities, accelerations or torques of the right length."""
    return checked(model, what, values, size=model.nv, names=model.topology.dof_names)


def retract(model: Model, q: Q, delta: Qd) -> Q:
    """Coordinates after a small motion `delta` along the degrees of freedom [rad or m]."""
    return _joined(joints.retract(kind, q[iq], delta[iv]) for kind, iq, iv in _segments(model.topology))


def difference(model: Model, q: Q, q_to: Q) -> Qd:
    """The `delta` for which `retract(model, q, delta)` is `q_to` [rad or m]."""
    return _joined(joints.difference(kind, q[iq], q_to[iq]) for kind, iq, _ in _segments(model.topology))


def coordinate_rate(model: Model, q: Q, qd: Qd) -> Q:
    """Time derivative of `q`."""
    return _joined(joints.rate(kind, q[iq], qd[iv]) for kind, iq, iv in _segments(model.topology))


def normalized(model: Model, q: Q) -> Q:
    """`q` with its quaternions brought back to unit length."""
    return _joined(joints.normalize(kind, q[iq]) for kind, iq, _ in _segments(model.topology))


def carried_acceleration(model: Model, qd: Qd, qdd: Qd) -> Qd:
    """`qdd` with free bodies' linear part as a world vector; see `joints.carried_acceleration`."""
    parts = (
        qdd[iv] + joints.carried_acceleration(k, qd[iv]) if k is JointType.FREE else qdd[iv]
        for k, _, iv in _segments(model.topology)
    )
    return _joined(parts)


def carried_velocity(model: Model, qd: Qd, dt: AnyArray) -> Qd:
    """`qd` in the body frames that free bodies have turned to within the step."""
    return _joined(joints.carried_velocity(kind, qd[iv], dt) for kind, _, iv in _segments(model.topology))


def expand_q(model: Model, q: Q) -> Float[AnyArray, " mq"]:
    """Coordinates of every joint of the tree, mimic joints included."""
    topology = model.topology
    if not topology.is_coupled:
        return q
    parts = []
    for body, (start, stop) in enumerate(topology.q_slices):
        own = q[start:stop]
        if topology.mimics[body] >= 0:
            own = model.joint.mimic_ratio[body] * own + model.joint.mimic_offset[body]
        parts.append(own)
    return jnp.concatenate(parts)


def expand_v(model: Model, qd: Qd) -> Float[AnyArray, " mv"]:
    """Velocities (or accelerations) of every joint of the tree, mimic joints included."""
    return coupling(model) @ qd if model.topology.is_coupled else qd


def reduce_tau(model: Model, tau: Float[AnyArray, " mv"]) -> Float[AnyArray, " nv"]:
    """Torques on the independent degrees of freedom that do the work of the tree's torques."""
    return tau @ coupling(model) if model.topology.is_coupled else tau


def scalar_positions(model: Model, q: Float[AnyArray, " mq"]) -> Float[AnyArray, " mv"]:
    """Coordinate of each degree of freedom; zero for those of spherical and free joints, which have none."""
    topology = model.topology
    if topology.mq == topology.mv:
        return q
    parts = []
    for kind, (q0, q1) in zip(topology.joint_types, topology.tree_q_slices, strict=True):
        parts.append(q[q0:q1] if kind.nq == kind.nv else jnp.zeros(kind.nv))
    return jnp.concatenate(parts)


def coupling(model: Model) -> Float[AnyArray, "mv nv"]:
    """Matrix G with `qd_tree = G qd`."""
    topology = model.topology
    select = np.zeros((topology.mv, topology.nv))
    body_of_dof = np.zeros(topology.mv, dtype=int)
    for body, ((t0, t1), (v0, v1)) in enumerate(zip(topology.tree_v_slices, topology.v_slices, strict=True)):
        select[t0:t1, v0:v1] = np.eye(t1 - t0)
        body_of_dof[t0:t1] = body
    is_mimic = np.asarray(topology.mimics)[body_of_dof] >= 0
    return select * jnp.where(is_mimic, model.joint.mimic_ratio[body_of_dof], 1.0)[:, None]


def neutral(topology: Topology) -> np.ndarray:
    """Coordinates of the zero configuration: zeros and unit quaternions."""
    q = np.zeros(topology.nq)
    for kind, iq, _ in _segments(topology):
        if kind not in _SCALAR:
            q[iq.stop - 4] = 1.0  # a quaternion comes last, w first
    return q


def _segments(topology: Topology) -> Iterator[tuple[JointType, slice, slice]]:
    """Runs of independent coordinates that are handled alike: each joint with a quaternion, or many scalars."""
    pending: tuple[int, int, int, int] | None = None
    bounds = zip(topology.joint_types, topology.q_slices, topology.v_slices, topology.mimics, strict=True)
    for kind, (q0, q1), (v0, v1), master in bounds:
        if master >= 0 or kind is JointType.FIXED:
            continue
        if kind in _SCALAR:
            pending = (pending[0], q1, pending[2], v1) if pending else (q0, q1, v0, v1)
            continue
        if pending:
            yield JointType.REVOLUTE, slice(*pending[:2]), slice(*pending[2:])
            pending = None
        yield kind, slice(q0, q1), slice(v0, v1)
    if pending:
        yield JointType.REVOLUTE, slice(*pending[:2]), slice(*pending[2:])


def _joined(parts) -> Float[AnyArray, " n"]:
    parts = list(parts)
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts) if parts else jnp.zeros(0)

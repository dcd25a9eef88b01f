"""Configuration space of the whole mechanism: retraction, difference and mimic joints.

`q` contains a quaternion for every spherical or free joint, so `q + delta` is not a configuration; use `retract` and
`difference`. Mimic joints have no entry in `q`: `expand_q` returns the coordinates of all joints of the tree from the
independent ones.
"""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray, ArrayLike, Q, Qd
from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.model import Model
from hybridsim.model.topology import Topology


def require_size(
    model: Model, what: str, values: ArrayLike, *, size: int, names: tuple[str, ...]
) -> Float[AnyArray, " n"]:
    """`values` as an array of length `size`; raises a `ValueError` that lists the expected entries otherwise."""
    array = jnp.asarray(values)
    if array.shape != (size,):
        listed = f": {', '.join(names)}" if names else ""
        raise ValueError(f"{what} has shape {array.shape}; model {model.name!r} expects shape ({size},){listed}")
    return array


def require_q(model: Model, q: ArrayLike) -> Q:
    """Coordinates `q` as an array; raises `ValueError` if the length is wrong."""
    return require_size(model, "q", q, size=model.nq, names=model.topology.coordinate_names)


def require_v(model: Model, what: str, values: ArrayLike) -> Qd:
    """Velocities, accelerations or torques as an array; raises `ValueError` if the length is wrong."""
    return require_size(model, what, values, size=model.nv, names=model.topology.dof_names)


def retract(model: Model, q: Q, delta: Qd) -> Q:
    """Configuration reached from `q` by the tangent-space displacement `delta` [rad or m]."""
    return _concatenate(kind.joint.retract(q[iq], delta[iv]) for kind, iq, iv in _segments(model.topology))


def difference(model: Model, q: Q, q_to: Q) -> Qd:
    """Tangent-space displacement from `q` to `q_to` [rad or m]; the inverse of `retract`."""
    return _concatenate(kind.joint.difference(q[iq], q_to[iq]) for kind, iq, _ in _segments(model.topology))


def coordinate_rate(model: Model, q: Q, qd: Qd) -> Q:
    """Time derivative of `q`."""
    return _concatenate(kind.joint.rate(q[iq], qd[iv]) for kind, iq, iv in _segments(model.topology))


def normalize(model: Model, q: Q) -> Q:
    """`q` with its quaternions normalized to unit length."""
    return _concatenate(kind.joint.normalize(q[iq]) for kind, iq, _ in _segments(model.topology))


def classical_acceleration(model: Model, qd: Qd, qdd: Qd) -> Qd:
    """`qdd` with the classical linear acceleration of free bodies; see `classical_acceleration_term` of joints."""
    parts = (
        qdd[iv] + kind.joint.classical_acceleration_term(qd[iv]) if kind.joint.has_rotating_velocity else qdd[iv]
        for kind, _, iv in _segments(model.topology)
    )
    return _concatenate(parts)


def reexpress_velocity(model: Model, qd: Qd, dt: AnyArray) -> Qd:
    """`qd` with the linear velocity of free bodies expressed in their body frames at the end of the step."""
    return _concatenate(kind.joint.reexpress_velocity(qd[iv], dt) for kind, _, iv in _segments(model.topology))


def expand_q(model: Model, q: Q) -> Float[AnyArray, " tree_nq"]:
    """Coordinates of every joint of the tree, mimic joints included."""
    topology = model.topology
    if not topology.has_mimic_joints:
        return q
    parts = []
    for body, (start, stop) in enumerate(topology.q_slices):
        joint_q = q[start:stop]
        if topology.masters[body] >= 0:
            joint_q = model.joint.mimic_ratio[body] * joint_q + model.joint.mimic_offset[body]
        parts.append(joint_q)
    return jnp.concatenate(parts)


def expand_v(model: Model, qd: Qd) -> Float[AnyArray, " tree_nv"]:
    """Velocities (or accelerations) of every joint of the tree, mimic joints included."""
    return coupling_matrix(model) @ qd if model.topology.has_mimic_joints else qd


def reduce_tau(model: Model, tau: Float[AnyArray, " tree_nv"]) -> Float[AnyArray, " nv"]:
    """Generalized forces on the independent degrees of freedom, Gᵀ tau, with the same power as `tau` on the tree."""
    return tau @ coupling_matrix(model) if model.topology.has_mimic_joints else tau


def scalar_positions(model: Model, q: Float[AnyArray, " tree_nq"]) -> Float[AnyArray, " tree_nv"]:
    """Scalar coordinate of each degree of freedom; zero for spherical and free joints, which have none."""
    topology = model.topology
    if topology.tree_nq == topology.tree_nv:
        return q
    parts = []
    for kind, (q0, q1) in zip(topology.joint_types, topology.tree_q_slices, strict=True):
        parts.append(q[q0:q1] if kind.joint.is_euclidean else jnp.zeros(kind.nv))
    return jnp.concatenate(parts)


def coupling_matrix(model: Model) -> Float[AnyArray, "tree_nv nv"]:
    """Coupling matrix G of the mimic joints: `qd_tree = G qd`."""
    topology = model.topology
    select = np.zeros((topology.tree_nv, topology.nv))
    body_of_dof = np.zeros(topology.tree_nv, dtype=int)
    for body, ((t0, t1), (v0, v1)) in enumerate(zip(topology.tree_v_slices, topology.v_slices, strict=True)):
        select[t0:t1, v0:v1] = np.eye(t1 - t0)
        body_of_dof[t0:t1] = body
    is_mimic = np.asarray(topology.masters)[body_of_dof] >= 0
    return select * jnp.where(is_mimic, model.joint.mimic_ratio[body_of_dof], 1.0)[:, None]


def zero_configuration(topology: Topology) -> np.ndarray:
    """Zero configuration: zeros and identity quaternions."""
    q = np.zeros(topology.nq)
    for kind, iq, _ in _segments(topology):
        if not kind.joint.is_euclidean:
            q[iq] = kind.joint.zero_coordinates()
    return q


def _segments(topology: Topology) -> Iterator[tuple[ElementaryJointType, slice, slice]]:
    """Ranges of independent coordinates processed together: one joint with a quaternion, or a run of the other joints.

    A run is labelled REVOLUTE whatever joints it contains.
    """
    pending: tuple[int, int, int, int] | None = None
    bounds = zip(topology.joint_types, topology.q_slices, topology.v_slices, topology.masters, strict=True)
    for kind, (q0, q1), (v0, v1), master in bounds:
        if master >= 0 or kind.nv == 0:
            continue
        if kind.joint.is_euclidean:
            pending = (pending[0], q1, pending[2], v1) if pending else (q0, q1, v0, v1)
            continue
        if pending:
            yield ElementaryJointType.REVOLUTE, slice(*pending[:2]), slice(*pending[2:])
            pending = None
        yield kind, slice(q0, q1), slice(v0, v1)
    if pending:
        yield ElementaryJointType.REVOLUTE, slice(*pending[:2]), slice(*pending[2:])


def _concatenate(parts) -> Float[AnyArray, " n"]:
    parts = list(parts)
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts) if parts else jnp.zeros(0)

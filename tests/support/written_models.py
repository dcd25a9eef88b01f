"""Round trip of models through written files, and comparison of the results."""

from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import numpy as np
import pinocchio as pin

from hybridsim.core.errors import ModelError, Severity
from hybridsim.io.convert import convert
from hybridsim.io.load import inspect_model
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.model import Model
from support.compare import assert_relative
from support.pinocchio_twin import PinocchioTwin
from support.random_models import random_state


def box_on_a_hinge(**parameters) -> ModelBuilder:
    """Builder with a single body on a hinge."""
    return ModelBuilder("m").add_body("box", joint="hinge", mass=1.0, inertia=(1.0, 1.0, 1.0), **parameters)


def read_back(out: Path, notes: Sequence[str] = (), **options) -> Model:
    """Model in a written file, ignoring warnings."""
    base = "free" if any("base='free'" in note for note in notes) else "fixed"
    model, problems = inspect_model(out, **({"base": base} if base == "free" else {}), **options)
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    if model is None or errors:
        raise ModelError(errors)
    return model


def round_trip(model: Model, out: Path) -> tuple[Model, list[str]]:
    """Model after writing and reading, merged like the original, and the notes of the writer."""
    notes = convert(model, out)
    return read_back(out, notes, merge=ElementaryJointType.FIXED not in model.topology.joint_types), notes


def mass_matrix_and_bias(model: Model, q, qd) -> tuple[np.ndarray, np.ndarray]:
    """Mass matrix and bias torques by Pinocchio, without compilation; its free-joint armature is in the body frame."""
    twin = PinocchioTwin(model)
    M = pin.crba(twin.pin, twin.data, twin.to_pinocchio_q(q))
    M = np.triu(M) + np.triu(M, 1).T
    bias = pin.nonLinearEffects(twin.pin, twin.data, twin.to_pinocchio_q(q), twin.to_pinocchio_v(qd))
    convective_acceleration = np.zeros(model.nv)
    for kind, (start, stop) in zip(model.topology.joint_types, model.topology.v_slices, strict=True):
        if kind is ElementaryJointType.FREE:
            convective_acceleration[start + 3 : stop] = np.cross(qd[start : start + 3], qd[start + 3 : stop])
    armature = np.asarray(model.joint.armature) if model.topology.tree_nv == model.nv else 0.0
    return twin.from_pinocchio_order(twin.from_pinocchio_order(M, 0), 1), twin.from_pinocchio_order(
        bias
    ) + armature * convective_acceleration


def assert_same_dynamics(model: Model, other: Model, tolerance: float = 1e-12) -> None:
    """Compare mass matrix and bias torques in a random state, matched by the names of joints or bodies."""
    q, qd, _ = random_state(model, seed=3)
    q_index, v_index = _indices(model, other)
    M, bias = mass_matrix_and_bias(model, q, qd)
    other_M, other_bias = mass_matrix_and_bias(other, q[q_index], qd[v_index])
    assert_relative(other_M, M[np.ix_(v_index, v_index)], tolerance, "mass matrix")
    assert_relative(other_bias, bias[v_index], tolerance, "bias torques")


def with_equal_unsupported_fields(model: Model, read: Model) -> tuple[Model, Model]:
    """Both models with parameters that URDF does not support made equal: no armature, gravity of the first."""
    model = eqx.tree_at(lambda m: m.joint.armature, model, np.zeros(model.topology.tree_nv))
    read = eqx.tree_at(lambda m: m.gravity, read, model.gravity)
    return model, eqx.tree_at(lambda m: m.joint.armature, read, np.zeros(read.topology.tree_nv))


def assert_same_bodies(model: Model, other: Model) -> None:
    """Check that bodies, inertias and placements are equal by name, except for rounding of axes."""
    assert set(model.topology.body_names) == set(other.topology.body_names)
    for i, name in enumerate(model.topology.body_names):
        k = other.topology.body_index(name)
        assert model.topology.joint_types[i] is other.topology.joint_types[k]
        assert parent_name(model, i) == parent_name(other, k)
        for field in ("mass", "com", "inertia"):
            assert np.array_equal(getattr(model.body, field)[i], getattr(other.body, field)[k]), (name, field)
        if model.topology.joint_types[i] is not ElementaryJointType.FREE:
            assert np.array_equal(model.joint.placement.p[i], other.joint.placement.p[k]), name
            np.testing.assert_allclose(model.joint.placement.R[i], other.joint.placement.R[k], rtol=0, atol=2e-15)
        if model.topology.joint_types[i] in (ElementaryJointType.REVOLUTE, ElementaryJointType.PRISMATIC):
            np.testing.assert_allclose(model.joint.axis[i], other.joint.axis[k], rtol=0, atol=1e-15)


def assert_same_joint_parameters(model: Model, other: Model, fields: tuple[str, ...]) -> None:
    """Check that parameters of each degree of freedom are exactly equal, matched by body name."""
    for i, name in enumerate(model.topology.body_names):
        dofs = slice(*model.topology.tree_v_slices[i])
        other_dofs = slice(*other.topology.tree_v_slices[other.topology.body_index(name)])
        for field in fields:
            values = getattr(model.joint, field)[dofs], getattr(other.joint, field)[other_dofs]
            assert np.array_equal(*values), (name, field)


def parent_name(model: Model, i: int) -> str:
    """Name of the parent of body `i`."""
    parent = model.topology.parents[i]
    return "world" if parent < 0 else model.topology.body_names[parent]


def _indices(model: Model, other: Model) -> tuple[np.ndarray, np.ndarray]:
    """Indices in `model` of the coordinates and degrees of freedom of `other`."""
    q_index, v_index = [], []
    joints = model.topology.joint_names
    for k, name in enumerate(other.topology.joint_names):
        if other.topology.joint_types[k] is not ElementaryJointType.FIXED:
            i = joints.index(name) if name in joints else model.topology.body_index(other.topology.body_names[k])
            q_index += range(*model.topology.q_slices[i])
            v_index += range(*model.topology.v_slices[i])
    assert sorted(v_index) == list(range(model.nv))
    return np.array(q_index), np.array(v_index)

"""Every registered joint type: transform, motion subspace and retraction agree, and so do the dynamics of a chain."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.dynamics.aba import forward_dynamics
from hybridsim.dynamics.crba import mass_matrix
from hybridsim.dynamics.energy import kinetic_energy
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.dynamics.rnea import inverse_dynamics
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.coordinates import retract, zero_configuration
from hybridsim.model.joints import ElementaryJointType

TYPES = list(ElementaryJointType)
MOVING = [kind for kind in TYPES if kind.nv]
AXIS, ANCHOR = np.array([2.0, -1.0, 2.0]) / 3.0, np.array([0.3, -0.2, 0.5])
ROUNDING = 1e-13
"""Values are of the order of one, and each takes a few tens of operations."""


def random_state(kind, seed=0):
    """Coordinates, velocities and the joint."""
    rng, joint = np.random.default_rng(seed), kind.joint
    return joint.retract(joint.zero_coordinates(), rng.normal(size=kind.nv)), rng.normal(size=kind.nv), joint


@pytest.mark.parametrize("kind", TYPES)
def test_coordinates_are_named_with_their_units(kind):
    joint = kind.joint
    assert joint.nv == joint.rotations + joint.translations and joint.nv in (0, 1, 3, 6)
    assert list(joint.dofs.values()) == ["rad/s"] * joint.rotations + ["m/s"] * joint.translations
    if joint.is_euclidean:
        assert list(joint.dofs.values()) == [f"{unit}/s" for unit in joint.coordinates.values()]
    else:
        assert list(joint.coordinates)[-4:] == ["qw", "qx", "qy", "qz"]


@pytest.mark.parametrize("kind", TYPES)
def test_the_frames_coincide_at_zero(kind):
    X = kind.joint.transform(AXIS, ANCHOR, kind.joint.zero_coordinates())
    np.testing.assert_allclose(X.R, np.eye(3), atol=ROUNDING)
    np.testing.assert_allclose(X.p, np.zeros(3), atol=ROUNDING)


@pytest.mark.parametrize("kind", TYPES)
def test_traced_and_numpy_forms_agree(kind):
    q, _, joint = random_state(kind)
    traced, plain = joint.transform(AXIS, ANCHOR, q), joint.numpy_transform(AXIS, ANCHOR, np.asarray(q))
    np.testing.assert_allclose(traced.R, plain.R, atol=ROUNDING)
    np.testing.assert_allclose(traced.p, plain.p, atol=ROUNDING)
    centre = ANCHOR if joint.turns_about_anchor else np.zeros(3)
    columns = joint.numpy_subspace_columns(np.eye(3), AXIS, centre)
    np.testing.assert_allclose(joint.motion_subspace(AXIS, ANCHOR), columns.T, atol=ROUNDING)


@pytest.mark.parametrize("kind", MOVING)
def test_the_motion_subspace_is_the_derivative_of_the_transform(kind):
    q, qd, joint = random_state(kind)

    def transform(q):
        X = joint.transform(AXIS, ANCHOR, q)
        return jnp.asarray(X.R), jnp.asarray(X.p)

    (R, _), (R_dot, p_dot) = jax.jvp(transform, (q,), (joint.rate(q, qd),))
    omega = R.T @ R_dot
    V = jnp.concatenate([jnp.stack([omega[2, 1], omega[0, 2], omega[1, 0]]), R.T @ p_dot])
    np.testing.assert_allclose(V, qd @ joint.motion_subspace(AXIS, ANCHOR), atol=ROUNDING)


@pytest.mark.parametrize("kind", MOVING)
def test_retraction_has_an_inverse_and_its_derivative_is_the_rate(kind):
    q, delta, joint = random_state(kind)
    reached = joint.retract(q, delta)
    np.testing.assert_allclose(joint.difference(q, reached), delta, atol=ROUNDING)
    np.testing.assert_allclose(joint.normalize(reached), reached, atol=ROUNDING)
    _, rate = jax.jvp(lambda h: joint.retract(q, h * delta), (0.0,), (1.0,))
    np.testing.assert_allclose(rate, joint.rate(q, delta), atol=ROUNDING)


@pytest.mark.parametrize("kind", MOVING)
def test_only_joints_that_end_in_a_quaternion_have_a_retraction_of_their_own(kind):
    """Coordinates of all others are added to their velocities, without a call of the joint's methods."""
    joint = kind.joint
    overridden = {name for name in ("retract", "difference", "rate") if name in vars(type(joint))}
    assert overridden == (set() if joint.is_euclidean else {"retract", "difference", "rate"})


@pytest.mark.parametrize("kind", MOVING)
def test_dynamics_of_a_chain(kind):
    """Forward dynamics inverts inverse dynamics, and the kinetic energy is that of the mass matrix."""
    builder = ModelBuilder("chain").declare_unactuated()
    builder.add_body(
        "base", kind="free" if kind is ElementaryJointType.FREE else "revolute", mass=2.0, inertia=(2, 3, 4)
    )
    parameters = {} if kind is ElementaryJointType.FREE else {"kind": str(kind), "at": (0.1, 0.2, 0.3)}
    shape = {"mass": 1.0, "com": (0.1, -0.2, 0.3), "inertia": (0.2, 0.3, 0.4)}
    builder.add_body("middle", parent="base", axis=AXIS, anchor=ANCHOR, **shape, **parameters)
    builder.add_body("tip", parent="middle", at=(0.4, 0.0, 0.2), rpy=(0.3, 0.2, 0.1), **shape)
    model = builder.build()
    rng = np.random.default_rng(1)
    q = retract(model, jnp.asarray(zero_configuration(model.topology)), rng.normal(size=model.nv))
    qd, qdd = rng.normal(size=(2, model.nv))
    tau = inverse_dynamics(model, q, qd, qdd)
    np.testing.assert_allclose(forward_dynamics(model, q, qd, tau), qdd, atol=1e3 * ROUNDING)
    kin = kinematics(model, q, qd)
    energy = 0.5 * qd @ mass_matrix(model, q) @ qd
    np.testing.assert_allclose(kinetic_energy(model, kin, qd), energy, rtol=ROUNDING)


def test_the_anchor_of_a_rotation_stays_in_place():
    for kind in MOVING:
        q, _, joint = random_state(kind, seed=2)
        X = joint.transform(AXIS, ANCHOR, q)
        if joint.rotations and not joint.translations:
            np.testing.assert_allclose(X.point(ANCHOR), ANCHOR, atol=ROUNDING)

"""Dynamics and all intermediate quantities against MuJoCo and Pinocchio, on random trees with all joint types."""

import jax
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import example, given, settings

from hybridsim.dynamics.aba import forward_dynamics
from hybridsim.dynamics.crba import mass_matrix
from hybridsim.dynamics.energy import centre_of_mass, gravity_energy, kinetic_energy, momentum
from hybridsim.dynamics.jacobian import body_jacobian, frame_jacobian
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.dynamics.rnea import bias_torques, gravity_torques, inverse_dynamics
from support.compare import assert_relative
from support.mujoco_twin import MujocoState, mujoco_twin
from support.pinocchio_twin import PinocchioTwin
from support.random_models import EVERY_KIND, random_model, random_state, tree_specs, without_free_armature


@jax.jit
def dynamics_quantities(model, q, qd, tau):
    """All compared quantities, compiled once; the torques also serve as accelerations for inverse dynamics."""
    kin, bodies = kinematics(model, q, qd), range(model.nb)
    return {
        "kin": kin,
        "mass matrix": mass_matrix(model, q),
        "bias": bias_torques(model, q, qd),
        "gravity": gravity_torques(model, q),
        "RNEA": inverse_dynamics(model, q, qd, tau),
        "qdd": forward_dynamics(model, q, qd, tau),
        "body J": [body_jacobian(model, kin, body) for body in bodies],
        "J": [frame_jacobian(model, kin, body, np.zeros(3)) for body in bodies],
        "potential energy": gravity_energy(model, kin),
        "kinetic energy": kinetic_energy(model, kin, qd),
        "centre of mass": centre_of_mass(model, kin),
        "momentum": momentum(model, kin),
    }


def compare_with_pinocchio(model):
    # Pinocchio's armature of a free joint acts in the rotating body frame, ours and MuJoCo's in the world
    model = without_free_armature(model)
    q, qd, tau = random_state(model, seed=1)
    ours, twin = dynamics_quantities(model, q, qd, tau), PinocchioTwin(model)
    kin = ours["kin"]
    pq, pv = twin.to_pinocchio_q(q), twin.to_pinocchio_v(qd)
    data, pm = twin.data, twin.pin

    M = pin.crba(pm, data, pq)
    M = np.triu(M) + np.triu(M, 1).T
    assert_relative(
        ours["mass matrix"], twin.from_pinocchio_order(twin.from_pinocchio_order(M, 0), 1), what="mass matrix"
    )
    assert_relative(ours["bias"], twin.from_pinocchio_order(pin.nonLinearEffects(pm, data, pq, pv)), what="bias")
    assert_relative(
        ours["gravity"], twin.from_pinocchio_order(pin.computeGeneralizedGravity(pm, data, pq)), what="gravity"
    )
    rnea = pin.rnea(pm, data, pq, pv, twin.to_pinocchio_v(tau))
    assert_relative(ours["RNEA"], twin.from_pinocchio_order(rnea), what="RNEA")
    qdd = pin.aba(pm, data, pq, pv, twin.to_pinocchio_v(tau))
    assert_relative(ours["qdd"], twin.from_pinocchio_order(qdd), what="ABA")

    pin.forwardKinematics(pm, data, pq, pv)
    pin.computeJointJacobians(pm, data, pq)
    pin.updateFramePlacements(pm, data)
    for body, frame in twin.frames.items():
        assert_relative(kin.X_WB.R[body], data.oMf[frame].rotation, what="rotation")
        assert_relative(kin.X_WB.p[body], data.oMf[frame].translation, what="position")
        V = pin.getFrameVelocity(pm, data, frame, pin.LOCAL)
        assert_relative(kin.V_WB_B[body], np.r_[V.angular, V.linear], what="velocity")
        J = twin.from_pinocchio_order(pin.getFrameJacobian(pm, data, frame, pin.LOCAL).reshape(6, -1), axis=1)
        assert_relative(ours["body J"][body], np.r_[J[3:], J[:3]], what="Jacobian")
    assert_relative(ours["potential energy"], pin.computePotentialEnergy(pm, data, pq), what="potential energy")
    # from Pinocchio's mass matrix, because its energy function includes the rotors in some models only
    assert_relative(ours["kinetic energy"], 0.5 * pv @ M @ pv, what="kinetic energy")
    assert_relative(ours["centre of mass"], pin.centerOfMass(pm, data, pq), what="centre of mass")
    h = pin.computeCentroidalMomentum(pm, data, pq, pv)
    assert_relative(ours["momentum"], np.r_[h.angular, h.linear], what="momentum")


def compare_with_mujoco(model):
    q, qd, tau = random_state(model, seed=2)
    ours, state = dynamics_quantities(model, q, qd, tau), MujocoState(model, mujoco_twin(model), q, qd)
    kin = ours["kin"]
    assert_relative(ours["mass matrix"], state.mass_matrix(), what="mass matrix")
    assert_relative(ours["bias"], state.bias_torques(), what="bias")
    assert_relative(ours["qdd"], state.accelerations(tau), what="qdd")
    for body, name in enumerate(model.topology.body_names):
        if model.body.mass[body] == 0.0:
            continue  # a massless body of a compound joint is not a body in MuJoCo
        R, p = state.pose(name)
        assert_relative(kin.X_WB.R[body], R, what="rotation")
        assert_relative(kin.X_WB.p[body], p, what="position")
        assert_relative(kin.V_WB_B[body], state.twist(name), what="velocity")
        assert_relative(ours["J"][body], state.point_jacobian(name), what="Jacobian")
    potential, kinetic = state.energies()
    assert_relative(ours["potential energy"], potential, what="potential energy")
    assert_relative(ours["kinetic energy"], kinetic, what="kinetic energy")


@settings(max_examples=1)
@given(spec=tree_specs(mimic=False))
@example(spec=EVERY_KIND)
def test_random_trees(spec):
    model = random_model(**spec)
    compare_with_pinocchio(model)
    compare_with_mujoco(model)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_many_random_trees(seed):
    model = random_model(seed, bodies=1 + seed % 9)
    compare_with_pinocchio(model)
    compare_with_mujoco(model)

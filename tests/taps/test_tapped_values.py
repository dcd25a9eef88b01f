"""Values of the tapped quantities, against the functions of the engine that compute them."""

import numpy as np
import pytest

from hybridsim import Simulator
from hybridsim.dynamics.aba import forward_dynamics
from hybridsim.dynamics.crba import mass_matrix
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.dynamics.rnea import inverse_dynamics
from hybridsim.robots import quadruped
from hybridsim.sim.forward import forward
from hybridsim.sim.state import Inputs


@pytest.fixture(scope="module")
def evaluation():
    sim, rng = Simulator(quadruped(), dt=1e-3), np.random.default_rng(0)
    state = sim.initial_state(qd=rng.normal(size=sim.model.nv))
    inputs = Inputs(rng.normal(size=sim.model.nu), rng.normal(size=(sim.model.nb, 6)))
    taps = sim.open_taps(state, record=True)
    forward(sim, state, inputs, taps)
    return sim.model, state, inputs, taps.published_values()


def test_body_quantities(evaluation):
    model, state, _, values = evaluation
    kin = kinematics(model, state.q, state.qd)
    np.testing.assert_array_equal(values["body.pose"][:, :3], kin.X_WB.p)
    np.testing.assert_array_equal(values["body.twist"], kin.V_WB_B)


def test_the_mass_matrix(evaluation):
    model, state, _, values = evaluation
    np.testing.assert_allclose(values["joint.mass_matrix"], mass_matrix(model, state.q), rtol=1e-12, atol=1e-13)


def test_torques_and_accelerations(evaluation):
    """The torques and external wrenches cause the accelerations, and inverse dynamics returns them."""
    model, state, _, values = evaluation
    np.testing.assert_array_equal(values["joint.tau"], values["joint.passive"] + values["joint.actuation"])
    wrenches = values["body.external_wrench"]
    expected = forward_dynamics(model, state.q, state.qd, values["joint.tau"], wrenches)
    np.testing.assert_allclose(values["joint.qdd"], expected, rtol=1e-12)
    tau = inverse_dynamics(model, state.q, state.qd, values["joint.qdd"], wrenches)
    np.testing.assert_allclose(tau, values["joint.tau"], atol=1e-10)

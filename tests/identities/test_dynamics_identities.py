"""Identities of rigid-body dynamics, on random trees with all joint types and with mimic joints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.dynamics.aba import forward_dynamics
from hybridsim.dynamics.crba import mass_matrix
from hybridsim.dynamics.energy import gravity_energy, kinetic_energy, momentum, total_mass
from hybridsim.dynamics.inertias import armature_bias
from hybridsim.dynamics.jacobian import body_jacobian, point_jacobian
from hybridsim.dynamics.kinematics import kinematics, point_velocity
from hybridsim.dynamics.regressor import inertial_parameters, inertial_regressor
from hybridsim.dynamics.rnea import bias_torques, gravity_torques, inverse_dynamics
from hybridsim.model.coordinates import coordinate_rate, difference, expand_v, reduce_tau, retract
from support.compare import assert_relative
from support.random_models import EVERY_KIND, WITH_MIMICS, random_model, random_state, without_free_armature


def forward_dynamics_inverts_inverse_dynamics(model):
    q, qd, tau = random_state(model, seed=3)
    F_ext = np.random.default_rng(4).normal(size=(model.nb, 6))
    qdd = forward_dynamics(model, q, qd, tau, F_ext)
    yield inverse_dynamics(model, q, qd, qdd, F_ext), tau, 1e-10, "RNEA(ABA(tau))"


def mass_matrix_columns_are_inverse_dynamics_of_unit_accelerations(model):
    q, _, _ = random_state(model, seed=5)
    zero = np.zeros(model.nv)
    M = mass_matrix(model, q)
    gravity = gravity_torques(model, q)
    columns = jax.vmap(lambda e: inverse_dynamics(model, q, zero, e) - gravity)(jnp.eye(model.nv))
    yield M, columns.T, 1e-11, "M"
    yield M, M.T, 1e-15, "symmetry of M"
    yield jnp.minimum(jnp.linalg.eigvalsh(M)[0], 0.0), 0.0, 0.0, "negative eigenvalue of M"


def velocity_products_do_no_work(model):
    """qdᵀ (Ṁ − 2C) qd = 0 for all qd: skew symmetry of Ṁ − 2C, independent of the choice of C."""
    q, qd, _ = random_state(model, seed=6)
    M_dot = jax.jvp(lambda h: mass_matrix(model, retract(model, q, h * qd)), (0.0,), (1.0,))[1]
    velocity_products = bias_torques(model, q, qd) - gravity_torques(model, q)
    yield qd @ M_dot @ qd, 2.0 * qd @ velocity_products, 1e-9, "qdᵀ Ṁ qd"


def power_of_torques_is_rate_of_energy(model):
    q, qd, tau = random_state(model, seed=8)
    qdd = forward_dynamics(model, q, qd, tau)

    def energy(q, qd):
        kin = kinematics(model, q, qd)
        return kinetic_energy(model, kin, qd) + gravity_energy(model, kin)

    rate = jax.jvp(energy, (q, qd), (coordinate_rate(model, q, qd), qdd))[1]
    yield rate, tau @ qd, 1e-9, "dE/dt"


def jacobians_map_velocities_and_wrenches(model):
    q, qd, tau = random_state(model, seed=9)
    kin = kinematics(model, q, qd)
    body = model.nb - 1
    p_B, F = np.array([0.3, -0.2, 0.5]), np.arange(6.0)
    yield body_jacobian(model, kin, body) @ qd, kin.V_WB_B[body], 1e-11, "V"
    yield point_jacobian(model, kin, body, p_B) @ qd, point_velocity(kin, body, p_B), 1e-11, "v"
    # a wrench on a body is a joint torque Jᵀ F
    F_ext = np.zeros((model.nb, 6))
    F_ext[body] = F
    qdd_wrench = forward_dynamics(model, q, qd, tau, F_ext)
    qdd_torques = forward_dynamics(model, q, qd, tau + body_jacobian(model, kin, body).T @ F)
    yield qdd_wrench, qdd_torques, 1e-9, "qdd"


def torques_are_linear_in_inertial_parameters(model):
    q, qd, qdd = random_state(model, seed=10)
    Y = inertial_regressor(model, q, qd, qdd)
    rotors = model.joint.armature * expand_v(model, qdd) + armature_bias(model, kinematics(model, q, qd))
    tau = jnp.einsum("vbk,bk->v", Y, inertial_parameters(model)) + reduce_tau(model, rotors)
    yield tau, inverse_dynamics(model, q, qd, qdd), 1e-10, "Y φ"


def difference_inverts_retract(model):
    q, delta, _ = random_state(model, seed=12)
    delta = delta / np.linalg.norm(delta)
    yield difference(model, q, retract(model, q, delta)), delta, 1e-12, "difference"
    yield retract(model, q, np.zeros(model.nv)), q, 0.0, "coordinates after a zero step"


IDENTITIES = [
    forward_dynamics_inverts_inverse_dynamics,
    mass_matrix_columns_are_inverse_dynamics_of_unit_accelerations,
    velocity_products_do_no_work,
    power_of_torques_is_rate_of_energy,
    jacobians_map_velocities_and_wrenches,
    torques_are_linear_in_inertial_parameters,
    difference_inverts_retract,
]


def check_identities(model):
    """Check all identities, compiled as one program; each yields rows of two equal values, a tolerance and a name."""
    checks = []

    @jax.jit
    def values(model):
        rows = [row for identity in IDENTITIES for row in identity(model)]
        checks.extend(row[2:] for row in rows)
        return [row[:2] for row in rows]

    for (actual, expected), (tolerance, name) in zip(values(model), checks, strict=True):
        if tolerance == 0.0:
            assert np.array_equal(actual, expected), name
        else:
            assert_relative(actual, expected, tolerance, name)


@pytest.mark.parametrize("spec", [EVERY_KIND, WITH_MIMICS], ids=["all joint types", "mimic joints"])
def test_identities_on_a_tree_with_all_joint_types(spec):
    check_identities(random_model(**spec))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_identities_on_many_random_trees(seed):
    check_identities(random_model(seed, bodies=1 + seed % 9, mimic=seed % 2 == 0))


def test_mass_matrix_rate_minus_twice_christoffel_matrix_is_skew():
    """With the Christoffel choice of C the whole matrix Ṁ − 2C is skew-symmetric (mechanisms without quaternions)."""
    model = random_model(8, 3, kinds=("revolute", "prismatic", "universal"), floating=False)
    q, qd, _ = random_state(model, seed=7)

    @jax.jit
    def matrices(model, q, qd):
        # C_ij = ½ ∂h_i/∂qd_j for a bias that is quadratic in qd, which gives the Christoffel matrix
        C = 0.5 * jax.jacfwd(lambda v: bias_torques(model, q, v))(qd)
        M_dot = jax.jvp(lambda q: mass_matrix(model, q), (q,), (qd,))[1]
        return C, M_dot, bias_torques(model, q, qd) - gravity_torques(model, q)

    C, M_dot, velocity_products = matrices(model, q, qd)
    skew = M_dot - 2.0 * C
    assert_relative(C @ qd, velocity_products, 1e-10, "C qd")
    assert_relative(skew, -skew.T, 1e-10, "Ṁ − 2C")


def test_rate_of_momentum_of_a_floating_mechanism_is_its_weight():
    model = without_free_armature(random_model(3, 5, floating=True, kinds=("revolute", "spherical", "prismatic")))
    q, qd, tau = random_state(model, seed=11)
    tau = np.where([name.startswith("j0.") for name in model.topology.dof_names], 0.0, tau)
    roots = [i for i, parent in enumerate(model.topology.parents) if parent == -1]
    assert roots == [0], "the free joint must be the only joint to the world"

    @jax.jit
    def rate_of_momentum(q, qd, tau):
        qdd = forward_dynamics(model, q, qd, tau)

        def momentum_at(q, qd):
            return momentum(model, kinematics(model, q, qd))

        return jax.jvp(momentum_at, (q, qd), (coordinate_rate(model, q, qd), qdd))[1]

    rate = rate_of_momentum(q, qd, tau)
    weight = total_mass(model) * model.gravity
    assert_relative(rate, np.r_[np.zeros(3), weight], 1e-9, "rate of momentum")

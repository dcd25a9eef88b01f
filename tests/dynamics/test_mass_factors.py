"""Factors of the mass matrix: reconstruction, solution, and sparsity."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim import robots
from hybridsim.dynamics.crba import mass_matrix
from hybridsim.dynamics.inertias import body_inertias
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.dynamics.mass_factors import MassFactors, mass_factors
from support.compare import assert_relative
from support.random_models import EVERY_KIND, WITH_MIMICS, random_model, random_state

SPECS = {"every kind of joint": EVERY_KIND, "mimics": WITH_MIMICS}


def factors_of(model) -> tuple[MassFactors, jax.Array, np.ndarray]:
    q, qd, torque = random_state(model, seed=2)

    @jax.jit
    def factors_and_matrix(model, q, qd):
        return mass_factors(model, kinematics(model, q, qd), body_inertias(model)), mass_matrix(model, q)

    return *factors_and_matrix(model, q, qd), torque


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_factors_reconstruct_the_mass_matrix_and_its_inverse(spec):
    factors, M, torque = factors_of(random_model(**spec))
    unit = factors.L + jnp.eye(len(M))
    assert_relative(unit.T @ jnp.diag(1.0 / factors.D_inv) @ unit, M, 1e-12)
    assert_relative(M @ factors.apply_mass_inverse(torque), torque, 1e-9)
    (u, k), (_, k_row) = factors.half_solve(torque), factors.half_solve(M[0])
    assert_relative(u @ k_row, torque[0], 1e-9)
    assert_relative(factors.finish_solve(k), factors.apply_mass_inverse(torque), 1e-15)


def test_factors_preserve_branch_induced_sparsity():
    factors, M, _ = factors_of(robots.quadruped())
    legs = slice(6, None)
    zeros = np.asarray(M)[legs, legs] == 0.0
    assert zeros.sum() == 12 * 9  # four legs of three joints
    np.testing.assert_array_equal(np.asarray(factors.L)[legs, legs][zeros], 0.0)

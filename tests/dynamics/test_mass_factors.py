"""Factors of the mass matrix: they give it back, solve with it, and are zero where it is."""

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
    def both(model, q, qd):
        return mass_factors(model, kinematics(model, q, qd), body_inertias(model)), mass_matrix(model, q)

    return *both(model, q, qd), torque


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_factors_give_the_mass_matrix_and_its_inverse(spec):
    factors, M, torque = factors_of(random_model(**spec))
    unit = factors.L + jnp.eye(len(M))
    assert_relative(unit.T @ jnp.diag(1.0 / factors.D_inv) @ unit, M, 1e-12)
    assert_relative(M @ factors.apply_mass_inverse(torque), torque, 1e-9)
    (u, k), (_, other) = factors.half_solve(torque), factors.half_solve(M[0])
    assert_relative(u @ other, torque[0], 1e-9)
    assert_relative(factors.finish_solve(k), factors.apply_mass_inverse(torque), 1e-15)


def test_joints_on_different_branches_have_nothing_to_do_with_each_other():
    factors, M, _ = factors_of(robots.quadruped())
    legs = slice(6, None)
    apart = np.asarray(M)[legs, legs] == 0.0
    assert apart.sum() == 12 * 9  # four legs of three joints
    np.testing.assert_array_equal(np.asarray(factors.L)[legs, legs][apart], 0.0)

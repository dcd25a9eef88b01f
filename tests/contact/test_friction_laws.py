"""Friction laws: zero and smooth at zero slip, with the stated slope, and the published curve."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.contact.choices import FRICTION_LAWS
from hybridsim.contact.compliant.friction_laws import Andersson, Brown, Coulomb, Hollars

MU, V_T, RATIO = 0.6, 0.02, 1.5
SPEEDS = np.array([0.25, 0.5, 1.0, 2.0, 5.0]) * V_T

# μ(v)/μ at s = v/v_t, written out from the publications
REFERENCES = {
    "coulomb": (Coulomb(V_T), lambda s: np.tanh(s)),
    "andersson": (
        Andersson(V_T, RATIO, 2.0 * V_T, 2.0),
        lambda s: (1.0 + 0.5 * np.exp(-np.square(0.5 * s))) * np.tanh(s),
    ),
    "hollars": (Hollars(V_T, RATIO), lambda s: np.minimum(s, 1.0) * (1.0 + 1.0 / (1.0 + s**2))),
    "brown": (Brown(V_T, RATIO), lambda s: np.tanh(4.0 * s) + 0.5 * s / (s**2 / 4.0 + 0.75) ** 2),
}


@pytest.mark.parametrize("name", FRICTION_LAWS)
def test_a_law_is_the_published_curve(name):
    law, curve = REFERENCES[name]
    assert type(law) is FRICTION_LAWS[name]
    found = jax.vmap(lambda v: law.coefficient(v, MU))(jnp.asarray(SPEEDS))
    np.testing.assert_allclose(found, MU * curve(SPEEDS / V_T), rtol=1e-14)


@pytest.mark.parametrize("name", FRICTION_LAWS)
def test_a_law_is_zero_at_zero_slip_with_the_stated_slope(name):
    law, _ = REFERENCES[name]
    value, slope = jax.value_and_grad(lambda v: law.coefficient(v, MU))(1e-12)
    assert abs(value) < 1e-9
    assert slope == pytest.approx(law.steepness * MU / V_T, rel=1e-6)


@pytest.mark.parametrize("name", FRICTION_LAWS)
def test_the_force_opposes_the_slip(name):
    law, curve = REFERENCES[name]
    slip = np.array([0.6, -0.8]) * V_T
    force = law.force(np.float64(20.0), slip, np.float64(MU))
    np.testing.assert_allclose(force, -20.0 * MU * curve(1.0) * slip / V_T, rtol=1e-14)

"""Log-Cholesky inertias: always physically consistent, exact for the nominal body, differentiable and invertible."""

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridsim.core.errors import ParameterError
from hybridsim.model.inertial import inertia_matrix
from hybridsim.params.free import Free
from hybridsim.params.log_cholesky import nominal_body, second_moments
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots import double_pendulum
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator

MASS, COM = 1.5, np.array([0.1, -0.2, 0.3])
INERTIA = np.array([0.04, 0.05, 0.02, 0.003, 0.002, -0.001])


@pytest.fixture(params=[False, True], ids=["full", "diagonal"])
def body(request):
    return nominal_body("link", MASS, COM, INERTIA, diagonal=request.param)


def random_parameters(seed: int, size: int, spread: float) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=spread, size=size)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 2.0]), st.booleans())
@settings(max_examples=200)
def test_every_theta_is_a_physically_consistent_body(seed, spread, diagonal):
    body = nominal_body("link", MASS, COM, INERTIA, diagonal=diagonal)
    mass, _, inertia = body.mass_properties(random_parameters(seed, body.size, spread))
    moments = np.linalg.eigvalsh(inertia_matrix(inertia))
    # rounding of the inertia's entries hides second moments that are smaller than this
    slack = 1e-14 * moments[-1]
    assert mass > 0.0 and moments[0] > -slack
    assert moments[0] + moments[1] > moments[2] - slack
    assert np.linalg.eigvalsh(second_moments(inertia))[0] > -slack


def test_zero_is_the_nominal_body_bit_for_bit(body):
    for zero in (np.zeros(body.size), jax.numpy.zeros(body.size)):
        mass, com, inertia = body.mass_properties(zero)
        assert mass == MASS and (np.asarray(com) == COM).all() and (np.asarray(inertia) == INERTIA).all()


@pytest.mark.parametrize("seed", range(5))
def test_parameters_is_the_inverse_of_mass_properties(body, seed):
    x = random_parameters(seed, body.size, 0.5)
    mass, com, inertia = body.mass_properties(x)
    np.testing.assert_allclose(body.parameters(float(mass), com, inertia), x, atol=1e-12)


def test_inertia_is_proportional_to_mass(body):
    x = np.zeros(body.size)
    x[0] = np.log(2.0)
    mass, com, inertia = body.mass_properties(x)
    np.testing.assert_allclose(mass, 2.0 * MASS, rtol=1e-15)
    np.testing.assert_allclose(inertia, 2.0 * INERTIA, rtol=1e-15)
    assert (com == COM).all()


def test_diagonal_keeps_the_principal_axes():
    body = nominal_body("link", MASS, COM, INERTIA, diagonal=True)
    _, axes = np.linalg.eigh(inertia_matrix(INERTIA))
    _, _, inertia = body.mass_properties(random_parameters(0, body.size, 0.3))
    rotated = axes.T @ inertia_matrix(inertia) @ axes
    np.testing.assert_allclose(rotated, np.diag(np.diagonal(rotated)), atol=1e-16)


def test_forward_and_reverse_derivatives_and_finite_differences_agree(body):
    def flat(x):
        mass, com, inertia = body.mass_properties(x)
        return jax.numpy.concatenate([mass[None], com, inertia])

    for x in (np.zeros(body.size), random_parameters(3, body.size, 0.5)):
        forward, reverse = (jax.jit(d(flat))(x) for d in (jax.jacfwd, jax.jacrev))
        np.testing.assert_allclose(forward, reverse, atol=1e-15)
        step = 1e-6
        forward_values = [
            np.concatenate([np.atleast_1d(v) for v in body.mass_properties(x + step * e)]) for e in np.eye(body.size)
        ]
        backward_values = [
            np.concatenate([np.atleast_1d(v) for v in body.mass_properties(x - step * e)]) for e in np.eye(body.size)
        ]
        np.testing.assert_allclose(forward.T, (np.array(forward_values) - backward_values) / (2.0 * step), atol=1e-9)
        assert np.linalg.matrix_rank(forward) == body.size, "all parameters are independent"


def _setup(mass=None, inertia=None):
    model = double_pendulum()
    if mass is not None:
        model = eqx.tree_at(lambda m: m.body.mass, model, np.array([1.0, mass]))
    if inertia is not None:
        model = eqx.tree_at(lambda m: m.body.inertia, model, np.array([model.body.inertia[0], inertia]))
    sim = Simulator(model)
    return Setup(sim, Sensors.from_addresses(sim, {"q": "joint.q[joint0]"}))


@pytest.mark.parametrize("variant", ["", ".mass", ".diagonal"])
def test_a_body_without_mass_is_refused(variant):
    with pytest.raises(ParameterError, match=r"'link1' has .*mass"):
        ParameterSpace(_setup(mass=0.0), [Free(f"inertial[*]{variant}")])


def test_an_inconsistent_inertia_is_refused_with_the_violated_inequality():
    inconsistent = _setup(inertia=np.array([0.01, 0.02, 0.05, 0.0, 0.0, 0.0]))
    with pytest.raises(
        ParameterError, match=r"0\.01, 0\.02, 0\.05 kg·m² violate I1 \+ I2 > I3 by 0\.02 kg·m²"
    ) as error:
        ParameterSpace(inconsistent, [Free("inertial[link1]")])
    assert "raise I1 by more than 0.02" in str(error.value) and "inertial[link1].mass" in str(error.value)
    ParameterSpace(inconsistent, [Free("inertial[link1].mass")])


def test_the_advised_inertia_of_a_thin_rod_is_accepted():
    thin = np.array([0.08, 0.08, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(ParameterError, match=r"raise I1 by more than 1\.6e-10"):
        nominal_body("rod", 1.0, np.zeros(3), thin, diagonal=False)
    nominal_body("rod", 1.0, np.zeros(3), thin + np.array([0.0, 0.0, 2e-10, 0.0, 0.0, 0.0]), diagonal=False)


def test_theta_of_an_inconsistent_body_is_an_error():
    space = ParameterSpace(_setup(), [Free("inertial[link1]")])
    with pytest.raises(ParameterError, match=r"inertial\[link1\].*not physically consistent"):
        space.theta_of(_setup(inertia=np.array([0.01, 0.02, 0.05, 0.0, 0.0, 0.0])))


def test_values_are_the_ten_mass_properties():
    space = ParameterSpace(_setup(), [Free("inertial[link1]")])
    values = space.values(space.initial)
    assert list(values)[:2] == ["body.mass[link1]", "body.com[link1].x"] and len(values) == 10
    assert values["body.inertia[link1].xx"] == 1.0 / 12.0
    assert len(space.names) == 10 and space.names[0] == "inertial[link1].log_mass_ratio"

"""Parameters of friction laws and compliant contact: specified by name, invalid, and traced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.contact.choices import FRICTION_LAWS
from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.compliant.friction_laws import Andersson, Brown, Coulomb, Hollars
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.sim.rollout import rollout
from hybridsim.sim.simulator import Simulator
from support.contact_scenes import GRAVITY, body_on_plane

STEPS, DT = 20, 1e-3


def bind_contact(**settings) -> CompliantContact:
    contact = Simulator(body_on_plane("sphere", (0.1,)), contact=CompliantContact(**settings)).contact
    assert isinstance(contact, CompliantContact)
    return contact


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (Coulomb(-0.1), "transition_velocity of the friction law must be finite and nonnegative"),
        (Coulomb(0.0), "transition_velocity of the friction law must be positive"),
        (Coulomb(np.nan), "transition_velocity of the friction law must be finite"),
        (Coulomb(np.full(3, 0.1)), r"transition_velocity of the friction law has shape \(3,\), but there is 1 pair: "),
        (Coulomb({"ice": 0.1}), "no pair of shapes matches 'ice' of transition_velocity of the friction law"),
        (Andersson(stribeck_velocity=0.0), "stribeck_velocity of the friction law must be positive"),
        (Andersson(exponent=-1.0), "exponent of the friction law must be finite and nonnegative"),
        (Hollars(static_ratio=np.inf), "static_ratio of the friction law must be finite"),
        (Brown(static_ratio=np.ones(2)), r"static_ratio of the friction law has shape \(2,\)"),
    ],
    ids=str,
)
def test_invalid_parameters_of_laws_are_refused(law, message):
    with pytest.raises(ValueError, match=message):
        bind_contact(law=law)


@pytest.mark.parametrize("field", ["friction", "stiffness", "damping", "exponent"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1.0, "must be finite and nonnegative"),
        (np.inf, "must be finite"),
        (np.ones(2), r"has shape \(2,\)"),
        ({"ice": 1.0}, "no pair of shapes matches 'ice' of"),
    ],
    ids=["negative", "infinite", "wrong length", "unknown name"],
)
def test_invalid_parameters_of_compliant_contact_are_refused(field, value, message):
    with pytest.raises(ValueError, match=message) as caught:
        bind_contact(**{field: value})
    assert field in str(caught.value)


def test_unknown_laws_and_classes_are_refused():
    with pytest.raises(ValueError, match="unknown friction law 'dry'"):
        CompliantContact(law="dry")
    with pytest.raises(TypeError):
        CompliantContact(law=Coulomb)  # pyright: ignore


@pytest.mark.parametrize("name", FRICTION_LAWS)
def test_parameters_of_laws_by_name(name):
    law = bind_contact(law=FRICTION_LAWS[name](transition_velocity={"*": 0.3, "floor": 0.2})).law
    np.testing.assert_array_equal(law.transition_velocity, [0.2])  # pyright: ignore
    assert all(np.shape(value) == (1,) for value in jax.tree.leaves(law))


CONTACTS = {
    "impulse": lambda mu: ImpulseContact(friction=mu),
    "impulse by name": lambda mu: ImpulseContact(friction={"*": 0.9, "floor": mu}),
    "compliant": lambda mu: CompliantContact(friction=mu, law=Coulomb(0.01)),
    "compliant, all by default": lambda mu: CompliantContact(friction=mu),
    "compliant, static friction too": lambda mu: CompliantContact(friction=mu, law=Hollars(static_ratio=1.0 + mu)),
    "compliant, exponent too": lambda mu: CompliantContact(friction=mu, exponent=1.5 + 0.0 * mu),
}


@pytest.mark.parametrize("case", CONTACTS)
def test_friction_can_be_traced(case):
    """Speed of a ball that slides and begins to roll, with its derivative through the construction of the simulator."""
    model = body_on_plane("sphere", (0.1,))

    def speed(mu):
        sim = Simulator(model, contact=CONTACTS[case](mu), dt=DT)
        start = sim.initial_state(q=[0, 0, 0.0999, 1, 0, 0, 0], qd=[0, 0, 0, 2.0, 0, 0])
        return rollout(sim, start, steps=STEPS).qd[-1, 3]

    with jax.enable_x64(True):
        mu, step = jnp.asarray(0.3), 1e-5
        value, slope = jax.jit(jax.value_and_grad(speed))(mu)
        numerical = (speed(0.3 + step) - speed(0.3 - step)) / (2.0 * step)
    assert value == pytest.approx(speed(0.3), abs=1e-12)
    assert slope == pytest.approx(numerical, rel=1e-6)
    assert slope < -0.1 * GRAVITY * STEPS * DT

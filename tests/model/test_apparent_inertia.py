import jax
import numpy as np

from hybridsim.dynamics.crba import mass_matrix
from hybridsim.model import assemble
from hybridsim.model.apparent_inertia import apparent_inertias
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.coordinates import neutral
from support.random_models import EVERY_KIND, random_model


def test_is_what_the_mass_matrix_of_the_engine_says(monkeypatch):
    """1/(M⁻¹)ᵢᵢ at the zero configuration of a tree with every kind of joint."""
    found = {}
    monkeypatch.setattr(
        assemble, "apparent_inertias", lambda *given: found.setdefault("inertia", apparent_inertias(*given))
    )
    model = random_model(**EVERY_KIND)
    M = np.asarray(jax.jit(mass_matrix)(model, neutral(model.topology)))
    np.testing.assert_allclose(found["inertia"], 1.0 / np.diag(np.linalg.inv(M)), rtol=1e-9)


def test_a_joint_gives_way_at_the_others():
    """A slider under a free-swinging point mass feels the cart alone where the pendulum is level."""
    cart = ModelBuilder("cart")
    cart.add_body("cart", kind="prismatic", axis=(1, 0, 0), mass=2.0, inertia=(1, 1, 1), lower=-1.0, upper=1.0)
    cart.add_body("bob", parent="cart", axis=(0, 1, 0), mass=5.0, com=(0, 0, -1.0))
    model = cart.build()
    frequency = np.sqrt(model.joint.limit_stiffness[0] / 2.0)
    assert np.isclose(frequency, 100.0), "the bob swings freely, so the stop holds back two kilograms, not seven"


def test_a_long_chain_is_built_in_seconds():
    import time

    chain, parent = ModelBuilder("chain"), "world"
    for i in range(1000):
        parent, above = f"link{i}", parent
        chain.add_body(parent, parent=above, at=(0, 0, -0.1), axis=(0, 1, 0), mass=1.0, inertia=(0.1, 0.1, 0.1))
    start = time.process_time()
    chain.build()
    assert time.process_time() - start < 8.0, "adding one matrix per link takes three times as long"

import jax
import numpy as np

from hybridsim.dynamics.crba import mass_matrix
from hybridsim.model import assemble
from hybridsim.model.apparent_inertia import apparent_inertias
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.coordinates import zero_configuration
from support.random_models import EVERY_KIND, random_model


def test_apparent_inertias_match_the_engine_mass_matrix(monkeypatch):
    """1/(M⁻¹)ᵢᵢ at the zero configuration of a tree with every joint type."""
    captured = {}
    monkeypatch.setattr(
        assemble, "apparent_inertias", lambda *args: captured.setdefault("inertia", apparent_inertias(*args))
    )
    model = random_model(**EVERY_KIND)
    M = np.asarray(jax.jit(mass_matrix)(model, zero_configuration(model.topology)))
    np.testing.assert_allclose(captured["inertia"], 1.0 / np.diag(np.linalg.inv(M)), rtol=1e-9)


def test_apparent_inertia_excludes_a_freely_swinging_point_mass():
    """The apparent inertia of a cart that carries a freely swinging point mass is that of the cart alone."""
    cart = ModelBuilder("cart")
    cart.add_body("cart", kind="prismatic", axis=(1, 0, 0), mass=2.0, inertia=(1, 1, 1), lower=-1.0, upper=1.0)
    cart.add_body("bob", parent="cart", axis=(0, 1, 0), mass=5.0, com=(0, 0, -1.0))
    model = cart.build()
    frequency = np.sqrt(model.joint.limit_stiffness[0] / 2.0)
    assert np.isclose(frequency, 100.0), "the bob swings freely, so the stop decelerates two kilograms, not seven"


def test_a_chain_of_1000_links_builds_within_8_seconds():
    import time

    chain, parent = ModelBuilder("chain"), "world"
    for i in range(1000):
        name = f"link{i}"
        chain.add_body(name, parent=parent, at=(0, 0, -0.1), axis=(0, 1, 0), mass=1.0, inertia=(0.1, 0.1, 0.1))
        parent = name
    start = time.process_time()
    chain.build()
    assert time.process_time() - start < 8.0, "adding one matrix per link takes three times as long"

"""Names of programs: two that compute different things have different ones."""

import jax

from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.sim.cache_key import cache_key


def name(tree) -> str | None:
    return cache_key(jax.tree.structure(tree), [])


def test_what_is_left_out_is_not_a_number():
    assert name((None, 1.0)) != name((1.0, None))
    assert name((1.0, None)) == name((2.0, None))


def test_numbers_of_contact_are_told_apart():
    names = {name(ImpulseContact(**{what: 0.5})) for what in ("friction", "restitution", "softness")}
    assert len(names) == 3 and None not in names

"""Cache keys of programs: different programs have different keys."""

import jax

from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.sim.cache_key import cache_key


def key(tree) -> str | None:
    return cache_key(jax.tree.structure(tree), [])


def test_absent_values_differ_from_leaves():
    assert key((None, 1.0)) != key((1.0, None))
    assert key((1.0, None)) == key((2.0, None))


def test_specified_contact_parameters_are_distinguished():
    keys = {key(ImpulseContact(**{parameter: 0.5})) for parameter in ("friction", "restitution", "softness")}
    assert len(keys) == 3 and None not in keys

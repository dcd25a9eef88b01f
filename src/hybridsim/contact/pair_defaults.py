"""Numbers given by name for some pairs only: the others keep those of the model."""

import warnings
from collections.abc import Mapping
from dataclasses import replace

from hybridsim.contact.candidates import find_candidates
from hybridsim.contact.contact import AbstractContact
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.contact.impulse.stabilisation import Recovery
from hybridsim.contact.pair_parameters import pair_friction, pair_max, pair_mean, per_pair
from hybridsim.model.model import Model


def with_pair_defaults(contact: AbstractContact, model: Model) -> AbstractContact:
    """The contact model with friction, restitution, softness and recovery time for every pair, if for some by name.

    Raises:
        ValueError: a name fits no pair.
    """
    if not isinstance(contact, ImpulseContact):
        return contact
    geometry, stabilisation = model.geometry, contact.stabilisation
    by_name = {
        what: given
        for what in ("friction", "restitution", "softness")
        if isinstance(given := getattr(contact, what), Mapping)
    }
    time = stabilisation.time if isinstance(stabilisation, Recovery) else None
    if not by_name and not isinstance(time, Mapping):
        return contact
    with warnings.catch_warnings():
        # about the pairs themselves: told when the contact model lists them
        warnings.simplefilter("ignore")
        pairs = find_candidates(
            model, only=contact.only, exclude=contact.exclude, self_collision=contact.self_collision
        )
    models = {
        "friction": lambda: pair_friction(geometry, pairs),
        "restitution": lambda: pair_max(geometry.restitution, pairs),
        "softness": lambda: pair_mean(geometry.softness, pairs),
    }
    told = {what: per_pair(what, given, pairs, otherwise=models[what]()) for what, given in by_name.items()}
    if isinstance(time, Mapping):
        otherwise = pair_mean(geometry.recovery_time, pairs)
        told["stabilisation"] = Recovery(per_pair("the recovery time", time, pairs, otherwise=otherwise))
    return replace(contact, **told)

"""Completion of parameters that the user specifies by name for some pairs, from the surfaces of the model."""

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
    """Return a copy of impulse contact in which parameters specified by name have one value per pair.

    These are friction, restitution, softness and recovery time; pairs that match no name get the value of the model.
    Other contact models are returned unchanged.

    Raises:
        ValueError: a pattern matches no pair.
    """
    if not isinstance(contact, ImpulseContact):
        return contact
    geometry, stabilisation = model.geometry, contact.stabilisation
    by_name = {
        field: specified
        for field in ("friction", "restitution", "softness")
        if isinstance(specified := getattr(contact, field), Mapping)
    }
    time = stabilisation.time if isinstance(stabilisation, Recovery) else None
    if not by_name and not isinstance(time, Mapping):
        return contact
    with warnings.catch_warnings():
        # warnings about the pairs are issued when the contact model is bound
        warnings.simplefilter("ignore")
        pairs = find_candidates(
            model, only=contact.only, exclude=contact.exclude, self_collision=contact.self_collision
        )
    defaults = {
        "friction": lambda: pair_friction(geometry, pairs),
        "restitution": lambda: pair_max(geometry.restitution, pairs),
        "softness": lambda: pair_mean(geometry.softness, pairs),
    }
    completed = {
        field: per_pair(field, specified, pairs, default=defaults[field]()) for field, specified in by_name.items()
    }
    if isinstance(time, Mapping):
        default = pair_mean(geometry.recovery_time, pairs)
        completed["stabilisation"] = Recovery(per_pair("the recovery time", time, pairs, default=default))
    return replace(contact, **completed)

"""Completion of parameters that the user specifies by name for some pairs, from the surfaces of the model."""

import warnings
from collections.abc import Mapping
from dataclasses import replace

from hybridsim.contact.candidates import find_candidates
from hybridsim.contact.contact import AbstractContact
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.contact.impulse.stabilization import RecoveryTime
from hybridsim.contact.pair_parameters import candidate_friction, pair_max, pair_mean, pair_values
from hybridsim.model.model import Model


def with_pair_defaults(contact: AbstractContact, model: Model) -> AbstractContact:
    """Return a copy of an impulse contact model in which parameters specified by name have one value per pair.

    These are friction, restitution, softness and recovery time; pairs that match no name get the value of the model.
    Other contact models are returned unchanged.

    Raises:
        ValueError: a pattern matches no pair.
    """
    if not isinstance(contact, ImpulseContact):
        return contact
    geometry, stabilization = model.geometry, contact.stabilization
    by_name = {
        field: specified
        for field in ("friction", "restitution", "softness")
        if isinstance(specified := getattr(contact, field), Mapping)
    }
    recovery_time = stabilization.recovery_time if isinstance(stabilization, RecoveryTime) else None
    if not by_name and not isinstance(recovery_time, Mapping):
        return contact
    with warnings.catch_warnings():
        # warnings about the pairs are issued when the contact model is bound
        warnings.simplefilter("ignore")
        candidates = find_candidates(
            model, only=contact.only, exclude=contact.exclude, self_collision=contact.self_collision
        )
    defaults = {
        "friction": lambda: candidate_friction(geometry, candidates),
        "restitution": lambda: pair_max(geometry.restitution, candidates),
        "softness": lambda: pair_mean(geometry.softness, candidates),
    }
    completed = {
        field: pair_values(field, specified, candidates, default=defaults[field]())
        for field, specified in by_name.items()
    }
    if isinstance(recovery_time, Mapping):
        default = pair_mean(geometry.recovery_time, candidates)
        completed["stabilization"] = RecoveryTime(
            pair_values("recovery_time", recovery_time, candidates, default=default)
        )
    return replace(contact, **completed)

"""Numbers that could be free but would do nothing, because the simulator has settled otherwise when it was made."""

from collections.abc import Iterator, Sequence

from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.contact import AbstractContact
from hybridsim.params.leaves import Number
from hybridsim.params.scalar_parameter import Coordinate
from hybridsim.params.setup import Setup

CONSTRAINED = {"friction": "rubbing", "breakaway": "rubbing", "lower": "limited", "upper": "limited"}
"""Parameters of joints that impulse contact makes rows of its problem, where the model has any."""
IN_SERIES = ("stiffness", "damping")
"""Numbers that compliant contact takes from the surfaces, where these say them and the user does not."""


def without_effect(coordinates: Sequence[Coordinate], setup: Setup) -> list[str]:
    """What is wrong with numbers that would have no effect."""
    contact, found = setup.sim.contact, []
    for coordinate in coordinates:
        group, _, field = coordinate.parameter.name.partition(".")
        if not isinstance(coordinate.place, Number):
            continue
        if group == "joint" and field in CONSTRAINED:
            found += _not_a_row(coordinate, field, contact)
        elif group in ("geometry", "contact") and field in IN_SERIES and isinstance(contact, CompliantContact):
            pairs = getattr(contact.told, f"surface_{field}")
            check = _not_of_a_surface if group == "geometry" else _of_surfaces
            found += check(coordinate, field, pairs, contact)
    return found


def _not_a_row(coordinate: Coordinate, field: str, contact: AbstractContact) -> Iterator[str]:
    """Friction and limits of joints that impulse contact has no row for."""
    rows = getattr(contact, "joints", None)
    if not contact.bears_joints or rows is None or coordinate.place.index in getattr(rows, CONSTRAINED[field]):
        return
    what = "dry friction" if CONSTRAINED[field] == "rubbing" else "a limit"
    yield (
        f"{coordinate.name!r} would have no effect: with impulse contact, {what} acts only on joints that have "
        f"it when the simulator is made; give the joint {what} in the model"
    )


def _not_of_a_surface(
    coordinate: Coordinate, field: str, pairs: Sequence[int], contact: CompliantContact
) -> Iterator[str]:
    """Numbers of surfaces that no contact takes."""
    touching = {shape for k in pairs for shape in (contact.watched.pairs[k].first, contact.watched.pairs[k].second)}
    if coordinate.place.index not in touching:
        yield (
            f"{coordinate.name!r} would have no effect: no contact takes its {field} from this surface; give the "
            f"shape a {field} in the model, or free contact.{field}"
        )


def _of_surfaces(coordinate: Coordinate, field: str, pairs: Sequence[int], contact: CompliantContact) -> Iterator[str]:
    """Numbers of pairs that come from the surfaces."""
    if coordinate.place.index in pairs:
        yield (
            f"{coordinate.name!r} would have no effect: this pair takes its {field} from the surfaces; free "
            f"geometry.{field}, or give CompliantContact a {field} of its own"
        )

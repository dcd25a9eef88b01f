"""Parameters that could be free but would have no effect, because of choices made when the simulator was built."""

from collections.abc import Iterator, Sequence

from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.contact import AbstractContact
from hybridsim.core.errors import Problem
from hybridsim.params.leaves import LeafEntry
from hybridsim.params.scalar_parameter import ScalarParameter
from hybridsim.params.setup import Setup

CONSTRAINT_ROWS = {"friction": "frictional", "stribeck_friction": "frictional", "lower": "limited", "upper": "limited"}
"""Joint parameters that impulse contact implements as constraint rows, with the attribute that lists these rows."""
SURFACE_FIELDS = ("stiffness", "damping")
"""Parameters that compliant contact takes from the surfaces unless they are passed to the contact model."""


def inactive_parameter_problems(parameters: Sequence[ScalarParameter], setup: Setup) -> list[Problem]:
    """Problems with parameters that would have no effect."""
    contact, problems = setup.sim.contact, []
    for parameter in parameters:
        group, _, field = parameter.kind.name.partition(".")
        if not isinstance(parameter.location, LeafEntry):
            continue
        if group == "joint" and field in CONSTRAINT_ROWS:
            problems += _missing_row_problems(parameter, field, contact)
        elif group in ("geometry", "contact") and field in SURFACE_FIELDS and isinstance(contact, CompliantContact):
            pairs = getattr(contact.sources, f"surface_{field}_pairs")
            check = _unused_surface_problems if group == "geometry" else _surface_derived_pair_problems
            problems += check(parameter, field, pairs, contact)
    return problems


def _missing_row_problems(parameter: ScalarParameter, field: str, contact: AbstractContact) -> Iterator[Problem]:
    """Problem with joint friction or a limit that has no constraint row in impulse contact."""
    rows = getattr(contact, "joints", None)
    if (
        not contact.handles_joint_constraints
        or rows is None
        or parameter.location.index in getattr(rows, CONSTRAINT_ROWS[field])
    ):
        return
    what = "dry friction" if CONSTRAINT_ROWS[field] == "frictional" else "a limit"
    message = (
        f"{parameter.name!r} would have no effect: with impulse contact, {what} acts only on joints that have it when "
        "the simulator is built"
    )
    yield Problem(message, f"give the joint {what} in the model", code="project.free", element=parameter.name)


def _unused_surface_problems(
    parameter: ScalarParameter, field: str, pairs: Sequence[int], contact: CompliantContact
) -> Iterator[Problem]:
    """Problem with a surface parameter that no candidate pair uses."""
    shapes = {shape for k in pairs for shape in (contact.candidates.pairs[k].first, contact.candidates.pairs[k].second)}
    if parameter.location.index not in shapes:
        message = f"{parameter.name!r} would have no effect: no contact takes its {field} from this surface"
        fix = f"give the shape a {field} in the model, or free contact.{field}"
        yield Problem(message, fix, code="project.free", element=parameter.name)


def _surface_derived_pair_problems(
    parameter: ScalarParameter, field: str, pairs: Sequence[int], contact: CompliantContact
) -> Iterator[Problem]:
    """Problem with a pair parameter that is taken from the surfaces."""
    if parameter.location.index in pairs:
        message = f"{parameter.name!r} would have no effect: this pair takes its {field} from the surfaces"
        fix = f"free geometry.{field}, or pass {field} to CompliantContact"
        yield Problem(message, fix, code="project.free", element=parameter.name)

"""Writing changed mass properties back into the links of a URDF file."""

import math
from collections.abc import Mapping

import numpy as np

from hybridsim.core.errors import ModelError, Problem
from hybridsim.io.compare import value
from hybridsim.io.edit import Change
from hybridsim.io.numbers import Reader
from hybridsim.io.urdf_elements import INERTIA_ENTRIES, read_link, read_origin
from hybridsim.io.urdf_text import UrdfText
from hybridsim.io.xml import Element
from hybridsim.model.inertial import Inertial
from hybridsim.model.specs import BodySpec, ModelSpec
from hybridsim.model.validate import inertial_problems
from hybridsim.spatial.transform import Pose

ROUNDING = 4e-15
"""Relative difference that a change of frame there and back leaves."""


class InertialWriter:
    """Edits the `<inertial>` of links so that bodies get the mass properties they shall have.

    A body may consist of a link and others fixed to it; its whole change goes to the link that names it.
    """

    def __init__(self, text: UrdfText, spec: ModelSpec, placements: Mapping[str, tuple[str, Pose]]):
        self.text, self.placements = text, placements
        self.links = {body.name: body for body in spec.bodies}

    def write(self, body: BodySpec, before: Inertial, after: Inertial) -> list[Change]:
        """Edit what differs between two sets of mass properties of a body.

        Raises:
            ModelError: nothing possible is left for the link itself.
        """
        if _same(before, after):
            return []
        own = self.links[body.name].inertial
        attached = self._attached(body.name)
        target = after
        if attached is not None:
            target = after - attached
            target = Inertial(_summand(after.mass, attached.mass), target.com, target.inertia)
        problems = list(inertial_problems(body.name, target, body.inertial_source))
        if problems or target.mass <= 0.0 < own.mass:
            raise ModelError([self._impossible(body, after, target, attached, problems)])
        return self._edit(self.text.links[body.name], own, target)

    def _attached(self, name: str) -> Inertial | None:
        """Mass properties of the links that were merged into a body, in its frame; None without any."""
        total = None
        for link, (carrier, X_BL) in self.placements.items():
            inertial = self.links[link].inertial
            if carrier == name and (inertial.mass or inertial.inertia.any()):
                total = (total or Inertial()) + inertial.moved(X_BL)
        return total

    def _impossible(
        self,
        body: BodySpec,
        after: Inertial,
        target: Inertial,
        attached: Inertial | None,
        problems: list[Problem],
    ) -> Problem:
        message = "; ".join(p.message for p in problems) or f"mass of body {body.name!r} is {target.mass:g} kg"
        fix = "give the body mass properties that a solid can have"
        if attached is not None:
            names = ", ".join(name for name, (carrier, _) in self.placements.items() if carrier == body.name)
            message = (
                f"of the {after.mass:g} kg of body {body.name!r}, {attached.mass:g} kg belong to links "
                f"fixed to it ({names}); what is left for link {body.name!r} itself is impossible: {message}"
            )
            fix = "keep the body's mass and inertia above those of the links fixed to it"
        source = body.inertial_source
        return Problem(message, fix, source.file, source.line, code="export.inertial")

    def _edit(self, link: Element, own: Inertial, target: Inertial) -> list[Change]:
        in_file = read_link(Reader(), link).inertial
        # what was computed from shapes is not in the file: then everything must be written
        whole = in_file is None or not _same(in_file, own)
        element = link.child("inertial")
        if element is None:
            self.text.insert_inertial(link, target)
        else:
            if whole or target.mass != own.mass:
                self.text.set_numbers(element, "mass", "value", [target.mass])
            if whole or not np.array_equal(target.com, own.com):
                self.text.set_numbers(element, "origin", "xyz", target.com)
            if whole or not np.array_equal(target.inertia, own.inertia):
                self._edit_inertia(element, target.inertia)
        title, line = f"link {link.get('name')!r}", (element or link).line
        rows = [
            ("mass [kg]", own.mass, target.mass),
            ("centre of mass [m]", own.com, target.com),
            ("inertia xx, yy, zz, xy, xz, yz [kg·m²]", own.entries(), target.entries()),
        ]
        return [
            Change(title, line, parameter, value(before), value(after))
            for parameter, before, after in rows
            if not np.array_equal(before, after)
        ]

    def _edit_inertia(self, element: Element, inertia: np.ndarray) -> None:
        R_LI = np.asarray(read_origin(Reader(), element).R)
        entries = Inertial(1.0, np.zeros(3), R_LI.T @ inertia @ R_LI).entries()
        turned = not np.array_equal(R_LI, np.eye(3))
        slack = ROUNDING * float(np.abs(entries).max()) if turned else 0.0
        child = element.child("inertia")
        for name, entry in zip(INERTIA_ENTRIES, entries, strict=True):
            if child is not None and name not in child.attributes and abs(entry) <= slack:
                continue  # an absent entry is zero
            self.text.set_numbers(element, "inertia", name, [entry], slack)


def _same(a: Inertial, b: Inertial) -> bool:
    return a.mass == b.mass and np.array_equal(a.com, b.com) and np.array_equal(a.inertia, b.inertia)


def _summand(total: float, other: float) -> float:
    """A number that, added to `other`, gives exactly `total`."""
    guess = total - other
    near = (guess, math.nextafter(guess, math.inf), math.nextafter(guess, -math.inf))
    return next((x for x in near if x + other == total), guess)

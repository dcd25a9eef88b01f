"""Writing changed mass properties back into the links of a URDF file."""

from collections.abc import Mapping

import numpy as np

from hybridsim.core.errors import ModelError, Problem
from hybridsim.core.messages import name_list
from hybridsim.io.attributes import Reader
from hybridsim.io.compare import value
from hybridsim.io.distribute_inertia import Part, shared
from hybridsim.io.edit_xml import Change
from hybridsim.io.urdf.edit_text import UrdfText
from hybridsim.io.urdf.read_elements import read_link, read_origin
from hybridsim.io.urdf.read_lint import INERTIA_ENTRIES
from hybridsim.io.xml import Element
from hybridsim.model.inertial import Inertial
from hybridsim.model.specs import BodySpec, ModelSpec, Source, identity_pose
from hybridsim.model.validate import inertial_problems
from hybridsim.spatial.transform import Pose

FRAME_ROUNDING = 4e-15
"""Relative difference that a change of frame there and back leaves."""


class InertialWriter:
    """Edits the `<inertial>` of links so that bodies get the mass properties they shall have.

    A body may consist of a link and others fixed to it. The link that names the body takes the change if it can,
    otherwise another one that can, otherwise all of them alike.
    """

    def __init__(self, text: UrdfText, spec: ModelSpec, placements: Mapping[str, tuple[str, Pose]]):
        self.text, self.placements = text, placements
        self.links = {body.name: body for body in spec.bodies}

    def write(self, body: BodySpec, before: Inertial, after: Inertial) -> list[Change]:
        """Edit what differs between two sets of mass properties of a body.

        Raises:
            ModelError: no link of the body can have what is left for it.
        """
        if _same(before, after):
            return []
        names = [body.name, *(name for name, (carrier, _) in self.placements.items() if carrier == body.name)]
        poses = [identity_pose(), *(self.placements[name][1] for name in names[1:])]
        parts = [Part(self.links[name].inertial, pose) for name, pose in zip(names, poses, strict=True)]

        def is_possible(k: int, inertial: Inertial) -> bool:
            return not _worsened(parts[k].inertial, inertial)

        targets = shared(parts, before, after, is_possible)
        if targets is None:
            raise ModelError([_impossible(body, after, names[1:])])
        changes = []
        for name, part, target in zip(names, parts, targets, strict=True):
            if target is not part.inertial:
                slack = 0.0 if name == body.name else FRAME_ROUNDING
                changes += self._edit(self.text.links[name], part.inertial, target, slack)
        return changes

    def _edit(self, link: Element, own: Inertial, target: Inertial, slack: float) -> list[Change]:
        in_file = read_link(Reader(), link).inertial
        # what was computed from shapes is not in the file: then everything must be written
        whole = in_file is None or not _same(in_file, own)
        rows = [
            ("mass [kg]", np.array([own.mass]), np.array([target.mass])),
            ("centre of mass [m]", own.com, target.com),
            ("inertia xx, yy, zz, xy, xz, yz [kg·m²]", own.entries(), target.entries()),
        ]
        changed = [not np.allclose(was, now, rtol=0.0, atol=slack * np.abs(was).max()) for _, was, now in rows]
        element = link.child("inertial")
        if element is None:
            self.text.insert_inertial(link, target)
        else:
            if whole or changed[0]:
                self.text.set_numbers(element, "mass", "value", [target.mass])
            if whole or changed[1]:
                self.text.set_numbers(element, "origin", "xyz", target.com)
            if whole or changed[2]:
                self._edit_inertia(element, target.inertia)
        title, line = f"link {link.get('name')!r}", (element or link).line
        return [
            Change(title, line, parameter, value(np.squeeze(was)), value(np.squeeze(now)))
            for (parameter, was, now), differs in zip(rows, changed, strict=True)
            if differs
        ]

    def _edit_inertia(self, element: Element, inertia: np.ndarray) -> None:
        R_LI = np.asarray(read_origin(Reader(), element).R)
        entries = Inertial(1.0, np.zeros(3), R_LI.T @ inertia @ R_LI).entries()
        turned = not np.array_equal(R_LI, np.eye(3))
        slack = FRAME_ROUNDING * float(np.abs(entries).max()) if turned else 0.0
        child = element.child("inertia")
        for name, entry in zip(INERTIA_ENTRIES, entries, strict=True):
            if child is not None and name not in child.attributes and abs(entry) <= slack:
                continue  # an absent entry is zero
            self.text.set_numbers(element, "inertia", name, [entry], slack)


def _worsened(before: Inertial, after: Inertial) -> bool:
    """Whether mass properties are impossible in a way in which those in the file are not, or less so."""
    codes = {problem.code for problem in inertial_problems("", after, Source())}
    if after.mass <= 0.0 < before.mass or not codes <= {p.code for p in inertial_problems("", before, Source())}:
        return True
    return bool(codes) and _excess(after) > _excess(before) + 1e-9


def _excess(inertial: Inertial) -> float:
    """By how much the largest principal moment exceeds the sum of the others, relative to it."""
    moments = np.linalg.eigvalsh(inertial.inertia)
    return float((moments[2] - moments[1] - moments[0]) / np.abs(moments).max())


def _impossible(body: BodySpec, after: Inertial, attached: list[str]) -> Problem:
    source = body.inertial_source
    problems = [problem.message for problem in inertial_problems(body.name, after, source)]
    message = "; ".join(problems) or f"mass of body {body.name!r} is {after.mass:g} kg"
    fix = "give the body mass properties that a solid can have"
    if attached and not problems and after.mass > 0.0:
        message = (
            f"mass and inertia of body {body.name!r} cannot be shared among its link and those fixed to it, "
            f"{name_list(attached)}: what is left for one of them is impossible"
        )
        fix = "change mass and inertia by the same factor, or load the model with merge=False and change single links"
    return Problem(message, fix, source.file, source.line, code="export.inertial", element=body.name)


def _same(a: Inertial, b: Inertial) -> bool:
    return a.mass == b.mass and np.array_equal(a.com, b.com) and np.array_equal(a.inertia, b.inertia)

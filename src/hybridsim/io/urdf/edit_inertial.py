"""Export of changed mass properties into the links of a URDF file."""

from collections.abc import Mapping

import numpy as np

from hybridsim.core.errors import ModelError, Problem
from hybridsim.core.messages import name_list
from hybridsim.io.attributes import Reader
from hybridsim.io.compare import to_value
from hybridsim.io.distribute_inertia import Part, distribute_inertia
from hybridsim.io.edit_xml import Change
from hybridsim.io.urdf.edit_text import UrdfEdits
from hybridsim.io.urdf.read_elements import read_link, read_origin
from hybridsim.io.urdf.read_lint import INERTIA_ENTRIES
from hybridsim.io.xml import Element
from hybridsim.model.inertial import Inertial
from hybridsim.model.specs import BodySpec, ModelSpec, Source, identity_pose
from hybridsim.model.validate import inertial_problems
from hybridsim.spatial.transform import Pose

FRAME_ROUNDING = 4e-15
"""Relative rounding error of a frame transformation and its inverse."""


class UrdfInertialEditor:
    """Edits the `<inertial>` of links to match the mass properties of bodies.

    A body may consist of a link and others fixed to it; see `distribute_inertia`.
    """

    def __init__(self, edits: UrdfEdits, spec: ModelSpec, merged_into: Mapping[str, tuple[str, Pose]]):
        self.edits, self.merged_into = edits, merged_into
        self.links = {body.name: body for body in spec.bodies}

    def edit(self, body: BodySpec, before: Inertial, after: Inertial) -> list[Change]:
        """Edit the links of a body so that its mass properties change from `before` to `after`.

        Raises:
            ModelError: no distribution over the links of the body is physically consistent.
        """
        if _is_equal(before, after):
            return []
        names = [body.name, *(name for name, (parent, _) in self.merged_into.items() if parent == body.name)]
        poses = [identity_pose(), *(self.merged_into[name][1] for name in names[1:])]
        parts = [Part(self.links[name].inertial, pose) for name, pose in zip(names, poses, strict=True)]

        def is_feasible(k: int, inertial: Inertial) -> bool:
            return not _is_less_consistent(parts[k].inertial, inertial)

        targets = distribute_inertia(parts, before, after, is_feasible)
        if targets is None:
            raise ModelError([_infeasible_problem(body, after, names[1:])])
        changes = []
        for name, part, target in zip(names, parts, targets, strict=True):
            if target is not part.inertial:
                tolerance = 0.0 if name == body.name else FRAME_ROUNDING
                changes += self._edit_link(self.edits.links[name], part.inertial, target, tolerance)
        return changes

    def _edit_link(self, link: Element, old: Inertial, target: Inertial, tolerance: float) -> list[Change]:
        in_file = read_link(Reader(), link).inertial
        # values computed from shapes are not in the file, so all must be written
        write_all = in_file is None or not _is_equal(in_file, old)
        rows = [
            ("mass [kg]", np.array([old.mass]), np.array([target.mass])),
            ("centre of mass [m]", old.com, target.com),
            ("inertia xx, yy, zz, xy, xz, yz [kg·m²]", old.entries(), target.entries()),
        ]
        changed = [
            not np.allclose(before, after, rtol=0.0, atol=tolerance * np.abs(before).max()) for _, before, after in rows
        ]
        element = link.child("inertial")
        if element is None:
            self.edits.append_inertial(link, target)
        else:
            if write_all or changed[0]:
                self.edits.set_numbers(element, "mass", "value", [target.mass])
            if write_all or changed[1]:
                self.edits.set_numbers(element, "origin", "xyz", target.com)
            if write_all or changed[2]:
                self._edit_inertia(element, target.inertia)
        title, line = f"link {link.get('name')!r}", (element or link).line
        return [
            Change(title, line, parameter, to_value(np.squeeze(before)), to_value(np.squeeze(after)))
            for (parameter, before, after), differs in zip(rows, changed, strict=True)
            if differs
        ]

    def _edit_inertia(self, element: Element, inertia: np.ndarray) -> None:
        R_LI = np.asarray(read_origin(Reader(), element).R)
        entries = Inertial(1.0, np.zeros(3), R_LI.T @ inertia @ R_LI).entries()
        rotated = not np.array_equal(R_LI, np.eye(3))
        tolerance = FRAME_ROUNDING * float(np.abs(entries).max()) if rotated else 0.0
        child = element.child("inertia")
        for name, entry in zip(INERTIA_ENTRIES, entries, strict=True):
            if child is not None and name not in child.attributes and abs(entry) <= tolerance:
                continue  # an absent entry is zero
            self.edits.set_numbers(element, "inertia", name, [entry], tolerance)


def _is_less_consistent(before: Inertial, after: Inertial) -> bool:
    """Whether new mass properties violate a physical constraint that the old ones satisfy, or one more severely."""
    codes = {problem.code for problem in inertial_problems("", after, Source())}
    if after.mass <= 0.0 < before.mass or not codes <= {p.code for p in inertial_problems("", before, Source())}:
        return True
    return bool(codes) and _triangle_violation(after) > _triangle_violation(before) + 1e-9


def _triangle_violation(inertial: Inertial) -> float:
    """Relative violation of the triangle inequality of the principal moments; negative if it holds."""
    moments = np.linalg.eigvalsh(inertial.inertia)
    return float((moments[2] - moments[1] - moments[0]) / np.abs(moments).max())


def _infeasible_problem(body: BodySpec, after: Inertial, attached: list[str]) -> Problem:
    source = body.inertial_source
    problems = [problem.message for problem in inertial_problems(body.name, after, source)]
    message = "; ".join(problems) or f"mass of body {body.name!r} is {after.mass:g} kg"
    fix = "mass properties must be physically consistent"
    if attached and not problems and after.mass > 0.0:
        message = (
            f"mass properties of body {body.name!r} cannot be distributed over its link and those fixed to it "
            f"({name_list(attached)}): one of them would become physically inconsistent"
        )
        fix = (
            "scale mass and inertia by the same factor, or load the model with merge=False and change individual links"
        )
    return Problem(message, fix, source.file, source.line, code="export.inertial", element=body.name)


def _is_equal(a: Inertial, b: Inertial) -> bool:
    return a.mass == b.mass and np.array_equal(a.com, b.com) and np.array_equal(a.inertia, b.inertia)

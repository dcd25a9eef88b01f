"""Export of changed mass properties of bodies into an MJCF file."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hybridsim.core.errors import Severity
from hybridsim.core.messages import name_list
from hybridsim.io.attributes import Reader
from hybridsim.io.distribute_inertia import Part, distribute_inertia
from hybridsim.io.edit_xml import number_text, numbers_text
from hybridsim.io.mjcf.edit_document import ORIENTATIONS, Baseline, MjcfEditor
from hybridsim.io.mjcf.read_node import Node
from hybridsim.io.mjcf.write_elements import mujoco_inertia
from hybridsim.io.model_rows import inertial_of
from hybridsim.model.inertial import Inertial
from hybridsim.model.model import Model
from hybridsim.model.specs import BodySpec, Source, identity_pose
from hybridsim.model.validate import inertial_problems

_FROM_GEOM = 1
"""MuJoCo's value of `inertiafromgeom="true"`."""
_ROWS = (("mass", "kg"), ("com", "m"), ("inertia", "kg·m²"))


@dataclass
class MjcfInertialEditor:
    """Edits the mass properties of the bodies in which two models differ.

    A body may consist of an MJCF body and others fixed to it; see `distribute_inertia`.
    """

    editor: MjcfEditor
    before: Baseline
    after: Model

    def edit(self) -> None:
        """Record all edits."""
        targets: dict[str, tuple[Inertial, Inertial]] = {}
        for i, body in enumerate(self.before.spec.bodies):
            old, new = inertial_of(self.before.model, i), inertial_of(self.after, i)
            if any(_differences(old, new)):
                targets |= self._targets(body, old, new)
        if not targets or self.editor.problems:
            return
        self._disable_overrides(targets)
        for name, (old, target) in targets.items():
            self._edit_body(name, old, target)

    def _targets(self, body: BodySpec, old: Inertial, new: Inertial) -> dict[str, tuple[Inertial, Inertial]]:
        """Old and new mass properties of the MJCF bodies that make up a body of the model."""
        editor, owner = self.editor, self.editor.imported.owners[body.name]
        if body.name != owner:
            editor.report(
                None, f"{body.name!r}, a massless part of body {owner!r}, now has mass", "assign the mass to the body"
            )
            return {}
        names = [owner, *(name for name, (parent, _) in self.before.merged_into.items() if parent == owner)]
        poses = [identity_pose(), *(self.before.merged_into[name][1] for name in names[1:])]
        parts = [Part(self._bodies[name].inertial, pose) for name, pose in zip(names, poses, strict=True)]

        def is_feasible(k: int, inertial: Inertial) -> bool:
            if not any(_differences(parts[k].inertial, inertial)):
                return True
            is_consistent = not _errors(owner, inertial) and inertial.mass > 0.0
            # with several parts, avoid inertias that MuJoCo might reject because of rounding
            is_safe = len(parts) == 1 or mujoco_inertia(inertial)[1] == 0.0
            return is_consistent and is_safe and not editor.uneditable_reason("body", names[k])

        shares = distribute_inertia(parts, old, new, is_feasible)
        if shares is None:
            self._report_infeasible(owner, names[1:], new)
            return {}
        pairs = zip(names, parts, shares, strict=True)
        return {name: (part.inertial, share) for name, part, share in pairs if any(_differences(part.inertial, share))}

    @cached_property
    def _bodies(self) -> dict[str, BodySpec]:
        """Bodies of the description by name."""
        return {body.name: body for body in self.editor.imported.spec.bodies}

    def _report_infeasible(self, owner: str, fixed: list[str], target: Inertial) -> None:
        node = self.editor.imported.nodes.get(("body", owner))
        errors = _errors(owner, target)
        if errors or target.mass <= 0.0:
            message = errors[0] if errors else f"mass of body {owner!r} is {target.mass:g} kg"
            self.editor.report(node, message, "mass properties must be physically consistent")
        elif not fixed:
            self.editor.editable_node("body", owner, "inertia")
        else:
            message = (
                f"the changed inertia of body {owner!r} cannot be distributed over it and the bodies fixed to it "
                f"({name_list(fixed)}): they would become physically inconsistent or cannot be edited"
            )
            self.editor.report(
                node, message, "scale mass and inertia by the same factor, or load the model with merge=False"
            )

    def _disable_overrides(self, targets: dict[str, tuple[Inertial, Inertial]]) -> None:
        """Disable compiler settings that would override the written values, without affecting other bodies."""
        editor, compiler = self.editor, self.editor.imported.mjspec.compiler
        if int(compiler.inertiafromgeom) == _FROM_GEOM:
            editor.set_compiler("inertiafromgeom", "auto", "inertiafromgeom, from 'true' to 'auto'")
            self._edit_overridden(set(targets))
        if compiler.settotalmass > 0.0:
            # the scale factor is preserved if the total changes by the same amount as the sum
            total = float(compiler.settotalmass)
            new_total = total + sum(target.mass - old.mass for old, target in targets.values())
            editor.set_compiler("settotalmass", number_text(new_total), "settotalmass [kg]", total, new_total)

    def _edit_overridden(self, written: set[str]) -> None:
        """Update `<inertial>` elements that were overridden by geoms and will now take effect."""
        editor, updated = self.editor, set()
        for name in (body.name for body in self.editor.imported.spec.bodies):
            node = editor.imported.nodes.get(("body", name))
            existing = _inertial_element(node) if node else None
            if node is None or existing is None or name in written or id(node) in updated:
                continue
            updated.add(id(node))  # copies have the same geoms and thus the same inertia
            if editor.is_in_main_file(existing):
                target = self._bodies[name].inertial
                mass = Reader().number(existing.element, "mass", 0.0)
                self._edit_inertial(node, target, (True, True, True))
                editor.record_change(
                    existing.element, "", f"mass of body {name!r}, previously overridden [kg]", mass, target.mass
                )
            else:
                message = (
                    "cannot write the changes to inertias: "
                    f"the <inertial> of body {name!r} in another file would take effect"
                )
                editor.report(existing, message, "remove it; it is overridden by <compiler inertiafromgeom='true'>")

    @cached_property
    def _scale(self) -> float:
        """Factor by which `settotalmass` scales the masses of the file."""
        imported = self.editor.imported
        if imported.mjspec.compiler.settotalmass <= 0.0:
            return 1.0
        unscaled = imported.mjspec.copy()
        unscaled.compiler.settotalmass = -1.0
        return float(imported.compiled.body_mass.sum() / unscaled.compile().body_mass.sum())

    def _edit_body(self, name: str, old: Inertial, target: Inertial) -> None:
        node = self.editor.imported.nodes["body", name]
        from_geom = int(self.editor.imported.mjspec.compiler.inertiafromgeom) == _FROM_GEOM
        changed = _differences(old, target)
        self._edit_inertial(node, target, (True, True, True) if from_geom else changed)
        for (field, unit), differs in zip(_ROWS, changed, strict=True):
            if differs:
                before, after = (x.entries() if field == "inertia" else getattr(x, field) for x in (old, target))
                self.editor.record_change(node.element, name, f"{field} [{unit}]", before, after)

    def _edit_inertial(self, node: Node, target: Inertial, changed: tuple[bool, bool, bool]) -> None:
        editor, mass, entries = self.editor, target.mass / self._scale, target.entries() / self._scale
        existing = _inertial_element(node)
        if existing is None:
            xml = (
                f'<inertial pos="{numbers_text(target.com)}" mass="{number_text(mass)}" '
                f'fullinertia="{numbers_text(entries)}"/>'
            )
            editor.edits.append_child(node.element, xml)
            return
        element = existing.element
        if not editor.is_in_main_file(existing):
            editor.report(existing, f"the <inertial> of body {node.get('name')!r} is defined in another file")
            return
        if changed[0]:
            editor.set_numbers(element, "mass", mass)
        if changed[1]:
            editor.set_numbers(element, "pos", target.com)
        if changed[2]:
            rotated = any(name in element.attributes for name in ORIENTATIONS)
            if "diaginertia" in element.attributes and not rotated and not entries[3:].any():
                editor.set_numbers(element, "diaginertia", entries[:3])
            else:
                editor.remove(element, ("diaginertia", *ORIENTATIONS))
                editor.set_numbers(element, "fullinertia", entries)


def _differences(old: Inertial, new: Inertial) -> tuple[bool, bool, bool]:
    """Whether mass, centre of mass and inertia differ."""
    return (
        old.mass != new.mass,
        not np.array_equal(old.com, new.com),
        not np.array_equal(old.inertia, new.inertia),
    )


def _errors(name: str, inertial: Inertial) -> list[str]:
    problems = inertial_problems(name, inertial, Source())
    return [problem.message for problem in problems if problem.severity is Severity.ERROR]


def _inertial_element(body: Node) -> Node | None:
    return next((child for child in body.children if child.tag == "inertial"), None)

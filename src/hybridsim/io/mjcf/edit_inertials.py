"""Writing changed mass properties of bodies into an MJCF file."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hybridsim.core.errors import Severity
from hybridsim.core.messages import name_list
from hybridsim.io.attributes import Reader
from hybridsim.io.distribute_inertia import Part, shared
from hybridsim.io.edit_xml import number_text, numbers_text
from hybridsim.io.mjcf.edit_document import ORIENTATIONS, Baseline, Pen
from hybridsim.io.mjcf.read_node import Node
from hybridsim.io.mjcf.write_elements import accepted_by_mujoco
from hybridsim.io.model_rows import inertial_of
from hybridsim.model.inertial import Inertial
from hybridsim.model.model import Model
from hybridsim.model.specs import BodySpec, Source, identity_pose
from hybridsim.model.validate import inertial_problems

_FROM_GEOM = 1
"""MuJoCo's number for `inertiafromgeom="true"`."""
_ROWS = (("mass", "kg"), ("com", "m"), ("inertia", "kg·m²"))


@dataclass
class InertialWriter:
    """Compares the mass properties of two models and writes the difference.

    A body may consist of one of the file and others fixed to it. The one that names the body takes the change if it
    can, otherwise another one that can, otherwise all of them alike.
    """

    pen: Pen
    before: Baseline
    after: Model

    def write(self) -> None:
        """Write all changes."""
        targets: dict[str, tuple[Inertial, Inertial]] = {}
        for i, body in enumerate(self.before.spec.bodies):
            old, new = inertial_of(self.before.model, i), inertial_of(self.after, i)
            if any(_changes(old, new)):
                targets |= self._targets(body, old, new)
        if not targets or self.pen.problems:
            return
        self._settle_compiler(targets)
        for name, (own, target) in targets.items():
            self._write(name, own, target)

    def _targets(self, body: BodySpec, old: Inertial, new: Inertial) -> dict[str, tuple[Inertial, Inertial]]:
        """What bodies of the file have and shall have, so that the body of the model becomes what it shall be."""
        pen, owner = self.pen, self.pen.imported.owners[body.name]
        if body.name != owner:
            pen.refuse(None, f"{body.name!r}, a massless part of body {owner!r}, has got mass", "give it to the body")
            return {}
        names = [owner, *(name for name, (carrier, _) in self.before.carriers.items() if carrier == owner)]
        poses = [identity_pose(), *(self.before.carriers[name][1] for name in names[1:])]
        parts = [Part(self._described[name].inertial, pose) for name, pose in zip(names, poses, strict=True)]

        def is_possible(k: int, inertial: Inertial) -> bool:
            if not any(_changes(parts[k].inertial, inertial)):
                return True
            is_sound = not _errors(owner, inertial) and inertial.mass > 0.0
            # where there is a choice, none that MuJoCo could refuse for a rounding error
            is_safe = len(parts) == 1 or accepted_by_mujoco(inertial)[1] == 0.0
            return is_sound and is_safe and not pen.obstacle("body", names[k])

        shares = shared(parts, old, new, is_possible)
        if shares is None:
            self._refuse(owner, names[1:], new)
            return {}
        pairs = zip(names, parts, shares, strict=True)
        return {name: (part.inertial, share) for name, part, share in pairs if any(_changes(part.inertial, share))}

    @cached_property
    def _described(self) -> dict[str, BodySpec]:
        """Every body of the file, by name."""
        return {body.name: body for body in self.pen.imported.spec.bodies}

    def _refuse(self, owner: str, fixed: list[str], wanted: Inertial) -> None:
        node = self.pen.imported.nodes.get(("body", owner))
        impossible = _errors(owner, wanted)
        if impossible or wanted.mass <= 0.0:
            message = impossible[0] if impossible else f"mass of body {owner!r} is {wanted.mass:g} kg"
            self.pen.refuse(node, message, "choose mass properties that a solid can have")
        elif not fixed:
            self.pen.place("body", owner, "inertia")
        else:
            message = (
                f"inertia of body {owner!r} has changed, and neither it nor those fixed to it, {name_list(fixed)}, "
                "can take the change: what would be left for them is impossible, or they cannot be written to"
            )
            self.pen.refuse(node, message, "change mass and inertia by the same factor, or load with merge=False")

    def _settle_compiler(self, targets: dict[str, tuple[Inertial, Inertial]]) -> None:
        """Switch off what would override the written values, without any effect on the others."""
        pen, compiler = self.pen, self.pen.imported.mjspec.compiler
        if int(compiler.inertiafromgeom) == _FROM_GEOM:
            pen.set_compiler("inertiafromgeom", "auto", "inertiafromgeom, from 'true' to 'auto'")
            self._write_overridden(set(targets))
        if compiler.settotalmass > 0.0:
            # bodies are scaled by the same factor as before if the total grows with the sum
            total = float(compiler.settotalmass)
            grown = total + sum(target.mass - own.mass for own, target in targets.values())
            pen.set_compiler("settotalmass", number_text(grown), "settotalmass [kg]", total, grown)

    def _write_overridden(self, written: set[str]) -> None:
        """Bring the `<inertial>` elements up to date that were overridden by shapes and will count from now on."""
        pen, done = self.pen, set()
        for name in (body.name for body in self.pen.imported.spec.bodies):
            node = pen.imported.nodes.get(("body", name))
            existing = _inertial_element(node) if node else None
            if node is None or existing is None or name in written or id(node) in done:
                continue
            done.add(id(node))  # copies have the same shapes, and thus the same inertia
            if pen.is_main(existing):
                target = self._described[name].inertial
                mass = Reader().number(existing.element, "mass", 0.0)
                self._edit(node, target, (True, True, True))
                pen.note(existing.element, "", f"mass of body {name!r}, overridden before [kg]", mass, target.mass)
            else:
                message = (
                    f"an inertia has changed, but then the <inertial> of body {name!r} in another file would count"
                )
                pen.refuse(existing, message, "remove it: <compiler inertiafromgeom='true'> overrides it")

    @cached_property
    def _scale(self) -> float:
        """By which factor `settotalmass` makes the bodies heavier than the file says."""
        imported = self.pen.imported
        if imported.mjspec.compiler.settotalmass <= 0.0:
            return 1.0
        unscaled = imported.mjspec.copy()
        unscaled.compiler.settotalmass = -1.0
        return float(imported.compiled.body_mass.sum() / unscaled.compile().body_mass.sum())

    def _write(self, name: str, own: Inertial, target: Inertial) -> None:
        node = self.pen.imported.nodes["body", name]
        from_geom = int(self.pen.imported.mjspec.compiler.inertiafromgeom) == _FROM_GEOM
        changed = _changes(own, target)
        self._edit(node, target, (True, True, True) if from_geom else changed)
        for (field, unit), differs in zip(_ROWS, changed, strict=True):
            if differs:
                before, after = (x.entries() if field == "inertia" else getattr(x, field) for x in (own, target))
                self.pen.note(node.element, name, f"{field} [{unit}]", before, after)

    def _edit(self, node: Node, target: Inertial, changed: tuple[bool, bool, bool]) -> None:
        pen, mass, entries = self.pen, target.mass / self._scale, target.entries() / self._scale
        existing = _inertial_element(node)
        if existing is None:
            xml = (
                f'<inertial pos="{numbers_text(target.com)}" mass="{number_text(mass)}" '
                f'fullinertia="{numbers_text(entries)}"/>'
            )
            pen.edits.insert_child(node.element, xml)
            return
        element = existing.element
        if not pen.is_main(existing):
            pen.refuse(existing, f"the <inertial> of body {node.get('name')!r} stands in another file")
            return
        if changed[0]:
            pen.set(element, "mass", mass)
        if changed[1]:
            pen.set(element, "pos", target.com)
        if changed[2]:
            turned = any(name in element.attributes for name in ORIENTATIONS)
            if "diaginertia" in element.attributes and not turned and not entries[3:].any():
                pen.set(element, "diaginertia", entries[:3])
            else:
                pen.remove(element, ("diaginertia", *ORIENTATIONS))
                pen.set(element, "fullinertia", entries)


def _changes(old: Inertial, new: Inertial) -> tuple[bool, bool, bool]:
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

"""Export of changed friction, restitution, stiffness and damping of shapes into a URDF file."""

from collections import defaultdict

import numpy as np

from hybridsim.io.edit_xml import Change, number_text
from hybridsim.io.model_rows import entry
from hybridsim.io.urdf.edit_text import UrdfEdits
from hybridsim.io.urdf.read_contact import FIELDS
from hybridsim.io.xml import Element
from hybridsim.model.model import Model
from hybridsim.model.specs import ModelSpec

INFINITE = "infinite values are not supported by URDF"
UNIDENTIFIED = "the <collision> of this shape cannot be identified in the file"
"""Reasons why the surface of a shape is not written."""


class UrdfSurfaceEditor:
    """Edits the `<contact>` that specifies the surface of a shape, or adds one to its `<collision>`."""

    def __init__(self, edits: UrdfEdits, spec: ModelSpec):
        self.edits = edits
        self.locations = _locations(edits, spec)
        """Link and collision element of each shape, by name."""

    def edit(self, old: Model, new: Model) -> list[Change]:
        """Edit the surfaces in which two models differ.

        Args:
            old: the model as read from the file.
            new: the changed model.

        Returns:
            The changes; unwritten ones have a note.
        """
        changes = []
        for k, info in enumerate(old.geometry.infos):
            location = self.locations.get(info.name)
            added = []
            for tag, field in FIELDS.items():
                before, after = (entry(getattr(model.geometry, field), k) for model in (old, new))
                if before == after:
                    continue
                line = location[1].line if location else 0
                note = UNIDENTIFIED if location is None else "" if np.isfinite(after) else INFINITE
                changes.append(Change(f"shape {info.name!r}", line, field, before, after, note))
                contact = _contact(*location, tag) if location and not note else None
                if contact is not None:
                    self.edits.set_numbers(contact, tag, "value", [after])
                elif not note:
                    added.append(f'  <{tag} value="{number_text(after)}"/>')
            if added and location:
                self.edits.append_child(location[1], "\n".join(["<contact>", *added, "</contact>"]))
        return changes


def _contact(link: Element, collision: Element, tag: str) -> Element | None:
    """The `<contact>` to edit: that of the collision, or of the link if it applies to this shape only."""
    collision_contact, link_contact = collision.child("contact"), link.child("contact")
    if collision_contact is not None and collision_contact.child(tag) is not None:
        return collision_contact
    if (
        link_contact is not None
        and link_contact.child(tag) is not None
        and len(list(link.children_with_tag("collision"))) == 1
    ):
        return link_contact
    return collision_contact


def _locations(edits: UrdfEdits, spec: ModelSpec) -> dict[str, tuple[Element, Element]]:
    """Link and collision element of each shape, matched by link, line and order, since shapes may have been renamed."""
    names, locations = defaultdict(list), defaultdict(list)
    for geom in spec.geoms:
        names[geom.body, geom.source.line].append(geom.name)
    for link_name, link in edits.links.items():
        for collision in link.children_with_tag("collision"):
            geometry = collision.child("geometry")
            if geometry is not None and geometry.children:
                locations[link_name, geometry.children[0].line].append((link, collision))
    return {
        name: location
        for key, shape_names in names.items()
        if len(shape_names) == len(locations[key])
        for name, location in zip(shape_names, locations[key], strict=True)
    }

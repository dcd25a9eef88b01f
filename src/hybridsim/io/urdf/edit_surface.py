"""Writing changed friction, restitution, stiffness and damping of shapes into the text of a URDF file."""

from collections import defaultdict

import numpy as np

from hybridsim.io.edit_xml import Change, number_text
from hybridsim.io.model_rows import number
from hybridsim.io.urdf.edit_text import UrdfText
from hybridsim.io.urdf.read_contact import FIELDS
from hybridsim.io.xml import Element
from hybridsim.model.model import Model
from hybridsim.model.specs import ModelSpec


class SurfaceWriter:
    """Finds the `<contact>` that gives a shape's surface, or makes one in the shape's `<collision>`."""

    def __init__(self, text: UrdfText, spec: ModelSpec):
        self.text = text
        self.places = _places(text, spec)
        """Link and collision of each shape, by its name."""

    def write(self, old: Model, new: Model, note: str) -> list[Change]:
        """Write what differs.

        Args:
            old: the model as the file has it.
            new: the model as it shall be.
            note: why a change is not written where a shape has no place of its own in the file.

        Returns:
            The changes, those that could not be written with the note.
        """
        changes = []
        for k, info in enumerate(old.geometry.infos):
            place = self.places.get(info.name)
            added = []
            for tag, field in FIELDS.items():
                before, after = (number(getattr(model.geometry, field), k) for model in (old, new))
                if before == after:
                    continue
                line = place[1].line if place else 0
                fits = place is not None and bool(np.isfinite(after))
                changes.append(Change(f"shape {info.name!r}", line, field, before, after, "" if fits else note))
                contact = _contact(*place, tag) if place and fits else None
                if contact is not None:
                    self.text.set_numbers(contact, tag, "value", [after])
                elif fits:
                    added.append(f'  <{tag} value="{number_text(after)}"/>')
            if added and place:
                self.text.insert_child(place[1], "\n".join(["<contact>", *added, "</contact>"]))
        return changes


def _contact(link: Element, collision: Element, tag: str) -> Element | None:
    """The `<contact>` to write to: that of the shape, or of the link if it gives the value to this shape only."""
    own, shared = collision.child("contact"), link.child("contact")
    if own is not None and own.child(tag) is not None:
        return own
    if shared is not None and shared.child(tag) is not None and len(list(link.all("collision"))) == 1:
        return shared
    return own


def _places(text: UrdfText, spec: ModelSpec) -> dict[str, tuple[Element, Element]]:
    """Shapes were given names of their own, so they are found by their link and line, and their order on one line."""
    names, places = defaultdict(list), defaultdict(list)
    for geom in spec.geoms:
        names[geom.body, geom.source.line].append(geom.name)
    for link_name, link in text.links.items():
        for collision in link.all("collision"):
            geometry = collision.child("geometry")
            if geometry is not None and geometry.children:
                places[link_name, geometry.children[0].line].append((link, collision))
    return {
        name: place
        for key, found in names.items()
        if len(found) == len(places[key])
        for name, place in zip(found, places[key], strict=True)
    }

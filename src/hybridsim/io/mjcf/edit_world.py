"""Writing changed options, surfaces of shapes and the starting configuration into an MJCF file."""

from typing import Any

import numpy as np

from hybridsim.io.compare import pair_name
from hybridsim.io.edit_xml import numbers_text
from hybridsim.io.mjcf.edit_document import Pen
from hybridsim.io.mjcf.read_shapes import FRICTIONLESS, SLIDING
from hybridsim.io.mjcf.read_surface import HARDEST, SOFTEST, solimp, solref
from hybridsim.io.xml import Element
from hybridsim.model.model import Model

_SURFACE = (
    ("friction", "friction", "friction"),
    ("recovery_time", "recovery time [s]", "solref"),
    ("softness", "softness", "solimp"),
)
"""Fields of a surface, what they are called and the attributes that hold them."""


def write_options(pen: Pen, before: Model, after: Model) -> None:
    """Write gravity and time step into the last `<option>` of the main file, or into a new one."""
    changed = {
        "gravity": ("gravity [m/s²]", before.gravity, after.gravity),
        "timestep": ("timestep [s]", before.timestep, after.timestep),
    }
    changed = {name: row for name, row in changed.items() if np.any(row[1] != row[2])}
    if not changed:
        return
    root = pen.imported.document.root
    options = [section.element for section in root.children if section.tag == "option" and pen.is_main(section)]
    texts = {name: numbers_text(np.atleast_1d(new).tolist()) for name, (_, _, new) in changed.items()}
    if not options:
        attributes = "".join(f' {name}="{text}"' for name, text in texts.items())
        pen.edits.insert_child(root.element, f"<option{attributes}/>")
    for name, (parameter, old, new) in changed.items():
        if options:
            pen.edits.set_attribute(options[-1], name, texts[name])
        pen.note(options[-1] if options else root.element, "", parameter, old, new)


def write_surfaces(pen: Pen, before: Model, after: Model) -> None:
    """Write sliding friction, recovery time and softness of shapes."""
    for g, info in enumerate(before.geometry.infos):
        for field, title, attribute in _SURFACE:
            old, new = (float(np.asarray(getattr(model.geometry, field))[g]) for model in (before, after))
            if old == new or (node := pen.place("geom", info.name, title)) is None:
                continue
            numbers = _numbers(attribute, new, pen.imported.compiled, pen.imported.ids["geom", info.name])
            if numbers is None:
                message = f"{title} of geom {info.name!r} is {new:g}, which {attribute} cannot say"
                fix = (
                    f"choose it from {HARDEST:.2g} to {SOFTEST:.2g}" if attribute == "solimp" else "let it be positive"
                )
                pen.refuse(node, message, fix)
                continue
            pen.set_first(node.element, attribute, *numbers)
            if attribute == "friction" and old == 0.0:
                _let_rub(pen, node.element, pen.imported.compiled.geom_condim[pen.imported.ids["geom", info.name]])
            pen.note(node.element, info.name, title, old, new)


def write_pairs(pen: Pen, before: Model, after: Model) -> None:
    """Write the friction of pairs of shapes that have one of their own."""
    for k, pair in enumerate(before.geometry.friction_pairs):
        old, new = (float(np.asarray(model.geometry.pair_friction)[k]) for model in (before, after))
        name = pair_name(pair)
        if old == new or (node := pen.place("pair", name, "friction")) is None:
            continue
        compiled, number = pen.imported.compiled, pen.imported.ids["pair", name]
        # a pair has a number for each of two tangents
        first, second = compiled.pair_friction[number, :2]
        pen.set_first(node.element, "friction", *([new, new] if first == second else [new]))
        if old == 0.0:
            _let_rub(pen, node.element, compiled.pair_dim[number])
        pen.note(node.element, name, "friction", old, new)


def _let_rub(pen: Pen, element: Element, condim: int) -> None:
    """Let the friction of a shape or pair count, if its `condim` says that it has none."""
    if condim == FRICTIONLESS:
        pen.edits.set_attribute(element, "condim", str(SLIDING))


def _numbers(attribute: str, new: float, compiled: Any, geom: int) -> tuple[float, ...] | None:
    """First numbers of an attribute that give a shape's surface the new value; None if there are none."""
    if attribute == "solimp":
        return solimp(new, compiled.geom_solimp[geom])
    if attribute == "friction":
        return (new,)
    numbers = solref(new, compiled.geom_solref[geom])
    if numbers is not None and numbers[1] == compiled.geom_solref[geom, 1]:
        return numbers[:1]
    return numbers


def write_home(pen: Pen, before: Model, after: Model) -> None:
    """Write the starting configuration into the keyframe `home`, which is added if there is none."""
    if not np.any(before.home != after.home):
        return
    root = pen.imported.document.root
    sections = [section for section in root.children if section.tag == "keyframe"]
    keys = [key for section in sections for key in section.children if key.get("name") == "home"]
    place = next(iter(keys), None) or next((s for s in sections if pen.is_main(s)), root)
    text = f'<key name="home" qpos="{numbers_text(np.asarray(after.home).tolist())}"/>'
    if not pen.is_main(place):
        pen.refuse(place, "the starting configuration has changed, but it stands in another file")
    elif keys:
        pen.set(place.element, "qpos", np.asarray(after.home))
    elif place is root:
        pen.edits.insert_child(root.element, f"<keyframe>\n  {text}\n</keyframe>")
    else:
        pen.edits.insert_child(place.element, text)
    pen.note(place.element, "home" if keys else "", "home [rad, m]", before.home, after.home)

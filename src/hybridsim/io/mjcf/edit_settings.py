"""Export of changed options, surface parameters and home configuration into an MJCF file."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hybridsim.io.compare import pair_name
from hybridsim.io.edit_xml import numbers_text
from hybridsim.io.mjcf.edit_document import MjcfEditor
from hybridsim.io.mjcf.read_shapes import FRICTIONLESS, SLIDING
from hybridsim.io.mjcf.read_surface import MAX_SOFTNESS, MIN_SOFTNESS, solimp, solref
from hybridsim.io.xml import Element
from hybridsim.model.model import Model


def _friction_values(friction: float, compiled: Any, geom: int) -> tuple[float, ...]:
    del compiled, geom
    return (friction,)


def _solref_values(recovery_time: float, compiled: Any, geom: int) -> tuple[float, ...] | None:
    values = solref(recovery_time, compiled.geom_solref[geom])
    if values is not None and values[1] == compiled.geom_solref[geom, 1]:
        return values[:1]
    return values


def _solimp_values(softness: float, compiled: Any, geom: int) -> tuple[float, ...] | None:
    return solimp(softness, compiled.geom_solimp[geom])


class SurfaceAttribute(NamedTuple):
    """A scalar surface parameter as an attribute of a geom."""

    field: str
    """Field of `Geometry`."""
    label: str
    attribute: str
    values: Callable[[float, Any, int], tuple[float, ...] | None]
    """First values of the attribute for a parameter, the compiled model and a geom; None if it cannot represent it."""
    range: str
    """Parameters that the attribute can represent, as the end of a sentence."""


SURFACE_ATTRIBUTES = (
    SurfaceAttribute("friction", "friction", "friction", _friction_values, "nonnegative"),
    SurfaceAttribute("recovery_time", "recovery time [s]", "solref", _solref_values, "positive"),
    SurfaceAttribute(
        *("softness", "softness", "solimp", _solimp_values),
        range=f"between {MIN_SOFTNESS:.2g} and {MAX_SOFTNESS:.2g}",
    ),
)
"""All surface parameters that are written."""


def edit_options(editor: MjcfEditor, before: Model, after: Model) -> None:
    """Edit gravity and time step in the last `<option>` of the main file, or in a new one."""
    changed = {
        "gravity": ("gravity [m/s²]", before.gravity, after.gravity),
        "timestep": ("timestep [s]", before.timestep, after.timestep),
    }
    changed = {name: row for name, row in changed.items() if np.any(row[1] != row[2])}
    if not changed:
        return
    root = editor.imported.document.root
    options = [
        section.element for section in root.children if section.tag == "option" and editor.is_in_main_file(section)
    ]
    texts = {name: numbers_text(np.atleast_1d(new).tolist()) for name, (_, _, new) in changed.items()}
    if not options:
        attributes = "".join(f' {name}="{text}"' for name, text in texts.items())
        editor.edits.append_child(root.element, f"<option{attributes}/>")
    for name, (parameter, old, new) in changed.items():
        if options:
            editor.edits.set_attribute(options[-1], name, texts[name])
        editor.record_change(options[-1] if options else root.element, "", parameter, old, new)


def edit_surfaces(editor: MjcfEditor, before: Model, after: Model) -> None:
    """Edit sliding friction, recovery time and softness of geoms."""
    for g, info in enumerate(before.geometry.infos):
        geom = editor.imported.ids["geom", info.name]
        for field, title, attribute, attribute_values, valid in SURFACE_ATTRIBUTES:
            old, new = (float(np.asarray(getattr(model.geometry, field))[g]) for model in (before, after))
            if old == new or (node := editor.editable_node("geom", info.name, title)) is None:
                continue
            values = attribute_values(new, editor.imported.compiled, geom)
            if values is None:
                message = f"{attribute} cannot represent {title} {new:g} of geom {info.name!r}"
                editor.report(node, message, f"it must be {valid}")
                continue
            editor.set_first_numbers(node.element, attribute, *values)
            if attribute == "friction" and old == 0.0:
                _enable_friction(editor, node.element, editor.imported.compiled.geom_condim[geom])
            editor.record_change(node.element, info.name, title, old, new)


def edit_pairs(editor: MjcfEditor, before: Model, after: Model) -> None:
    """Edit the friction of pairs of geoms."""
    for k, pair in enumerate(before.geometry.friction_pairs):
        old, new = (float(np.asarray(model.geometry.pair_friction)[k]) for model in (before, after))
        name = pair_name(pair)
        if old == new or (node := editor.editable_node("pair", name, "friction")) is None:
            continue
        compiled, pair_id = editor.imported.compiled, editor.imported.ids["pair", name]
        # a pair has a friction coefficient for each of the two tangents
        first, second = compiled.pair_friction[pair_id, :2]
        editor.set_first_numbers(node.element, "friction", *([new, new] if first == second else [new]))
        if old == 0.0:
            _enable_friction(editor, node.element, compiled.pair_dim[pair_id])
        editor.record_change(node.element, name, "friction", old, new)


def _enable_friction(editor: MjcfEditor, element: Element, condim: int) -> None:
    """Enable sliding friction of a geom or pair whose `condim` disables it."""
    if condim == FRICTIONLESS:
        editor.edits.set_attribute(element, "condim", str(SLIDING))


def edit_home(editor: MjcfEditor, before: Model, after: Model) -> None:
    """Edit the home configuration in the keyframe `home`, which is added if necessary."""
    if not np.any(before.home != after.home):
        return
    root = editor.imported.document.root
    sections = [section for section in root.children if section.tag == "keyframe"]
    keys = [key for section in sections for key in section.children if key.get("name") == "home"]
    target = next(iter(keys), None) or next((s for s in sections if editor.is_in_main_file(s)), root)
    text = f'<key name="home" qpos="{numbers_text(np.asarray(after.home).tolist())}"/>'
    if not editor.is_in_main_file(target):
        editor.report(target, "cannot write the change to the home configuration: it is defined in another file")
    elif keys:
        editor.set_numbers(target.element, "qpos", np.asarray(after.home))
    elif target is root:
        editor.edits.append_child(root.element, f"<keyframe>\n  {text}\n</keyframe>")
    else:
        editor.edits.append_child(target.element, text)
    editor.record_change(target.element, "home" if keys else "", "home [rad, m]", before.home, after.home)

"""Contact parameters of URDF shapes: the `<contact>` of a link or collision, an extension introduced by Bullet."""

from collections.abc import Iterable
from typing import Any

from hybridsim.io.attributes import Reader
from hybridsim.io.xml import Element

FIELDS = {
    "lateral_friction": "friction",
    "restitution": "restitution",
    "stiffness": "stiffness",
    "damping": "damping",
}
"""Children of `<contact>` and the corresponding fields of `GeomSpec`."""
_SPRING = ("stiffness", "damping")
_CODES = {
    "lateral_friction": "contact.friction",
    "restitution": "contact.restitution",
    "stiffness": "contact.stiffness",
    "damping": "contact.damping",
}


def read_surface(reader: Reader, owner: Element) -> dict[str, Any]:
    """Fields of `GeomSpec` specified by the `<contact>` of a link or collision."""
    contact = owner.child("contact")
    if contact is None:
        return {}
    values = {tag: value for tag in _CODES if (value := _value(reader, contact.child(tag))) is not None}
    if values.get("stiffness") == 0.0:
        reader.warn(
            contact.child("stiffness") or contact,
            "contact.compliance",
            f"stiffness of {contact.title} is zero; stiffness and damping are ignored",
            "specify a positive stiffness; the recovery time is damping divided by stiffness",
        )
        values = {tag: value for tag, value in values.items() if tag not in _SPRING}
    surface: dict[str, Any] = {field: values[tag] for tag, field in FIELDS.items() if tag in values}
    if "friction" in surface:
        surface["is_friction_specified"] = True
    specified = [tag for tag in _SPRING if tag in values]
    if len(specified) == 1:
        (missing,) = set(_SPRING).difference(specified)
        reader.warn(
            contact.child(specified[0]) or contact,
            "contact.compliance",
            f"{contact.title} has {specified[0]} but no {missing}, so only compliant contact uses it",
            f'add <{missing} value="..."/>; the recovery time of impulse contact is damping divided by stiffness',
        )
    elif specified:
        surface["recovery_time"] = values["damping"] / values["stiffness"]
    return surface


def ignored_settings(robot: Element) -> Iterable[tuple[Element, str]]:
    """Unsupported children of `<contact>` that are not neutral, with their tags."""
    for link in robot.children_with_tag("link"):
        for owner in (link, *link.children_with_tag("collision")):
            contact = owner.child("contact")
            for setting in contact.children if contact is not None else ():
                if setting.tag not in _CODES and not _is_neutral(setting):
                    yield setting, setting.tag


def _is_neutral(setting: Element) -> bool:
    """Whether a setting is zero and thus has no effect; `contact_erp` has an effect even at zero."""
    try:
        return setting.tag != "contact_erp" and float(setting.get("value")) == 0.0
    except ValueError:
        return False


def _value(reader: Reader, element: Element | None) -> float | None:
    """Non-negative value of an element; None if it is absent or invalid."""
    if element is None or "value" not in element.attributes:
        return None
    before = len(reader.problems)
    value = reader.number(element, "value")
    if value < 0.0:
        message = f"{element.title} is {value:g}"
        reader.report(element, _CODES[element.tag], message, "it must be nonnegative")
    return value if len(reader.problems) == before else None

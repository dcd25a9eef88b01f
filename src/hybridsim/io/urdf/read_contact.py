"""Surfaces of URDF links: the `<contact>` of a link or of one of its shapes, an extension that Bullet introduced."""

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
"""Children of `<contact>` whose value is a field of `GeomSpec`."""
_SPRING = ("stiffness", "damping")
_CODES = {
    "lateral_friction": "contact.friction",
    "restitution": "contact.restitution",
    "stiffness": "contact.stiffness",
    "damping": "contact.damping",
}


def read_surface(reader: Reader, owner: Element) -> dict[str, Any]:
    """Fields of `GeomSpec` that the `<contact>` of a link or collision gives."""
    contact = owner.child("contact")
    if contact is None:
        return {}
    values = {tag: value for tag in _CODES if (value := _value(reader, contact.child(tag))) is not None}
    if values.get("stiffness") == 0.0:
        reader.warn(
            contact.child("stiffness") or contact,
            "contact.compliance",
            f"{contact.title} has no stiffness, so it is not used",
            "write a positive number: a contact recovers within damping divided by stiffness",
        )
        values = {tag: value for tag, value in values.items() if tag not in _SPRING}
    surface: dict[str, Any] = {field: values[tag] for tag, field in FIELDS.items() if tag in values}
    if "friction" in surface:
        surface["has_friction"] = True
    given = [tag for tag in _SPRING if tag in values]
    if len(given) == 1:
        (other,) = set(_SPRING).difference(given)
        reader.warn(
            contact.child(given[0]) or contact,
            "contact.compliance",
            f"{contact.title} has {given[0]} without {other}, so only compliant contact uses it",
            f'write <{other} value="..."/> as well: an impulse contact recovers within damping divided by stiffness',
        )
    elif given:
        surface["recovery_time"] = values["damping"] / values["stiffness"]
    return surface


def ignored_settings(robot: Element) -> Iterable[tuple[Element, str]]:
    """Children of `<contact>` that say something and are not used, with their tags."""
    for link in robot.all("link"):
        for owner in (link, *link.all("collision")):
            contact = owner.child("contact")
            for setting in contact.children if contact is not None else ():
                if setting.tag not in _CODES and not _asks_for_nothing(setting):
                    yield setting, setting.tag


def _asks_for_nothing(setting: Element) -> bool:
    """Whether a setting is zero, as friction and softness often are; a share of zero of an error is not nothing."""
    try:
        return setting.tag != "contact_erp" and float(setting.get("value")) == 0.0
    except ValueError:
        return False


def _value(reader: Reader, element: Element | None) -> float | None:
    """A number that should not be negative; None if there is none."""
    if element is None or "value" not in element.attributes:
        return None
    before = len(reader.problems)
    value = reader.number(element, "value")
    if value < 0.0:
        message = f"{element.title} is negative: {value:g}"
        reader.report(element, _CODES[element.tag], message, "write a number that is not negative")
    return value if len(reader.problems) == before else None

"""A new model file as a tree of XML elements, and the list of what its format could not hold."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from hybridsim.core.errors import ModelError, Problem
from hybridsim.core.files import write_atomically
from hybridsim.io.edit_xml import number_text
from hybridsim.io.paths import model_roots

Element = ElementTree.Element

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class Notes:
    """What a written file does not hold, by reason; each reason lists the names that it concerns."""

    def __init__(self):
        self._names: dict[str, list[str]] = {}

    def add(self, reason: str, *names: str) -> None:
        """Note a reason, with the names of the elements that it concerns."""
        listed = self._names.setdefault(reason, [])
        listed += [name for name in names if name not in listed]

    def texts(self) -> list[str]:
        """One sentence per reason, in the order in which they came up."""
        return [
            f"{reason}: {', '.join(repr(name) for name in names)}" if names else reason
            for reason, names in self._names.items()
        ]


class Names:
    """Names that are taken; a second bearer of a name gets another one, and a note says so."""

    def __init__(self, notes: Notes, taken: Iterable[str] = ()):
        self._notes, self._taken = notes, set(taken)

    def claim(self, name: str, what: str) -> str:
        """The name itself if it is free, else a new one that begins with it."""
        free = self.invent(name)
        if free != name:
            self._notes.add(f"{what}s get another name, because theirs is taken", f"{name} → {free}")
        return free

    def invent(self, name: str) -> str:
        """A free name that begins with `name`, for something that had none."""
        free, count = name, 1
        while free in self._taken:
            count += 1
            free = f"{name}_{count}"
        self._taken.add(free)
        return free


def add(parent: Element, tag: str, **attributes: str | float | np.ndarray | Iterable[float] | None) -> Element:
    """Append an element; attributes that are None are left out, numbers are written with all their digits.

    Raises:
        ModelError: a number is not finite (only ranges may be open), or a name cannot be part of an XML file.
    """
    owner = str(attributes.get("name") or parent.get("name") or "")
    written = {
        name: _text(value, f"{name!r} of <{tag}> {owner!r}", infinite=name.endswith("range"))
        for name, value in attributes.items()
        if value is not None
    }
    return ElementTree.SubElement(parent, tag, written)


def write_document(root: Element, model_name: str, out: str | Path) -> None:
    """Write the tree as an indented UTF-8 file, with a comment that tells where it comes from.

    Raises:
        ModelError: the file cannot be written.
    """
    ElementTree.indent(root)
    shown = re.sub("-{2,}", "-", _UNPRINTABLE.sub("", model_name))  # a comment may not hold two dashes
    comment = f"<!-- Written by hybridsim from the model {shown}. SI units. -->"
    body = ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")
    write_atomically(out, f'<?xml version="1.0" encoding="UTF-8"?>\n{comment}\n{body}\n'.encode())


def mesh_reference(mesh_file: str, shape: str, out: str | Path, notes: Notes) -> str | None:
    """Path of a mesh relative to the written file; None, with a note, if there is no such mesh."""
    mesh = Path(os.path.realpath(mesh_file))
    if not mesh_file or not mesh.is_file():
        notes.add("shapes are left out, because their mesh file is missing", shape)
        return None
    if not any(mesh.is_relative_to(os.path.realpath(root)) for root in model_roots(out)):
        remedy = "copy them there, or read it with allowed=[...] (--allowed)"
        notes.add(f"meshes lie outside the folder of the written file; {remedy}", mesh.name)
    return Path(os.path.relpath(mesh, os.path.realpath(Path(out).parent))).as_posix()


def refuse(code: str, message: str, fix: str) -> ModelError:
    """The error for a model that a format cannot hold at all."""
    return ModelError([Problem(message, fix, code=code)])


def _text(value: str | float | np.ndarray | Iterable[float], where: str, infinite: bool) -> str:
    if isinstance(value, str):
        if _UNPRINTABLE.search(value):
            raise refuse("write.name", f"attribute {where} has unprintable characters", "rename the element")
        return value
    numbers = np.atleast_1d(np.asarray(value))
    if np.isnan(numbers).any() or (np.isinf(numbers).any() and not infinite):
        raise refuse("write.nonfinite", f"attribute {where} is {numbers}", "give the model finite values")
    if np.issubdtype(numbers.dtype, np.integer):
        return " ".join(str(number) for number in numbers)
    return " ".join(number_text(number).removesuffix(".0") for number in numbers)

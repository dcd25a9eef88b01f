"""Building blocks of the file writers: XML elements, unique names, and notes on what a format does not support."""

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

XmlElement = ElementTree.Element
"""Element to be written; `io.xml.Element` is an element of a parsed file."""

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class Notes:
    """Notes on what a written file does not represent; each lists the names of the affected elements."""

    def __init__(self):
        self._names: dict[tuple[str, str], list[str]] = {}

    def add(self, note: str, *names: str, remark: str = "") -> None:
        """Add a note with the names of the affected elements.

        Args:
            note: the note.
            *names: names of the elements.
            remark: consequence or remedy, which follows the names.
        """
        listed = self._names.setdefault((note, remark), [])
        listed += [name for name in names if name not in listed]

    def texts(self) -> list[str]:
        """Text of each note, in the order of addition."""
        texts = []
        for (note, remark), names in self._names.items():
            listed = ", ".join(map(repr, names))
            if listed:
                note = f"{note} ({listed})" if remark else f"{note}: {listed}"
            texts.append(f"{note}; {remark}" if remark else note)
        return texts


class UniqueNames:
    """Names in use; duplicates are renamed, with a note."""

    def __init__(self, notes: Notes, used: Iterable[str] = ()):
        self._notes, self._used = notes, set(used)

    def claim(self, name: str, what: str) -> str:
        """The name if it is unused, otherwise a new one derived from it, with a note."""
        unused = self.make_unique(name)
        if unused != name:
            self._notes.add(f"{what}s are renamed because their names are already in use", f"{name} → {unused}")
        return unused

    def make_unique(self, name: str) -> str:
        """An unused name derived from `name`; marks it as used."""
        unused, count = name, 1
        while unused in self._used:
            count += 1
            unused = f"{name}_{count}"
        self._used.add(unused)
        return unused


def add_element(
    parent: XmlElement, tag: str, **attributes: str | float | np.ndarray | Iterable[float] | None
) -> XmlElement:
    """Append an element; attributes that are None are omitted, numbers are written with full precision.

    Raises:
        ModelError: a value is not finite (allowed in ranges only), or a name contains characters not allowed in XML.
    """
    owner = str(attributes.get("name") or parent.get("name") or "")
    written = {
        name: _text(value, f"{name!r} of <{tag}> {owner!r}", infinite=name.endswith("range"))
        for name, value in attributes.items()
        if value is not None
    }
    return ElementTree.SubElement(parent, tag, written)


def write_document(root: XmlElement, model_name: str, out: str | Path) -> None:
    """Write the tree as an indented UTF-8 file, with a comment naming hybridsim and the model.

    Raises:
        FileError: the file cannot be written.
    """
    ElementTree.indent(root)
    name = re.sub("-{2,}", "-", _UNPRINTABLE.sub("", model_name))  # comments must not contain two dashes
    comment = f"<!-- Written by hybridsim from the model {name}. SI units. -->"
    body = ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")
    write_atomically(out, f'<?xml version="1.0" encoding="UTF-8"?>\n{comment}\n{body}\n'.encode())


def mesh_reference(mesh_file: str, shape: str, out: str | Path, notes: Notes) -> str | None:
    """Path of a mesh relative to the written file; None, with a note, if the mesh file does not exist."""
    mesh = Path(os.path.realpath(mesh_file))
    if not mesh_file or not mesh.is_file():
        notes.add("shapes are omitted because their mesh file does not exist", shape)
        return None
    if not any(mesh.is_relative_to(os.path.realpath(root)) for root in model_roots(out)):
        remedy = "copy them there, or load the file with allowed_folders=[...] (--allowed-folders)"
        notes.add("meshes are outside the folder of the written file", mesh.name, remark=remedy)
    return Path(os.path.relpath(mesh, os.path.realpath(Path(out).parent))).as_posix()


def unwritable_error(code: str, message: str, fix: str) -> ModelError:
    """Error for a model that cannot be written."""
    return ModelError([Problem(message, fix, code=code)])


def _text(value: str | float | np.ndarray | Iterable[float], where: str, infinite: bool) -> str:
    if isinstance(value, str):
        if _UNPRINTABLE.search(value):
            raise unwritable_error("write.name", f"attribute {where} has unprintable characters", "rename the element")
        return value
    values = np.atleast_1d(np.asarray(value))
    if np.isnan(values).any() or (np.isinf(values).any() and not infinite):
        raise unwritable_error("write.nonfinite", f"attribute {where} is {values}", "all values must be finite")
    if np.issubdtype(values.dtype, np.integer):
        return " ".join(str(entry) for entry in values)
    return " ".join(number_text(entry).removesuffix(".0") for entry in values)

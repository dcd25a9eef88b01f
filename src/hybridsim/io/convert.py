"""Conversion of a model to a new file; the file extension determines the format."""

from collections.abc import Callable
from pathlib import Path

from hybridsim.io.mjcf.write_mjcf import write_mjcf
from hybridsim.io.urdf.write_urdf import write_urdf
from hybridsim.io.write_document import unwritable_error
from hybridsim.model.model import Model

WRITERS: dict[str, Callable[[Model, str | Path], list[str]]] = {
    ".urdf": write_urdf,
    ".xml": write_mjcf,
    ".mjcf": write_mjcf,
}
"""Writers by file extension."""


def convert(model: Model, out: str | Path) -> list[str]:
    """Write a model as URDF (`.urdf`) or MJCF (`.xml`, `.mjcf`).

    Args:
        model: the model.
        out: file to write; overwritten if it exists.

    Returns:
        Notes on everything that the format does not support or represents differently, with the names of the elements.

    Raises:
        ModelError: the extension is unknown, or the format cannot represent the model.
        FileError: the file cannot be written.
    """
    write = WRITERS.get(Path(out).suffix.lower())
    if write is None:
        message = f"{str(out)!r} does not have the extension of a supported format"
        raise unwritable_error("convert.format", message, f"use one of the extensions {', '.join(WRITERS)}")
    return write(model, out)

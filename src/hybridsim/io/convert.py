"""Writing a model as a new file in the format that the file's ending names."""

from collections.abc import Callable
from pathlib import Path

from hybridsim.io.mjcf.write_mjcf import write_mjcf
from hybridsim.io.urdf.write_urdf import write_urdf
from hybridsim.io.write_document import refuse
from hybridsim.model.model import Model

WRITERS: dict[str, Callable[[Model, str | Path], list[str]]] = {
    ".urdf": write_urdf,
    ".xml": write_mjcf,
    ".mjcf": write_mjcf,
}
"""Writer of each ending."""


def convert(model: Model, out: str | Path) -> list[str]:
    """Write a model as URDF (`.urdf`) or MJCF (`.xml`, `.mjcf`).

    Args:
        model: the model.
        out: the file; replaced as a whole if it exists.

    Returns:
        What the file could not hold, or holds in another form, by name.

    Raises:
        ModelError: the ending is none of these, the format cannot hold the model, or the file cannot be
            written.
    """
    write = WRITERS.get(Path(out).suffix.lower())
    if write is None:
        message = f"cannot tell from its name in which format {str(out)!r} should be written"
        raise refuse("convert.format", message, f"let it end in one of {', '.join(WRITERS)}")
    return write(model, out)

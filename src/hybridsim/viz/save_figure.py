"""Saving of figures: completely or not at all."""

from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from hybridsim.core.files import write_atomically


def save_figure(figure: Figure, path: str | Path, **options: Any) -> Path:
    """Save a figure; the extension of the file determines the format.

    Args:
        figure: the figure.
        path: file to write.
        **options: arguments of `Figure.savefig`.

    Raises:
        FileError: the file cannot be written.
    """
    path = Path(path)
    buffer = BytesIO()
    figure.savefig(buffer, format=path.suffix.lstrip(".").lower(), **options)
    write_atomically(path, buffer.getvalue())
    return path

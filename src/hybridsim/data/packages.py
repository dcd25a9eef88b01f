"""Optional packages for reading files, loaded when the first such file is read."""

from importlib import import_module
from pathlib import Path
from typing import Any

from hybridsim.core.errors import DataError, Problem


def needed(path: Path, package: str, part: str = "") -> Any:
    """An optional package, or a part of it.

    Args:
        path: the file that needs it; for messages.
        package: such as `h5py`.
        part: name of a module in it.

    Raises:
        DataError: it is not installed; says how to install it.
    """
    try:
        return import_module(f"{package}.{part}" if part else package)
    except ImportError:
        message = f"the package {package} is needed to read {path.suffix} files"
        fix = "pip install 'hybridsim[data]'"
        raise DataError([Problem(message, fix, str(path), code="data.package")]) from None

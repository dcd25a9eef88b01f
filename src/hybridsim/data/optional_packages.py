"""Optional packages for reading files, loaded when the first such file is read."""

from importlib import import_module
from pathlib import Path
from typing import Any

from hybridsim.core.errors import DataError, Problem


def import_optional(path: Path, package: str, submodule: str = "") -> Any:
    """An optional package, or a part of it.

    Args:
        path: the file that needs it; for messages.
        package: such as `h5py`.
        submodule: name of a module in it.

    Raises:
        DataError: it is not installed; says how to install it.
    """
    try:
        return import_module(f"{package}.{submodule}" if submodule else package)
    except ImportError:
        message = f"the package {package} is needed to read {path.suffix} files"
        fix = "pip install 'hybridsim[data]'"
        raise DataError([Problem(message, fix, str(path), code="data.package")]) from None

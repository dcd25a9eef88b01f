"""Resolution of the file paths in model files, confined to permitted folders.

Model files are untrusted input: after resolving symbolic links, every referenced file must lie in the model's folder,
in its package, or in a folder that the caller has allowed.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from hybridsim.core.errors import Problem
from hybridsim.core.messages import spelling_suggestion
from hybridsim.io.load_options import option_hint

SEARCH_LEVELS = 5
"""Number of folders above the model file that are searched for a package."""
MODEL_FOLDERS = ("urdf", "robots", "mjcf")
"""Names of subfolders of packages that contain model files."""
MODEL_FILE_TYPES = (".stl", ".obj", ".ply", ".off", ".dae", ".glb", ".msh", ".png", ".xml", ".mjcf")
"""File types that models consist of; for other types, messages do not suggest allowing another folder."""

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+)://(.*)", re.DOTALL)


def resolve_uri(
    uri: str,
    model_file: str | Path,
    packages: Mapping[str, str | Path] | None = None,
    allowed_folders: Sequence[str | Path] = (),
) -> Path | Problem:
    """Path of a file referenced by a model, or a problem without its line, which the caller adds.

    Args:
        uri: reference in the model file: a path, `file://...`, `package://name/...` or `model://name/...`.
        model_file: the model file; relative paths are relative to its folder.
        packages: folders of packages by name; other packages are searched for in the folders above the model file.
        allowed_folders: other permitted folders.
    """
    text = uri.strip().replace("\\", "/")
    scheme, rest = _split_scheme(text)
    folder = Path(model_file).parent
    roots = [*model_roots(model_file), *map(Path, allowed_folders)]
    if not rest:
        return _problem("mesh.empty", "the file name is empty", "write the path of the file")
    if scheme in ("package", "model"):
        name, _, inner = rest.partition("/")
        package = _package_folder(name, Path(model_file), packages or {})
        if package is None:
            return _problem(
                "mesh.package",
                f"package {name!r} of {uri!r} was not found in the folders above the model file",
                f"specify its location: {option_hint('packages', {name: f'path/to/{name}'})}",
            )
        return resolve_inside(package / inner, [*roots, package], uri)
    if scheme not in ("", "file"):
        return _problem("mesh.scheme", f"{uri!r} is not a local file", "download it into the model's folder")
    return resolve_inside(folder / (unquote(rest) if scheme else rest), roots, uri)


def resolve_inside(path: Path, roots: Sequence[str | Path], uri: str = "") -> Path | Problem:
    """Real path of an existing file inside one of the `roots`, or a problem.

    Args:
        path: path of the file.
        roots: permitted folders.
        uri: reference in the model file, for messages.
    """
    uri = uri or str(path)
    real = Path(os.path.realpath(path))
    if not any(real.is_relative_to(os.path.realpath(root)) for root in roots):
        fix = "copy the file into the model's folder"
        if real.suffix.lower() in MODEL_FILE_TYPES and _is_file(real):
            fix += f", or allow its folder: {option_hint('allowed_folders', [str(real.parent)])}"
        return _problem("mesh.outside", f"{uri!r} is outside the model's folder: {str(real)!r}", fix)
    if not _is_file(real):
        return _problem("mesh.missing", f"{uri!r} does not exist: no file {str(real)!r}", _missing_file_fix(real))
    return real


def model_roots(model_file: str | Path) -> list[Path]:
    """Permitted folders of a model file: its own folder, and its package if it is in one.

    A package is the nearest enclosing folder with a `package.xml`, or the parent of a folder such as `urdf`.
    """
    roots = []
    # a model file that is a symbolic link belongs to both locations
    for file in {Path(model_file).absolute(), Path(os.path.realpath(model_file))}:
        folder = file.parent
        roots.append(folder)
        enclosing = [folder, *folder.parents][:SEARCH_LEVELS]
        package = next((f for f in enclosing if (f / "package.xml").is_file()), None)
        if package is None and folder.name.lower() in MODEL_FOLDERS:
            package = folder.parent
        if package is not None:
            roots.append(package)
    return roots


def _split_scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.fullmatch(text)
    return (match.group(1).lower(), match.group(2)) if match else ("", text)


def _package_folder(name: str, model_file: Path, packages: Mapping[str, str | Path]) -> Path | None:
    if name in packages:
        return Path(packages[name])
    if name in ("", ".", "..") or PurePosixPath(name).name != name:
        return None
    for folder in [*model_file.absolute().parents][:SEARCH_LEVELS]:
        if folder.name == name:
            return folder
        try:
            if (folder / name).is_dir():
                return folder / name
        except OSError:
            return None
    return None


def _missing_file_fix(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f"the folder {str(path.parent)!r} does not exist; copy the meshes next to the model"
    return spelling_suggestion(path.name, names) or f"copy the file to {str(path.parent)!r}"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _problem(code: str, message: str, fix: str) -> Problem:
    return Problem(message, fix, code=code)

"""Finding the files that a model names, without leaving the folders that the user meant to open.

A model file may come from anyone, so a mesh path in it is a request, not an order: after following every
link, the file must lie in the model's own folder, in its package, or in a folder that the caller allowed.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from hybridsim.core.errors import Problem
from hybridsim.core.messages import did_you_mean
from hybridsim.io.load_options import setting

SEARCH_LEVELS = 5
"""How many folders above the model file are searched for a package."""
MODEL_FOLDERS = ("urdf", "robots", "mjcf")
"""Folders of a package that hold model files: their parent is the package."""
MODEL_PARTS = (".stl", ".obj", ".ply", ".off", ".dae", ".glb", ".msh", ".png", ".xml", ".mjcf")
"""Endings of files that models consist of; nothing else is worth opening another folder for."""

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+)://(.*)", re.DOTALL)


def resolve_mesh(
    uri: str,
    model_file: str | Path,
    packages: Mapping[str, str | Path] | None = None,
    allowed: Sequence[str | Path] = (),
) -> Path | Problem:
    """Path of a file that a model refers to, or what is wrong with it (without a line; the caller knows it).

    Args:
        uri: what the model file says: a path, `file://...`, `package://name/...` or `model://name/...`.
        model_file: the model file; relative paths start in its folder.
        packages: folders of packages by name; others are searched upwards from the model file.
        allowed: further folders that files may lie in.
    """
    text = uri.strip().replace("\\", "/")
    scheme, rest = _split_scheme(text)
    folder = Path(model_file).parent
    roots = [*model_roots(model_file), *map(Path, allowed)]
    if not rest:
        return _problem("mesh.empty", "a mesh has an empty file name", "write the path of the mesh")
    if scheme in ("package", "model"):
        name, _, inner = rest.partition("/")
        package = _package_folder(name, Path(model_file), packages or {})
        if package is None:
            return _problem(
                "mesh.package",
                f"package {name!r} of {uri!r} is neither given nor found above the model file",
                f"say where it is: {setting('packages', {name: f'path/to/{name}'})}",
            )
        return resolve_inside(package / inner, [*roots, package], uri)
    if scheme not in ("", "file"):
        return _problem("mesh.scheme", f"{uri!r} is not a local file", "download it into the model's folder")
    return resolve_inside(folder / (unquote(rest) if scheme else rest), roots, uri)


def resolve_inside(path: Path, roots: Sequence[str | Path], uri: str = "") -> Path | Problem:
    """The real path of an existing file inside one of the `roots`, or what is wrong with it.

    Args:
        path: where the file should be.
        roots: folders that it may lie in.
        uri: how the model file calls it; for messages.
    """
    uri = uri or str(path)
    real = Path(os.path.realpath(path))
    if not any(real.is_relative_to(os.path.realpath(root)) for root in roots):
        fix = "copy the file into the model's folder"
        if real.suffix.lower() in MODEL_PARTS and _is_file(real):
            fix += f", or allow its folder: {setting('allowed', [str(real.parent)])}"
        return _problem("mesh.outside", f"{uri!r} leads out of the model's folder, to {str(real)!r}", fix)
    if not _is_file(real):
        return _problem("mesh.missing", f"{uri!r} is not there: no file {str(real)!r}", _nearest_file(real))
    return real


def model_roots(model_file: str | Path) -> list[Path]:
    """Folders that a model's own files may lie in: its folder, and its package if it is in one.

    A package is the nearest folder above with a `package.xml`, or the parent of a folder such as `urdf`.
    """
    roots = []
    # a model file that is itself a link belongs to both places
    for file in {Path(model_file).absolute(), Path(os.path.realpath(model_file))}:
        folder = file.parent
        roots.append(folder)
        above = [folder, *folder.parents][:SEARCH_LEVELS]
        package = next((f for f in above if (f / "package.xml").is_file()), None)
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


def _nearest_file(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f"there is no folder {str(path.parent)!r} either; copy the meshes beside the model"
    return did_you_mean(path.name, names) or f"put the file into {str(path.parent)!r}"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _problem(code: str, message: str, fix: str) -> Problem:
    return Problem(message, fix, code=code)

"""Run folder: all outputs of a fit.

project.toml              copy of the project file, or the specification of a fit in Python
recordings/, networks.*   recordings from memory and initial networks of a fit in Python
manifest.json             provenance: versions, processor, hashes of files
history.jsonl             one line per step
checkpoint-*.safetensors  the newest two checkpoints
result.json               result, with scores before and after the fit
weights.safetensors       weights of networks, if there are any
identified.urdf or .xml   the identified model, if it came from a file
plots/, summary.html      report
predictions/              predictions of new recordings, by `hybridsim predict`
lock                      process id of the writer
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from hybridsim.core.errors import FolderError, HybridsimError
from hybridsim.identify.task import Task
from hybridsim.project.run_folder.history import History, Step
from hybridsim.project.run_folder.manifest import FORMAT, fit_id, input_changes, manifest
from hybridsim.project.run_folder.write import SEAL, is_intact, seal, write_file, write_json

Mode = Literal["new", "resume", "fresh"]

Files = Mapping[str, bytes | Path]
"""Content of files, or files to copy, by name in a run folder."""

SPECIFICATION_FILES = ("recordings/*.npz", "networks.toml", "networks.safetensors")
"""Files to which the specification of a fit in Python refers; written before the fit begins."""
FILES = (
    "project.toml",
    *SPECIFICATION_FILES,
    "manifest.json",
    "history.jsonl",
    "checkpoint-*.safetensors",
    "checkpoint-*.damaged",
    "result.json",
    "weights.safetensors",
    "identified.*",
    "plots/*.png",
    "summary.html",
    "predictions/prediction.csv",
    "predictions/scores.json",
    "predictions/*.png",
    ".*.part",
)
"""Files of a run folder; other files in it are never removed."""
HASHES = (SEAL, "fit")
"""Keys by which JSON files are bound to their content and to the inputs of the fit."""
DISCOVERY_FILE = "discovery.json"
"""File that identifies the folder of a discovery."""


class RunFolder:
    """Folder with all outputs of a fit."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.manifest_file = self.path / "manifest.json"
        self.project_file = self.path / "project.toml"
        self.history_file = self.path / "history.jsonl"
        self.result_file = self.path / "result.json"
        self.weights_file = self.path / "weights.safetensors"
        self.summary_file = self.path / "summary.html"
        self.plots = self.path / "plots"
        self.predictions = self.path / "predictions"

    @property
    def exists(self) -> bool:
        """Whether the folder contains a fit, finished or not."""
        return self.manifest_file.exists()

    @property
    def is_complete(self) -> bool:
        """Whether the fit has finished; its result is written last."""
        return self.exists and self.result_file.exists()

    def make_folder(self) -> None:
        """Create the folder if it does not exist.

        Raises:
            HybridsimError: the folder cannot be created, or contains other files.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"cannot create the folder {self.path}: {error.strerror}"
            raise FolderError(
                message, python="choose another folder", command="choose another folder with --out"
            ) from None
        if not self.exists and (foreign := self._foreign_files()):
            message = f"{self.path} contains no fit, but other files such as {foreign[0]}"
            raise FolderError(message, python="choose another folder", command="choose another folder with --out")
        self.require_no_links()

    def require_no_links(self) -> None:
        """Raise if a file or folder of the fit is a symbolic link, through which others would be overwritten."""
        folders = {self.path / name.partition("/")[0] for name in FILES if "/" in name}
        for path in sorted({*self._files(), *folders, self.path / "lock"}):
            if path.is_symlink():
                message = f"{path} is a symbolic link, which run folders do not follow"
                raise FolderError(message, python="remove it", command="remove it")

    def check_mode(self, mode: Mode) -> None:
        """Raise if the folder contains a fit and the mode is `new`."""
        if mode != "new" or not self.exists:
            return
        state = "finished" if self.is_complete else "unfinished"
        raise FolderError(
            f"{self.path} already contains a fit ({state})",
            python="resume=True continues or loads it; for a new fit choose another folder",
            command="--resume continues it, --fresh deletes it and starts over, --out selects another folder",
        )

    def begin(self, manifest: dict[str, Any], project_text: str, files: Files = MappingProxyType({})) -> None:
        """Start a new fit: remove the files of an earlier one, and write manifest, project and its files.

        The manifest of the earlier fit remains until the new one replaces it, so that the folder stays a run folder
        even if this is interrupted; `write_specification` completes it.
        """
        for path in self._files():
            if path != self.manifest_file:
                path.unlink(missing_ok=True)
        write_json(self.manifest_file, seal(manifest))
        self.write_specification(project_text, files)

    def write_specification(self, project_text: str, files: Files = MappingProxyType({})) -> None:
        """Write the project, and the files to which it refers, unless they are there."""
        for name, content in files.items():
            path = self.path / name
            path.parent.mkdir(exist_ok=True)
            if not path.exists():
                write_file(path, content if isinstance(content, bytes) else content.read_bytes())
        if not self.project_file.exists():
            write_file(self.project_file, project_text)

    def specification_files(self) -> dict[str, Path]:
        """Files to which the project refers, by name."""
        found = (path for pattern in SPECIFICATION_FILES for path in sorted(self.path.glob(pattern)))
        return {path.relative_to(self.path).as_posix(): path for path in found}

    def remove(self) -> None:
        """Remove all files of the fit."""
        for path in [*self._files(), self.manifest_file]:
            path.unlink(missing_ok=True)

    def remove_partial_files(self) -> None:
        """Remove files that a killed process had not finished writing."""
        for path in self.path.glob(".*.part"):
            path.unlink(missing_ok=True)

    def manifest(self) -> dict[str, Any]:
        """Provenance of the fit."""
        return _without_hashes(self._json(self.manifest_file))

    def result(self) -> dict[str, Any]:
        """Result of the fit."""
        if not self.result_file.exists() and (self.path / DISCOVERY_FILE).exists():
            raise HybridsimError(
                f"{self.path} is the folder of a discovery; name its blueprint.toml in a project "
                "([blueprint] file = ...), fit that project, and specify its run folder"
            )
        if not self.path.is_dir():
            raise HybridsimError(f"there is no folder {self.path}")
        if not self.exists:
            raise HybridsimError(f"{self.path} is not a run folder: it has no {self.manifest_file.name}")
        if not self.result_file.exists():
            raise FolderError(
                f"{self.path} has no result",
                python="complete the fit with resume=True",
                command="complete the fit with hybridsim fit --resume",
            )
        result = self._json(self.result_file)
        if result.get("fit") != self.fit_id():
            raise FolderError(
                f"{self.result_file} is the result of another fit than {self.manifest_file}",
                python="fit again into another folder",
                command="start over with --fresh",
            )
        return _without_hashes(result)

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write the result, which marks the fit as complete, bound to the inputs of the fit."""
        write_json(self.result_file, seal({**result, "fit": self.fit_id()}))

    def history(self) -> list[Step]:
        """Steps of the fit."""
        return History(self.history_file).read()

    def fit_id(self) -> str:
        """Hash that identifies the fit by its inputs."""
        return fit_id(self.manifest())

    def origin(self) -> Path:
        """Project file of the fit.

        Raises:
            HybridsimError: the fit has no project file, because its specification contains code.
        """
        project = self.manifest()["project"]
        if project["file"] is None:
            raise HybridsimError(
                f"the specification of the fit in {self.path} is not saved: {project['reason']}. Create the experiment "
                "again, and call fit(..., folder=..., resume=True), which loads the result"
            )
        return self.path / project["file"]

    def require_unchanged_inputs(self, task: Task) -> None:
        """Raise if the specification, the model or the data of the fit have changed since."""
        if changes := input_changes(self.manifest(), manifest(task, ())):
            raise HybridsimError(
                f"the result in {self.path} is out of date, because its inputs have changed since the fit: "
                f"{'; '.join(changes)}. Undo the changes, or fit again."
            )

    def theta(self) -> np.ndarray:
        """Estimated parameters θ."""
        return np.array(self.result()["theta"], dtype=float)

    def _json(self, path: Path) -> dict[str, Any]:
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise HybridsimError(f"{self.path} is not a run folder: it has no {path.name}") from None
        except (OSError, ValueError) as error:
            raise FolderError(
                f"cannot read {path}: {error}",
                python="delete the folder and fit again",
                command="start over with --fresh",
            ) from None
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise FolderError(
                f"{path} does not have format {FORMAT}, which this version of hybridsim reads",
                python="use the version that wrote it, or fit again into another folder",
                command="use the version that wrote it, or start over with --fresh",
            )
        if not is_intact(value):
            raise FolderError(
                f"{path} is damaged: its content does not match its hash",
                python="fit again into another folder",
                command="start over with --fresh",
            )
        return value

    def _files(self) -> list[Path]:
        """Files of the fit in the folder."""
        found = (path for pattern in FILES for path in self.path.glob(pattern))
        return [path for path in found if path.is_symlink() or not path.is_dir()]

    def _foreign_files(self) -> list[str]:
        """Names of files in the folder, which contains no fit, that a fit has not just begun to write."""
        known = {self.path / "lock", *self.path.glob(".*.part")}
        return sorted(path.name for path in self.path.iterdir() if path not in known)


def _without_hashes(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key not in HASHES}

"""Run record: the folder with all outputs of a fit.

project.toml              copy of the project file
manifest.json             provenance: versions, processor, hashes of files
history.jsonl             one line per step
checkpoint-*.safetensors  the newest two checkpoints
result.json               result, with scores before and after the fit
weights.safetensors       weights of networks, if there are any
identified.urdf or .xml   the identified model, if it came from a file
plots/, summary.html      report
predictions/              predictions of further recordings, by `hybridsim predict`
lock                      process id of the writer
"""

import json
from pathlib import Path
from typing import Any, Literal

from hybridsim.core.errors import HybridsimError
from hybridsim.project.record.manifest import FORMAT
from hybridsim.project.record.write import write_file, write_json

Mode = Literal["new", "resume", "fresh"]

RECORD_FILES = (
    "project.toml",
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
"""Files of a record; other files in its folder are never removed."""
DISCOVERY_FILE = "discovery.json"
"""File that identifies the folder of a discovery."""


class Record:
    """Run folder."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.manifest_file = self.folder / "manifest.json"
        self.project_file = self.folder / "project.toml"
        self.history_file = self.folder / "history.jsonl"
        self.result_file = self.folder / "result.json"
        self.weights_file = self.folder / "weights.safetensors"
        self.summary_file = self.folder / "summary.html"
        self.plots = self.folder / "plots"
        self.predictions = self.folder / "predictions"

    @property
    def exists(self) -> bool:
        """Whether the folder contains a run."""
        return self.manifest_file.exists()

    @property
    def is_complete(self) -> bool:
        """Whether the run has finished; its result is written last."""
        return self.exists and self.result_file.exists()

    def make_folder(self) -> None:
        """Create the folder if it does not exist.

        Raises:
            HybridsimError: the folder cannot be created, or contains other files.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HybridsimError(
                f"cannot create the folder {self.folder}: {error.strerror}; choose another one with --out"
            ) from None
        if not self.exists and (foreign := self._foreign_files()):
            raise HybridsimError(
                f"{self.folder} contains no run, but other files such as {foreign[0]}; choose another folder with --out"
            )

    def check_mode(self, mode: Mode) -> None:
        """Raise if the folder contains a run and the mode is `new`."""
        if mode != "new" or not self.exists:
            return
        state = "finished" if self.is_complete else "unfinished"
        raise HybridsimError(
            f"{self.folder} already contains a run ({state}): --resume continues it, --fresh deletes it and starts "
            "over, --out selects another folder"
        )

    def begin(self, manifest: dict[str, Any], project_text: str) -> None:
        """Start a new record: remove the files of an earlier run and write project and manifest."""
        for path in self._record_files():
            # the manifest first: without it the folder contains no run, even if removal is interrupted
            path.unlink(missing_ok=True)
        write_file(self.project_file, project_text)
        write_json(self.manifest_file, manifest)

    def remove_partial_files(self) -> None:
        """Remove files that a killed process had not finished writing."""
        for path in self.folder.glob(".*.part"):
            path.unlink(missing_ok=True)

    def manifest(self) -> dict[str, Any]:
        """Provenance of the run."""
        return self._json(self.manifest_file)

    def result(self) -> dict[str, Any]:
        """Result of the fit."""
        if not self.result_file.exists() and (self.folder / DISCOVERY_FILE).exists():
            raise HybridsimError(
                f"{self.folder} is the folder of a discovery; name its blueprint.toml in a project "
                "([blueprint] file = ...), fit that project, and specify its run folder"
            )
        if not self.result_file.exists():
            raise HybridsimError(f"{self.folder} has no result; complete the fit with hybridsim fit --resume")
        return self._json(self.result_file)

    def _json(self, path: Path) -> dict[str, Any]:
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise HybridsimError(f"{self.folder} is not a run folder: it has no {path.name}") from None
        except (OSError, ValueError) as error:
            raise HybridsimError(f"cannot read {path}: {error}; start over with --fresh") from None
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise HybridsimError(
                f"{path} does not have format {FORMAT}, which this version of hybridsim reads; use the version that "
                "wrote it, or start over with --fresh"
            )
        return value

    def _record_files(self) -> list[Path]:
        paths = [path for pattern in RECORD_FILES for path in self.folder.glob(pattern) if not path.is_dir()]
        return sorted(paths, key=lambda path: path != self.manifest_file)

    def _foreign_files(self) -> list[str]:
        """Names of files in the folder that do not belong to a record."""
        known = {*self._record_files(), self.folder / "lock", self.plots, self.predictions}
        return sorted(path.name for path in self.folder.iterdir() if path not in known)

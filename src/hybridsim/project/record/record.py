"""A run record: the folder that a fit writes everything into.

project.toml              copy of the project file
manifest.json             what the fit is made of: versions, processor, hashes of files
history.jsonl             one line per step
checkpoint-*.safetensors  where the fit is, the newest two
result.json               what came out, with scores before and after
weights.safetensors       networks, if there are any
identified.urdf or .xml   the model with its new numbers, if it came from a file
plots/, summary.html      for people
predictions/              of further recordings, by `hybridsim predict`
lock                      process id of who writes
"""

import json
from pathlib import Path
from typing import Any, Literal

from hybridsim.core.errors import HybridsimError
from hybridsim.project.record.manifest import FORMAT
from hybridsim.project.record.write import write_file, write_json

Mode = Literal["new", "resume", "fresh"]

OWN = (
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
"""Files of a record; nothing else in its folder is ever removed."""
DISCOVERY_FILE = "discovery.json"
"""By which the folder of a discovery is known, which is no record of a fit."""


class Record:
    """A folder of a run."""

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
        """Has a run begun here?"""
        return self.manifest_file.exists()

    @property
    def is_complete(self) -> bool:
        """Has a run ended here? Its result is written last."""
        return self.exists and self.result_file.exists()

    def make_folder(self) -> None:
        """Make the folder, if there is none.

        Raises:
            HybridsimError: that is not possible, or there is something else in it.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HybridsimError(
                f"cannot make the folder {self.folder}: {error.strerror}; choose another one with --out"
            ) from None
        if not self.exists and (others := self._others()):
            raise HybridsimError(
                f"{self.folder} is not empty and holds no run: there is {others[0]}; choose another folder with --out"
            )

    def check_mode(self, mode: Mode) -> None:
        """Raise if there is a run already and nobody said what to do with it."""
        if mode != "new" or not self.exists:
            return
        state = "finished" if self.is_complete else "unfinished"
        raise HybridsimError(
            f"{self.folder} holds a run already ({state}): --resume goes on with it, --fresh deletes it and starts "
            "again, and --out writes to another folder"
        )

    def begin(self, manifest: dict[str, Any], project_text: str) -> None:
        """Start a record anew: remove what an earlier run left behind, and say what this one is made of."""
        for path in self._own():
            # the manifest goes first: a record without it is none, wherever this is cut off
            path.unlink(missing_ok=True)
        write_file(self.project_file, project_text)
        write_json(self.manifest_file, manifest)

    def tidy(self) -> None:
        """Remove what a killed process had not finished writing."""
        for path in self.folder.glob(".*.part"):
            path.unlink(missing_ok=True)

    def manifest(self) -> dict[str, Any]:
        """What the run is made of."""
        return self._json(self.manifest_file)

    def result(self) -> dict[str, Any]:
        """What came out."""
        if not self.result_file.exists() and (self.folder / DISCOVERY_FILE).exists():
            raise HybridsimError(
                f"{self.folder} is of a discovery; name its blueprint.toml in a project ([blueprint] file = ...), fit "
                "that, and give the folder of the fit"
            )
        if not self.result_file.exists():
            raise HybridsimError(f"{self.folder} has no result yet; finish the fit with hybridsim fit --resume")
        return self._json(self.result_file)

    def _json(self, path: Path) -> dict[str, Any]:
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise HybridsimError(f"{self.folder} is no record of a run: it has no {path.name}") from None
        except (OSError, ValueError) as error:
            raise HybridsimError(f"cannot read {path}: {error}; start again with --fresh") from None
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise HybridsimError(
                f"{path} is not of the format {FORMAT} that this version of hybridsim reads; use the version that "
                "wrote it, or start again with --fresh"
            )
        return value

    def _own(self) -> list[Path]:
        found = [path for pattern in OWN for path in self.folder.glob(pattern) if not path.is_dir()]
        return sorted(found, key=lambda path: path != self.manifest_file)

    def _others(self) -> list[str]:
        """What is in the folder and not of a record."""
        own = {*self._own(), self.folder / "lock", self.plots, self.predictions}
        return sorted(path.name for path in self.folder.iterdir() if path not in own)

"""Checkpoints of a fit in a folder: the newest two, so that one remains if the other is damaged."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hybridsim.core.errors import FolderError
from hybridsim.identify.solve import Checkpoint
from hybridsim.identify.solvers.solver import Termination
from hybridsim.project.run_folder.checkpoint import (
    DamagedCheckpointError,
    SavedCheckpoint,
    StageResult,
    from_bytes,
    to_bytes,
)
from hybridsim.project.run_folder.write import write_file

MAX_CHECKPOINTS = 2
"""Number of checkpoints that are stored."""
MAX_TIME_SHARE = 0.1
"""Maximum fraction of the time spent on writing; if steps are fast, some checkpoints are skipped."""
PATTERN = "checkpoint-*.safetensors"


class FolderCheckpointStore:
    """Checkpoint store in a folder, for `identify.fit`.

    Attributes:
        stage_results: results of completed stages by index.
    """

    def __init__(self, folder: Path, fit: str, *, log: Callable[[str], None] = lambda text: None):
        """Open a folder.

        Args:
            folder: folder of the checkpoints; must exist.
            fit: identification of the fit.
            log: callback for messages to the user.
        """
        self._folder, self._fit, self._log = folder, fit, log
        self._last = max((_serial(path) for path in folder.glob(PATTERN)), default=0)
        self._pending: Checkpoint | None = None
        self._next_write = 0.0
        self.stage_results: dict[int, StageResult] = {}

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, or hold it back if the last one was written too recently.

        The last checkpoint of a stage is always written.

        Raises:
            HybridsimError: writing failed, such as on a full disk; earlier checkpoints are intact.
        """
        state, is_last = checkpoint.state, not np.any(checkpoint.state.termination == Termination.RUNNING)
        if is_last:
            best = int(np.argmin(state.cost))
            self.stage_results[checkpoint.stage] = StageResult(
                float(state.cost[best]), Termination(int(state.termination[best])), int(state.steps)
            )
        self._pending = checkpoint
        if is_last or time.monotonic() >= self._next_write:
            self.flush()

    def flush(self) -> None:
        """Write the newest checkpoint if it has been held back."""
        if self._pending is None:
            return
        start = time.monotonic()
        path = self._folder / f"checkpoint-{self._last + 1:06d}.safetensors"
        write_file(path, to_bytes(SavedCheckpoint(self._pending, self.stage_results), self._fit))
        self._pending, self._last = None, self._last + 1
        for old in self._files()[MAX_CHECKPOINTS:]:
            old.unlink(missing_ok=True)
        now = time.monotonic()
        self._next_write = now + (now - start) / MAX_TIME_SHARE

    def load_newest(self) -> Checkpoint | None:
        """Newest intact checkpoint, if any; logs newer ones that are damaged.

        Raises:
            HybridsimError: all checkpoints are damaged.
        """
        damaged: dict[Path, str] = {}
        for path in self._files():
            try:
                saved = from_bytes(path.read_bytes(), self._fit)
            except DamagedCheckpointError as error:
                damaged[path] = f"{path.name} is damaged: {error}"
                continue
            self.stage_results = dict(saved.stage_results)
            if damaged:
                self._log("; ".join(damaged.values()) + f". Resuming from the previous one, {path.name}.")
            for file in damaged:
                # no longer matches the pattern, but remains for inspection
                file.rename(file.with_suffix(".damaged"))
            return saved.checkpoint
        if damaged:
            message = f"{self._folder}: {'; '.join(damaged.values())}"
            raise FolderError(message, python="fit again into another folder", command="start over with --fresh")
        return None

    def _files(self) -> list[Path]:
        """Checkpoint files, newest first."""
        return sorted(self._folder.glob(PATTERN), key=_serial, reverse=True)


def _serial(path: Path) -> int:
    digits = path.stem.removeprefix("checkpoint-")
    return int(digits) if digits.isdecimal() else 0

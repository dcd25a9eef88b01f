"""Keeping checkpoints of a fit in a folder: the newest two, so that one is left whatever happens to the other."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.fit import Checkpoint
from hybridsim.identify.solvers.solver import Termination
from hybridsim.project.record.checkpoint import DamagedCheckpoint, Saved, StageEnd, from_bytes, to_bytes
from hybridsim.project.record.write import write_file

KEPT = 2
"""Checkpoints that stay."""
SHARE = 0.1
"""Share of the time that writing may take: steps that are quicker than the disk are not all written."""
PATTERN = "checkpoint-*.safetensors"


class FolderCheckpointStore:
    """Keeps checkpoints in a folder, as `identify.fit` wants it.

    Attributes:
        ends: how the stages that are over ended, by their number.
    """

    def __init__(self, folder: Path, *, tell: Callable[[str], None] = lambda text: None):
        """Look at a folder.

        Args:
            folder: where checkpoints are; must exist.
            tell: told what a user should know.
        """
        self._folder, self._tell = folder, tell
        self._last = max((_serial(path) for path in folder.glob(PATTERN)), default=0)
        self._held: Checkpoint | None = None
        self._due = 0.0
        self.ends: dict[int, StageEnd] = {}

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint: write it, or hold it until writing has become cheap again.

        The end of a stage is always written.

        Raises:
            HybridsimError: the disk is full or the like; what was written before is still there.
        """
        state, is_over = checkpoint.state, not np.any(checkpoint.state.verdict == Termination.RUNNING)
        if is_over:
            best = int(np.argmin(state.cost))
            self.ends[checkpoint.stage] = StageEnd(
                float(state.cost[best]), Termination(int(state.verdict[best])), int(state.steps)
            )
        self._held = checkpoint
        if is_over or time.monotonic() >= self._due:
            self.flush()

    def flush(self) -> None:
        """Write the newest checkpoint, if it is not written yet."""
        if self._held is None:
            return
        begun = time.monotonic()
        path = self._folder / f"checkpoint-{self._last + 1:06d}.safetensors"
        write_file(path, to_bytes(Saved(self._held, self.ends)))
        self._held, self._last = None, self._last + 1
        for old in self._files()[KEPT:]:
            old.unlink(missing_ok=True)
        now = time.monotonic()
        self._due = now + (now - begun) / SHARE

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole, if there is any; says so if that is not the newest one.

        Raises:
            HybridsimError: there are checkpoints, but none of them is whole.
        """
        damaged: dict[Path, str] = {}
        for path in self._files():
            try:
                saved = from_bytes(path.read_bytes())
            except DamagedCheckpoint as error:
                damaged[path] = f"{path.name} is damaged: {error}"
                continue
            self.ends = dict(saved.ends)
            if damaged:
                self._tell("; ".join(damaged.values()) + f". Going on from {path.name}, the one before.")
            for bad in damaged:
                # out of the way of those that are whole, and still there for who wants to know what happened
                bad.rename(bad.with_suffix(".damaged"))
            return saved.checkpoint
        if damaged:
            raise HybridsimError(f"{self._folder}: " + "; ".join(damaged.values()) + ". Start again with --fresh.")
        return None

    def _files(self) -> list[Path]:
        """Checkpoints, the newest first."""
        return sorted(self._folder.glob(PATTERN), key=_serial, reverse=True)


def _serial(path: Path) -> int:
    digits = path.stem.removeprefix("checkpoint-")
    return int(digits) if digits.isdecimal() else 0

"""The history of a fit: one line of JSON per step, readable while the fit runs and after it was killed."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from hybridsim.project.record.write import cannot_write, finite, write_file


@dataclass(frozen=True)
class Step:
    """One line."""

    stage: int
    step: int
    cost: float | None
    """Of the best problem; none where it is infinite."""
    rms: float | None = None
    """Root mean square residual over the training runs, in standard deviations of the noise."""
    held_out_rms: float | None = None
    """Of the runs that the fit does not see; told now and then, and after the last step of a stage."""
    seconds: float | None = None
    """Since the process began to fit."""


class History:
    """A file that grows by a line per step."""

    def __init__(self, path: Path):
        self.path = path

    def add(self, step: Step) -> None:
        """Append a line."""
        line = (json.dumps(finite(asdict(step)), allow_nan=False) + "\n").encode()
        try:
            with self.path.open("ab", buffering=0) as file:
                file.write(line)
        except OSError as error:
            raise cannot_write(self.path, error.strerror or str(error), len(line)) from None

    def read(self) -> list[Step]:
        """All lines that are whole."""
        if not self.path.exists():
            return []
        steps = []
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                steps.append(Step(**json.loads(line)))
            except (ValueError, TypeError):
                continue  # torn off by a kill or a full disk
        return steps

    def cut(self, last: Step) -> None:
        """Forget every line after a step that the fit goes on from.

        Args:
            last: the step; it gets a line of its own if the process was killed before writing one.
        """
        lines = [step for step in self.read() if (step.stage, step.step) <= (last.stage, last.step)]
        if not lines or (lines[-1].stage, lines[-1].step) != (last.stage, last.step):
            lines.append(last)
        write_file(self.path, "".join(json.dumps(finite(asdict(step))) + "\n" for step in lines))

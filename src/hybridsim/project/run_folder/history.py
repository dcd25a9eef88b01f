"""History of a fit: one line of JSON per step, readable during the fit and after a crash."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from hybridsim.project.run_folder.write import SEAL, is_intact, seal, unwritable_error, write_file


@dataclass(frozen=True)
class Step:
    """One step of a fit: a line of the history."""

    stage: int
    step: int
    cost: float | None
    """Lowest cost so far; None if infinite."""
    normalized_cost: float | None = None
    """Normalized cost of the training runs: their root mean square residual, in standard deviations of the noise, if
    there are no other terms."""
    held_out_rms: float | None = None
    """Root mean square residual of the held-out runs, where it was evaluated; always after the last step of a stage."""
    elapsed: float | None = None
    """Time since the process started the fit [s]."""


class History:
    """File with one line per step."""

    def __init__(self, path: Path):
        self.path = path

    def append(self, step: Step) -> None:
        """Append a line."""
        line = _line(step).encode()
        try:
            with self.path.open("ab", buffering=0) as file:
                file.write(line)
        except OSError as error:
            raise unwritable_error(self.path, error.strerror or str(error), len(line)) from None

    def read(self) -> list[Step]:
        """All lines that are complete and intact."""
        if not self.path.exists():
            return []
        found = map(_step, self.path.read_text(encoding="utf-8", errors="replace").splitlines())
        return [step for step in found if step is not None]

    def truncate(self, last: Step) -> None:
        """Remove all lines after the step from which a fit resumes.

        Args:
            last: that step; its line is added if the process was killed before writing it.
        """
        lines = [step for step in self.read() if (step.stage, step.step) <= (last.stage, last.step)]
        if not lines or (lines[-1].stage, lines[-1].step) != (last.stage, last.step):
            lines.append(last)
        write_file(self.path, "".join(map(_line, lines)))


def _line(step: Step) -> str:
    return json.dumps(seal(asdict(step)), allow_nan=False) + "\n"


def _step(line: str) -> Step | None:
    """The step of a line; None if it was truncated by a crash or a full disk, or is damaged."""
    try:
        content = json.loads(line)
        if not is_intact(content):
            return None
        del content[SEAL]
        return Step(**content)
    except (ValueError, TypeError, AttributeError):
        return None

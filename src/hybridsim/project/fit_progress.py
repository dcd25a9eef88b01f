"""Progress of a fit: a live line on a terminal, one line per update elsewhere."""

import time
from types import TracebackType
from typing import TYPE_CHECKING

from hybridsim.core.console import PlainConsole

if TYPE_CHECKING:
    from hybridsim.identify.solve import Progress

MIN_TIME_BETWEEN_LINES = 1.0
"""Minimum time between lines where output is not a terminal [s]; first and last step of a stage are always printed."""


class FitProgress:
    """Context manager that shows the progress of a fit on standard error."""

    def __init__(self, *, quiet: bool):
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        console = PlainConsole(stderr=True)
        self._quiet, self._console = quiet, console
        self._live = console.is_terminal and not quiet
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TextColumn("{task.fields[values]}"))
        self._bar = Bar(*columns, console=console, transient=True, disable=not self._live)
        self._task = self._bar.add_task("preparing", total=None, values="")
        self._stage, self._stage_start = -1, (0, 0.0)
        self._held_out_rms: float | None = None
        self._next_line = 0.0
        self._pending = ""

    def __enter__(self) -> "FitProgress":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        self._print_pending()

    def log(self, text: str) -> None:
        """Print a message that is not progress."""
        self._console.print(text, soft_wrap=True)

    def show(self, progress: "Progress", held_out_rms: float | None) -> None:
        """Show the progress after a step.

        Args:
            progress: after the step.
            held_out_rms: RMS residual of the held-out runs, where it was evaluated [σ].
        """
        is_new = progress.stage != self._stage
        if is_new:
            self._print_pending()
            # the first step of a stage may include compilation
            self._stage, self._stage_start, self._held_out_rms = progress.stage, (progress.step, progress.elapsed), None
        self._held_out_rms = self._held_out_rms if held_out_rms is None else held_out_rms
        step = f"stage {progress.stage + 1}/{progress.stages} step {progress.step}"
        values = self._values(progress)
        if self._live:
            total = progress.max_steps
            self._bar.update(self._task, description=step, total=total, completed=progress.step, values=values)
        elif not self._quiet:
            self._pending = f"{step}: {values}"
            if is_new or time.monotonic() >= self._next_line:
                self._next_line = time.monotonic() + MIN_TIME_BETWEEN_LINES
                self._print_pending()

    def _print_pending(self) -> None:
        """Print the last line that was held back, so that the last step of a stage is always shown."""
        if self._pending:
            self._console.print(self._pending, soft_wrap=True)
        self._pending = ""

    def _values(self, progress: "Progress") -> str:
        parts = [f"cost {progress.cost:.6g}", f"normalized cost {progress.normalized_cost:.4g}"]
        if self._held_out_rms is not None:
            parts.append(f"held-out {self._held_out_rms:.4g} σ")
        parts.append(f"{progress.elapsed:.1f} s")
        steps = progress.step - self._stage_start[0]
        if steps > 0:
            step_time = (progress.elapsed - self._stage_start[1]) / steps
            # an upper bound: a solver may converge before it is out of steps
            parts.append(f"at most {_duration(step_time * (progress.max_steps - progress.step))} left in this stage")
        return ", ".join(parts)


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, remainder = divmod(whole, 3600)
    minutes, seconds_left = divmod(remainder, 60)
    return f"{hours}:{minutes:02d}:{seconds_left:02d} h" if hours else f"{minutes}:{seconds_left:02d} min"

"""How a fit goes, on the screen: a line that changes on a terminal, lines one after the other elsewhere."""

import time
from types import TracebackType
from typing import TYPE_CHECKING

from hybridsim.cli.output import PlainConsole

if TYPE_CHECKING:
    from hybridsim.identify.fit import Progress

SECONDS_BETWEEN_LINES = 1.0
"""Where lines cannot be taken back, there are not more of them than this, but for the first and last of a stage."""


class FitProgress:
    """Shows the progress of a fit on standard error while entered."""

    def __init__(self, *, quiet: bool):
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        console = PlainConsole(stderr=True)
        self._quiet, self._console = quiet, console
        self._live = console.is_terminal and not quiet
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TextColumn("{task.fields[numbers]}"))
        self._bar = Bar(*columns, console=console, transient=True, disable=not self._live)
        self._task = self._bar.add_task("preparing", total=None, numbers="")
        self._stage, self._begun = -1, (0, 0.0)
        self._held_out: float | None = None
        self._next_line = 0.0
        self._unsaid = ""

    def __enter__(self) -> "FitProgress":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        self._say_what_is_left()

    def tell(self, text: str) -> None:
        """Say something that is not progress."""
        self._console.print(text, soft_wrap=True)

    def show(self, progress: "Progress", held_out: float | None) -> None:
        """Show how the fit goes.

        Args:
            progress: after a step.
            held_out: error of the held-out runs, where it was looked at.
        """
        is_new = progress.stage != self._stage
        if is_new:
            self._say_what_is_left()
            # the first step of a stage may have waited for a compiler
            self._stage, self._begun, self._held_out = progress.stage, (progress.step, progress.seconds), None
        self._held_out = self._held_out if held_out is None else held_out
        where = f"stage {progress.stage + 1}/{progress.stages} step {progress.step}"
        numbers = self._numbers(progress)
        if self._live:
            total = progress.max_steps
            self._bar.update(self._task, description=where, total=total, completed=progress.step, numbers=numbers)
        elif not self._quiet:
            self._unsaid = f"{where}: {numbers}"
            if is_new or time.monotonic() >= self._next_line:
                self._next_line = time.monotonic() + SECONDS_BETWEEN_LINES
                self._say_what_is_left()

    def _say_what_is_left(self) -> None:
        """How a stage ended is said however soon that was."""
        if self._unsaid:
            self._console.print(self._unsaid, soft_wrap=True)
        self._unsaid = ""

    def _numbers(self, progress: "Progress") -> str:
        parts = [f"loss {progress.cost:.6g}", f"rms {progress.rms:.4g} × noise"]
        if self._held_out is not None:
            parts.append(f"held-out {self._held_out:.4g} × noise")
        parts.append(f"{progress.seconds:.1f} s")
        done = progress.step - self._begun[0]
        if done > 0:
            each = (progress.seconds - self._begun[1]) / done
            # a solver may be done any time before it is out of steps
            parts.append(f"stage ends within {_duration(each * (progress.max_steps - progress.step))}")
        return ", ".join(parts)


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d} h" if hours else f"{rest // 60}:{rest % 60:02d} min"

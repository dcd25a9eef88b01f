"""Ctrl-C while something long runs: stop at the next good place, at once the second time."""

import os
import signal
import sys
import threading
from types import TracebackType
from typing import Any


class StopRequest:
    """While entered, the first interrupt sets `given`, and the second ends the program."""

    def __init__(self, exit_code: int):
        self.given = False
        self._exit_code = exit_code
        self._before: Any = None

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _on_interrupt(self, *_: object) -> None:
        if self.given:
            os._exit(self._exit_code)
        self.given = True
        sys.stderr.write("\nstopping after this block of steps; press again to stop at once\n")

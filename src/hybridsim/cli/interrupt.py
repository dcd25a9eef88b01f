"""Handling of Ctrl-C and SIGTERM: the first requests a clean stop, the second terminates immediately."""

import os
import signal
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any

SIGNAL_EXIT_CODE_OFFSET = 128
"""By shell convention, the exit code of a program terminated by a signal is this offset plus the signal number."""
REPEAT_HINTS = {
    signal.SIGINT: "press again to stop immediately",
    signal.SIGTERM: "a second SIGTERM stops immediately",
}
"""Handled signals, with the effect of a second one."""


class StopRequest:
    """Context manager in which the first SIGINT or SIGTERM sets `requested` and the second ends the program.

    Attributes:
        requested: whether a stop was requested.
        exit_code: exit code by shell convention for the signal; 0 if there was none.
    """

    def __init__(self):
        self.requested, self.exit_code = False, 0
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            self._handlers = {number: signal.signal(number, self._on_signal) for number in REPEAT_HINTS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, *_: object) -> None:
        if self.requested:
            os._exit(SIGNAL_EXIT_CODE_OFFSET + number)
        self.requested, self.exit_code = True, SIGNAL_EXIT_CODE_OFFSET + number
        # not through sys.stderr, which is not reentrant
        with suppress(OSError):
            os.write(2, f"\nstopping once everything is saved; {REPEAT_HINTS[signal.Signals(number)]}\n".encode())

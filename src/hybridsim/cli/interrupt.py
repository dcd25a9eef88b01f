"""Ctrl-C or SIGTERM while something long runs: stop at the next good place, at once the second time."""

import os
import signal
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any

FROM_SIGNAL = 128
"""What a shell adds to the number of the signal that ended a program."""
AGAIN = {signal.SIGINT: "press again to stop at once", signal.SIGTERM: "a second SIGTERM stops at once"}
"""Signals that ask to stop, and what one more of them does."""


class StopRequest:
    """While entered, the first signal that asks to stop sets `given`, and the second ends the program.

    Attributes:
        given: has anybody asked to stop?
        exit_code: as a shell gives it to a program that such a signal ended; 0 as long as there was none.
    """

    def __init__(self):
        self.given, self.exit_code = False, 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._on_signal) for number in AGAIN}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, *_: object) -> None:
        if self.given:
            os._exit(FROM_SIGNAL + number)
        self.given, self.exit_code = True, FROM_SIGNAL + number
        # not by sys.stderr, which may be in the middle of writing something else
        with suppress(OSError):
            os.write(2, f"\nstopping as soon as everything is saved; {AGAIN[signal.Signals(number)]}\n".encode())

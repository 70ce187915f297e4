"""Handling of Ctrl-C and of SIGTERM."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from types import FrameType
from typing import Any, Self


class TrainingInterrupted(KeyboardInterrupt):
    """Raised by `Trainer.fit` after Ctrl-C, once the checkpoint is saved.

    If the step raises an error meanwhile, nothing is saved, and the error is the cause.

    As a KeyboardInterrupt it ends a script with all its remaining calls of `fit`, unless the script
    catches it.
    """


class TrainingTerminated(SystemExit):
    """Raised by `Trainer.fit` after SIGTERM, once the checkpoint is saved.

    As a SystemExit it ends the process with the exit code 143, as SIGTERM itself would.
    """

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


_ERRORS: dict[int, type[BaseException]] = {
    signal.SIGINT: TrainingInterrupted,
    signal.SIGTERM: TrainingTerminated,
}


class Interrupt:
    """Context in which a first Ctrl-C or SIGTERM only sets `signal`; a second one raises at once.

    Args:
        has_folder: Whether there is a folder for the checkpoint. If not, SIGTERM ends a worker
            process at once, as its parent process expects.

    Attributes:
        signal: Number of the signal that was received, or None.
    """

    def __init__(self, has_folder: bool) -> None:
        self.signal: int | None = None
        is_worker = multiprocessing.parent_process() is not None
        self._numbers = [signal.SIGINT] if is_worker and not has_folder else list(_ERRORS)
        self._before: dict[int, Any] = {}
        self._process = os.getpid()

    @property
    def requested(self) -> bool:
        """Whether training should stop."""
        return self.signal is not None

    def error(self) -> BaseException:
        """Return the exception that ends `fit`."""
        return _ERRORS[self.signal or signal.SIGINT]()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in self._numbers:
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a process forked during training
            signal.signal(number, self._before[number])
            signal.raise_signal(number)
            return
        if self.requested:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        self.signal = number

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        if self.signal == signal.SIGTERM and callable(self._before.get(signal.SIGTERM)):
            signal.raise_signal(signal.SIGTERM)  # the program's own handler runs after ours
        if self.requested and isinstance(error, Exception):  # it must not hide the signal
            raise self.error() from error

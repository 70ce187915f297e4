"""Fallbacks from a framework's transform to a slower path, with one warning each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ember_ml.backend.interface import Autodiff


_warned: set[str] = set()


def check_tracing_error(error: Exception, native: Autodiff, message: str) -> None:
    """Warn once if an op cannot run under the framework's transform; raise any other error.

    Args:
        error: Error that the transform raised.
        native: Autodiff module of the backend.
        message: Text of the warning. The framework's message is appended.
    """
    cause = next((each for each in _chain(error) if native.is_tracing_error(each)), None)
    if cause is None:
        raise error
    if message not in _warned:
        _warned.add(message)
        first_line = str(cause).splitlines()[0]
        warnings.warn(f"{message}: {first_line}", RuntimeWarning, stacklevel=4)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes; causes and contexts together may form a cycle."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__

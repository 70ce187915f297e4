"""A computation that stands on a tape as one call."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ember_ml._core import recording
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff import record


class Procedure:
    """A function of a list of tensors of one backend, as an op is to a tape.

    Attributes:
        name: what it is, for people.
        key: what it does: two of one key are the same function. None: it is like no other.
        plain: the function.
        vjps: its gradient's rule, for the backends that need one.
    """

    body = None

    def __init__(
        self,
        name: str,
        key: Hashable,
        backend: str,
        function: Callable[[list[EmberTensor]], list[EmberTensor]],
        vjps: Any = None,
    ) -> None:
        self.name = name
        self.key: Any = None if key is None else (name, key)
        self.natives = {backend: function}
        self.plain = function
        self.vjps = vjps

    def __call__(self, values: list[EmberTensor]) -> list[EmberTensor]:
        """The results, on this thread's tapes where they track one of the values."""
        tapes = recording.tapes()
        return record.call(self, (values,), {}, tapes) if tapes else self.plain(values)

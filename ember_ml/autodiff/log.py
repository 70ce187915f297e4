"""Record of a tape on one backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self, TypeAlias

from ember_ml._core.op import Op
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.values import Values

if TYPE_CHECKING:
    from ember_ml.autodiff.extraction import Procedure

Args: TypeAlias = tuple[object, ...]
KwArgs: TypeAlias = dict[str, object]
Result: TypeAlias = Tensor | Sequence[Tensor]
"""Result of an op."""
Recordable: TypeAlias = "Op | Procedure"
"""Callable that a tape records as one step."""


class Log(ABC):
    """Record of a tape on one backend. A value is identified by the id of its native array.

    Attributes:
        backend: Name of the backend.
        values: The tracked values, by id of the native array.
        rebinds: Whether targets may be replaced by equal values that were computed again.
        retains: Whether gradients may be computed more than once.
    """

    rebinds = True
    retains = False

    values: Mapping[int, object]

    def __init__(self, backend: str) -> None:
        self.backend = backend

    @abstractmethod
    def watch(self, x: Tensor) -> None:
        """Track a tensor from here on."""

    @abstractmethod
    def execute(self, op: Recordable, args: Args, kwargs: KwArgs, logs: Sequence[Self]) -> Result:
        """Compute a call and record it in the logs, which are of one class."""

    @abstractmethod
    def gradient(self, targets: Values, sources: Values, cotangents: Values) -> list[Tensor | None]:
        """Return the gradients of the sources, None where no path leads to a target."""

    @abstractmethod
    def rows(self, targets: Values, sources: Values, cotangents: Values) -> list[Tensor | None]:
        """Return the gradients for each of a batch of cotangents, stacked along axis 0."""

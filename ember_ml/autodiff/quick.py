"""The usual calls, computed and written down at once."""

from __future__ import annotations

from typing import Any, TypeAlias

from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.constants import CONSTANT
from ember_ml.autodiff.values import FLOWING, flows

Quick: TypeAlias = tuple[Any, tuple[Any, ...], tuple[int, ...], Any, str]
"""A call in the form that costs least to write down.

(op, native arrays and numbers, positions of the tracked operands, native result, its tag).
"""

NUMBERS = frozenset((float, int, bool, complex))
_new = object.__new__
_UNKNOWN = (None, None)
_FIRST: tuple[int, ...] = (0,)
_SECOND: tuple[int, ...] = (1,)
_BOTH: tuple[int, ...] = (0, 1)


class QuickLog:
    """The part of a log that takes the calls of one or two tensors, if its tape is the only one.

    Attributes:
        values: id of a native array -> the array, which is so kept alive, or that in its place.
        steps: the calls, as `Quick` from here; those that come another way have a form of theirs.
    """

    by_rules = False
    """Whether ops are differentiated by rules, so that an op without one must give its body."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.values: dict[int, Any] = {}
        self.steps: list[Any] = []

    def unary(self, op: Any, x: Any) -> Any:
        """The result of the usual call of one tensor; None where the call is not usual."""
        if type(x) is not EmberTensor or (op.vjps is None if self.by_rules else op.key in CONSTANT):
            return None
        known = self.values.get(id(x._data))
        kernel, tag = op.kernels.get(x._tag, _UNKNOWN)
        if known is None or tag not in FLOWING:
            return None
        try:
            out = kernel(x._data)
        except Exception:  # to be explained on the long way
            return None
        return self._made(op, (known,), _FIRST, out, tag)

    def binary(self, op: Any, x: Any, y: Any) -> Any:
        """The same for two tensors, or a tensor and a number."""
        if op.vjps is None if self.by_rules else op.key in CONSTANT:
            return None
        if type(x) is not EmberTensor or type(y) is not EmberTensor:
            return self._with_number(op, x, y)
        kernel, tag = op.kernels.get(x._tag, _UNKNOWN)
        if x._tag is not y._tag or tag not in FLOWING:
            return None
        first, second = self.values.get(id(x._data)), self.values.get(id(y._data))
        if first is None:
            if second is None:
                return None
            first, positions = x._data, _SECOND
        elif second is None:
            second, positions = y._data, _FIRST
        else:
            positions = _BOTH
        try:
            out = kernel(x._data, y._data)
        except Exception:  # to be explained on the long way
            return None
        return self._made(op, (first, second), positions, out, tag)

    def _with_number(self, op: Any, x: Any, y: Any) -> Any:
        if type(x) is EmberTensor:
            tensor, number, table, positions = x, y, op.right.floats, _FIRST
        else:
            tensor, number, table, positions = y, x, op.left.floats, _SECOND
        if type(tensor) is not EmberTensor or type(number) not in NUMBERS:
            return None
        known = self.values.get(id(tensor._data))
        if known is None:
            return None
        args = (known, number) if tensor is x else (number, known)
        kernel, tag = table.get(tensor._tag, _UNKNOWN)
        if type(number) is float and tag in FLOWING:
            try:
                out = kernel(x._data, y) if tensor is x else kernel(x, y._data)
            except Exception:  # to be explained on the long way
                return None
            return self._made(op, args, positions, out, tag)
        result = op.plain(x, y)
        if result._tag not in FLOWING and not flows(result._tag):
            return result
        return self._made(op, args, positions, result._data, result._tag)

    def _made(
        self, op: Any, args: tuple[Any, ...], positions: tuple[int, ...], data: Any, tag: str
    ) -> EmberTensor:
        """The result of a call, written down unless it is an operand."""
        key, values = id(data), self.values
        if key not in values:
            values[key] = data
            self.steps.append((op, args, positions, data, tag))
        out = _new(EmberTensor)
        out._data = data
        out._backend = self.backend
        out._tag = tag
        return out

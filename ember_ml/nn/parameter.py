"""Tensors that are part of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import DTypeLike, EmberTensor, Tensor, TensorLike
from ember_ml.backend.interface import Arrays


class Variable(EmberTensor):
    """A tensor whose value is replaced as a model learns or runs: a Parameter or a Buffer."""

    __slots__ = ("name",)

    def __init__(
        self,
        data: TensorLike,
        *,
        name: str = "",
        dtype: DTypeLike | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__(data, dtype=dtype, device=device)
        self.name = name

    def assign(self, value: TensorLike) -> Self:
        """Give it another value of the same shape, in its own dtype and on its own backend."""
        made = convert_to_tensor(value, dtype=self.dtype, backend=self._backend)
        if made.shape != self.shape:
            raise ShapeError(
                f"assign: the {type(self).__name__.lower()} {self.name!r} has the shape "
                f"{self.shape}, the value {made.shape}"
            )
        self._data = made._data
        if isinstance(value, EmberTensor):  # a handle of its own: a tape knows a value by it
            self._data = runtime.LOADED[self._backend].adopt(made._data)
        return self

    def become(self, value: Tensor) -> None:
        """Take another tensor's value, dtype and backend for its own."""
        self._data, self._backend, self._tag = value._data, value._backend, value._tag

    def value(self) -> Tensor:
        """Its value now, as a tensor that later assignments leave alone."""
        return ops.gradients.alias(self)

    def _details(self) -> str:
        return f", name={self.name!r}" if self.name else ""

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}{self._details()})".replace(
            "tensor(", f"{type(self).__name__.lower()}(", 1
        )


def set_natives(variables: Sequence[Variable], arrays: Arrays) -> None:
    """Replace the native array of each variable by another of its dtype and backend."""
    for variable, data in zip(variables, arrays, strict=True):
        variable._data = data


class Parameter(Variable):
    """A tensor that training changes: a tape watches it unasked while it is trainable.

    Ops take it as any tensor. It costs nothing outside a tape.

    Args:
        data: its first value.
        trainable: whether gradients are taken for it unasked.
        decay: whether weight decay is meant for it; gains and biases say no.
        name: for people to read.

    Example:
        >>> weight = Parameter([1.0, 2.0], name="weight")
        >>> with GradientTape() as tape:
        ...     loss = (weight * weight).sum()
        >>> tape.gradient(loss, weight).tolist()
        [2.0, 4.0]
    """

    __slots__ = ("decay", "trainable")

    def __init__(
        self,
        data: TensorLike,
        *,
        trainable: bool = True,
        decay: bool = True,
        name: str = "",
        dtype: DTypeLike | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__(data, name=name, dtype=dtype, device=device)
        self.trainable = trainable
        self.decay = decay

    def _details(self) -> str:
        return f", trainable={self.trainable}{super()._details()}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        copied = super().__deepcopy__(memo)
        return Parameter(copied, trainable=self.trainable, decay=self.decay, name=self.name)


class Buffer(Variable):
    """A tensor of a module that is no parameter: a running mean, a mask, a table of positions.

    Args:
        data: its first value.
        persistent: whether it is saved with the module.
        name: for people to read.

    Example:
        >>> counts = Buffer([0.0, 0.0])
        >>> counts.assign(counts + 1.0).tolist()
        [1.0, 1.0]
    """

    __slots__ = ("persistent",)

    def __init__(
        self,
        data: TensorLike,
        *,
        persistent: bool = True,
        name: str = "",
        dtype: DTypeLike | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__(data, name=name, dtype=dtype, device=device)
        self.persistent = persistent

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        return Buffer(super().__deepcopy__(memo), persistent=self.persistent, name=self.name)

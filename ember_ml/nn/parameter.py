"""Tensors that training changes."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import DTypeLike, EmberTensor, Tensor, TensorLike


class Parameter(EmberTensor):
    """A tensor that is part of a model: a tape watches it unasked while it is trainable.

    Ops take it as any tensor. It costs nothing outside a tape.

    Args:
        data: its first value.
        trainable: whether gradients are taken for it unasked.
        name: for people to read.

    Example:
        >>> weight = Parameter([1.0, 2.0], name="weight")
        >>> with GradientTape() as tape:
        ...     loss = (weight * weight).sum()
        >>> tape.gradient(loss, weight).tolist()
        [2.0, 4.0]
    """

    __slots__ = ("name", "trainable")

    def __init__(
        self,
        data: TensorLike,
        *,
        trainable: bool = True,
        name: str = "",
        dtype: DTypeLike | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__(data, dtype=dtype, device=device)
        self.trainable = trainable
        self.name = name

    def assign(self, value: TensorLike) -> Parameter:
        """Give it another value of the same shape, in its own dtype and on its own backend."""
        made = convert_to_tensor(value, dtype=self.dtype, backend=self._backend)
        if made.shape != self.shape:
            raise ShapeError(
                f"assign: the parameter {self.name!r} has the shape {self.shape}, the value "
                f"{made.shape}"
            )
        self._data = made._data
        if isinstance(value, EmberTensor):  # a handle of its own: a tape knows a value by it
            self._data = runtime.LOADED[self._backend].adopt(made._data)
        return self

    def value(self) -> Tensor:
        """Its value now, as a tensor that later assignments leave alone."""
        return ops.gradients.alias(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        copied = super().__deepcopy__(memo)
        return Parameter(copied, trainable=self.trainable, name=self.name)

    def __repr__(self) -> str:
        name = f", name={self.name!r}" if self.name else ""
        return f"{super().__repr__()[:-1]}, trainable={self.trainable}{name})".replace(
            "tensor(", "parameter(", 1
        )

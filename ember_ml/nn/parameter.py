"""Tensors that are part of a model: parameters and buffers."""

from __future__ import annotations

from typing import Any, Self

from ember_ml import ops
from ember_ml._core import deferred, recording, runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike, rebind, wrap
from ember_ml._core.types import DTypeLike


class Variable(EmberTensor):
    """Tensor of a module whose value can be replaced: a Parameter or a Buffer."""

    __slots__ = ("name",)

    def __init__(
        self,
        data: TensorLike,
        *,
        name: str = "",
        dtype: DTypeLike | None = None,
        device: str | None = None,
    ) -> None:
        deferral = deferred.current() if recording.OPEN else None
        if deferral is not None and isinstance(data, EmberTensor):
            deferral.reserve(data.size, f"a variable of shape {data.shape}")  # it may be a view
        super().__init__(data, dtype=dtype, device=device)
        self.name = name
        if deferral is not None:
            deferral.claim(self, data)

    def assign(self, value: TensorLike) -> Self:
        """Replace the value, and return the variable.

        Args:
            value: Value of the same shape. It is converted to the variable's dtype and backend.
        """
        converted = convert_to_tensor(value, dtype=self.dtype, backend=self.backend)
        if converted.shape != self.shape:
            raise ShapeError(
                f"assign: the {type(self).__name__.lower()} {self.name!r} has shape {self.shape}, "
                f"the value has shape {converted.shape}"
            )
        if isinstance(value, EmberTensor):  # tapes identify values by their array: use a new one
            native = runtime.LOADED[self.backend].adopt(converted.native)
            converted = wrap(native, self.backend)
        rebind([self], [converted])
        return self

    def become(self, value: Tensor) -> None:
        """Replace the value, dtype and backend by those of another tensor."""
        rebind([self], [value])

    def value(self) -> Tensor:
        """Return the current value as a tensor that later assignments do not change."""
        return ops.gradients.alias(self)

    def _details(self) -> str:
        return f", name={self.name!r}" if self.name else ""

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}{self._details()})".replace(
            "tensor(", f"{type(self).__name__.lower()}(", 1
        )


class Parameter(Variable):
    """Trainable tensor: tapes watch it automatically while it is trainable.

    Ops accept it like any tensor. Outside of a tape it has no overhead.

    Args:
        data: Initial value.
        trainable: Whether tapes watch it and optimizers update it.
        decay: Whether weight decay applies; usually False for gains and biases.
        name: Name in error messages and the repr.
        dtype: Dtype of the value. Default: that of `data`.
        device: Device of the value. Default: the default device of the backend.

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
    """Tensor of a module that is not trained: a running mean, a mask, a position table.

    Args:
        data: Initial value.
        persistent: Whether it is saved with the module.
        name: Name in error messages and the repr.
        dtype: Dtype of the value. Default: that of `data`.
        device: Device of the value. Default: the default device of the backend.

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

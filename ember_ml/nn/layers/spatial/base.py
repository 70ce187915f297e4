"""The base class of layers of images, and the types of their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import PlainValidator, WithJsonSchema

from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.base import Layer

DataFormat: TypeAlias = Literal["channels_last", "channels_first"]
"""Order of the axes of images: (batch, height, width, features), or the features second."""


def _integer(value: Any, least: int) -> int:
    if isinstance(value, bool) or index(value) < least:
        raise ValueError
    return index(value)


def _pair(value: Any, least: int) -> tuple[int, int]:
    first, second = value
    return _integer(first, least), _integer(second, least)


def _extent(value: Any) -> int | tuple[int, int]:
    try:
        return _pair(value, 1) if isinstance(value, (tuple, list)) else _integer(value, 1)
    except (TypeError, ValueError):
        raise ValueError("must be an integer of at least 1, or one for each axis") from None


def _padding(value: Any) -> Any:
    if isinstance(value, str) and value in ("same", "valid"):
        return value
    try:
        if not isinstance(value, (tuple, list)):
            return _integer(value, 0)
        if all(isinstance(part, (tuple, list)) for part in value):
            rows, columns = value
            return _pair(rows, 0), _pair(columns, 0)
        return _pair(value, 0)
    except (TypeError, ValueError):
        raise ValueError(
            "must be 'same', 'valid', an integer of at least 0, one for each axis, or (before, "
            "after) for each axis"
        ) from None


Extent = Annotated[
    int | Sequence[int], PlainValidator(_extent), WithJsonSchema({"type": ["integer", "array"]})
]
"""Height and width: one integer for both, or one each."""
OptionalExtent = Annotated[
    int | Sequence[int] | None,
    PlainValidator(lambda value: None if value is None else _extent(value)),
    WithJsonSchema({"type": ["integer", "array", "null"]}),
]
PaddingField = Annotated[
    int | str | Sequence[int] | Sequence[Sequence[int]],
    PlainValidator(_padding),
    WithJsonSchema({"type": ["integer", "string", "array"]}),
]
"""Padding: "same", "valid", an integer, one for each axis, or (before, after) for each axis."""


class ImageLayer(Layer):
    """Layer of images: (batch, height, width, features), or channels first."""

    data_format: DataFormat

    def check_image(self, x: Tensor, features: int | None = None) -> None:
        """Raise a ShapeError unless x is a batch of images with the given number of features.

        Args:
            x: The input.
            features: Expected number of features. Default: any.
        """
        axis = -1 if self.data_format == "channels_last" else 1
        if x.ndim == 4 and (features is None or x.shape[axis] == features):
            return
        channels = "features" if features is None else str(features)
        inner = ["height", "width"]
        inner.insert(2 if axis == -1 else 0, channels)
        raise ShapeError(
            f"{type(self).__name__}: expected images of shape (batch, {', '.join(inner)}) "
            f"({self.data_format}), got an input of shape {x.shape}"
        )

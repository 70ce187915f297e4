"""Layers whose weights are stored as integers of 8 or 4 bits, for inference."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Count, OptionalActivationField, Size
from ember_ml.nn import activations
from ember_ml.nn.layers.base import Layer, upcast_half
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.channel_mixing.embedding import Embedding, check_padding_index
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.registry import register

Bits: TypeAlias = Literal[4, 8]
"""Number of bits of a stored weight."""


def pack(weight: Tensor, bits: Bits, group_size: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the integers, scales and shifts of a matrix, as `ops.dequantize` takes them.

    Eight bits are symmetric: -127 to 127, without shifts. Four bits are 0 to 15 from the smallest
    to the largest weight of the group. The scales have the dtype of the matrix.

    Args:
        weight: Finite numbers, (rows, features).
        bits: Bits per weight.
        group_size: Number of consecutive weights of a row with one scale.
    """
    wide = _grouped(upcast_half(weight), group_size)
    if bits == 8:
        scale, shift, low, high = ops.max(ops.abs(wide), axis=-1) / 127.0, None, -127, 127
    else:
        shift, low, high = ops.min(wide, axis=-1), 0, 15
        scale = (ops.max(wide, axis=-1) - shift) / 15.0
        shift = ops.astype(shift, weight.dtype)
    scale = ops.astype(scale, weight.dtype)
    step = ops.expand_dims(upcast_half(scale), -1)
    is_flat = step <= 0.0
    step = ops.where(is_flat, 1.0, step)
    distance = wide if shift is None else wide - ops.expand_dims(upcast_half(shift), -1)
    q = ops.where(is_flat, 0.0, ops.clip(ops.round(distance / step), low, high))
    q = ops.reshape(q, (weight.shape[0], -1))[:, : weight.shape[1]]
    return (ops.astype(q, "int8") if bits == 8 else _pairs(ops.astype(q, "uint8"))), scale, shift


def _grouped(weight: Tensor, group_size: int) -> Tensor:
    """Return rows in groups; the last is filled with its last weight, which changes no range."""
    rows, features = weight.shape
    size = min(group_size, features)
    missing = -features % size
    if missing:
        last = ops.repeat(weight[:, -1:], missing, axis=1)
        weight = ops.concat([weight, last], axis=1)
    return ops.reshape(weight, (rows, -1, size))


def _pairs(q: Tensor) -> Tensor:
    """Return integers of 4 bits two per byte, the first in the low half."""
    if q.shape[1] % 2:
        q = ops.concat([q, ops.zeros_like(q[:, :1])], axis=1)
    return ops.bitwise_or(q[:, ::2], ops.bitwise_left_shift(q[:, 1::2], 4))


class Packed(Layer):
    """Layer with a matrix of packed weights in its buffers; they receive no gradient."""

    packed: Buffer
    scale: Buffer
    shift: Buffer | None
    bits: Bits
    group_size: int
    _shape: tuple[int, int]

    def allocate(self, rows: int, features: int, bits: Bits, group_size: int) -> None:
        """Create the buffers of a matrix of zeros.

        Args:
            rows: Number of rows.
            features: Number of weights in a row.
            bits: Bits per weight.
            group_size: Number of consecutive weights of a row with one scale.
        """
        self.bits, self.group_size, self._shape = bits, group_size, (rows, features)
        groups = (rows, -(-features // group_size))
        width, dtype = (features, "int8") if bits == 8 else (-(-features // 2), "uint8")
        self.packed = Buffer(ops.zeros((rows, width), dtype=dtype))
        self.scale = Buffer(ops.zeros(groups))
        self.shift = None if bits == 8 else Buffer(ops.zeros(groups))

    def load_weight(self, weight: Tensor) -> None:
        """Quantize a matrix of the same shape; its dtype and backend become those of the layer.

        Args:
            weight: Finite numbers, (rows, features).
        """
        packed, scale, shift = pack(weight, self.bits, self.group_size)
        self.packed.become(packed)
        self.scale.become(scale)
        if self.shift is not None and shift is not None:
            self.shift.become(shift)

    def dequantized(self) -> Tensor:
        """Return the weights in floating point, computed from the integers by each call."""
        size = self.group_size
        return ops.dequantize(self.packed, self.scale, self.shift, size, self._shape[1])

    @property
    def packed_size(self) -> int:
        """Number of weights that are stored as integers."""
        return self._shape[0] * self._shape[1]

    def scales_of(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the scale and the shift for an input; in mixed precision they are float32.

        Args:
            x: (..., features).
        """
        if not (x.dtype.is_floating and x.dtype.bits == 16):
            return self.scale, self.shift
        shift = None if self.shift is None else ops.astype(self.shift, x.dtype)
        return ops.astype(self.scale, x.dtype), shift

    def product(self, x: Tensor, bias: Parameter | None = None) -> Tensor:
        """Return x @ weight^T + bias.

        Args:
            x: (..., features).
            bias: (rows,). Default: none.
        """
        self.check_features(x, self._shape[1])  # four-bit rows may hold one weight more
        scale, shift = self.scales_of(x)
        size = self.group_size
        return ops.quantized_linear(x, self.packed, scale, shift, bias, size)


@register("layers/quantized_dense")
class QuantizedDense(Packed, Dense):
    r"""Dense layer for inference, whose weights are integers with a scale per group.

    .. math:: y = \phi(x W^\top + b), \qquad W_{ij} = s_{ig} q_{ij} + z_{ig},
        \quad g = \lfloor j / \mathrm{group\_size} \rfloor

    Eight-bit weights have z = 0. `nn.quantization.quantize` creates the layer from a Dense layer; a
    new one has weights of zero, to load values into. Gradients flow to the input and to the bias
    only. `weight` is computed by each access.

    Args:
        in_features: Number of input features.
        out_features: Number of output features.
        bias: Whether to add the bias b. Default: True.
        activation: The activation function phi, by name or as a function. Default: none.
        bits: Bits per weight: 8 or 4. Default: 8.
        group_size: Number of consecutive inputs with one scale; the last group may be smaller.
            Default: 64.

    Shape: (..., in_features) -> (..., out_features).

    Example:
        >>> model, report = nn.quantization.quantize(nn.Sequential(nn.layers.Dense(64, 8)))
        >>> type(model[0]).__name__, model[0].packed.dtype.name
        ('QuantizedDense', 'int8')
    """

    def __init__(
        self,
        in_features: Size,
        out_features: Size,
        bias: bool = True,
        activation: OptionalActivationField = None,
        bits: Bits = 8,
        group_size: Size = 64,
    ) -> None:
        self.in_features = in_features
        self.out_features = out_features
        self.allocate(out_features, in_features, bits, group_size)
        self.bias = Parameter(ops.zeros(out_features), decay=False) if bias else None
        self.activation = None if activation is None else activations.get(activation)

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """The weights in floating point, computed from the integers by each access."""
        return self.dequantized()

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        y = self.product(x, self.bias)
        return y if self.activation is None else self.activation(y)


@register("layers/quantized_embedding")
class QuantizedEmbedding(Packed, Embedding):
    """Embedding for inference, whose vectors are integers with a scale per group.

    `nn.quantization.quantize(model, embeddings=True)` creates it from an Embedding; a new one has
    vectors of zero, to load values into. The vectors receive no gradient.

    Args:
        num_embeddings: Number of vectors, such as the vocabulary size.
        features: Length of each vector.
        padding_index: Index whose vector is zero. Default: none.
        bits: Bits per weight: 8 or 4. Default: 8.
        group_size: Number of consecutive features with one scale; the last group may be smaller.
            Default: 64.

    Shape: (...) of integers -> (..., features).

    Example:
        >>> nn.layers.QuantizedEmbedding(10, 4)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: Size,
        features: Size,
        padding_index: Count | None = None,
        bits: Bits = 8,
        group_size: Size = 64,
    ) -> None:
        check_padding_index(self, padding_index, num_embeddings)
        self.padding_index = padding_index
        self.allocate(num_embeddings, features, bits, group_size)

    def tensor_split(self) -> None:
        """Return None: packed vectors are not split."""

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """The vectors in floating point, computed from the integers by each access."""
        return self.dequantized()

    def lookup(self, x: Tensor) -> Tensor:
        """Return the vectors of the indices."""
        packed, scale = ops.embedding(self.packed, x), ops.embedding(self.scale, x)
        shift = None if self.shift is None else ops.embedding(self.shift, x)
        return ops.dequantize(packed, scale, shift, self.group_size, self._shape[1])

    def attend(self, x: Tensor) -> Tensor:
        """Return the logits over the vocabulary, with the vectors as output weight (tied).

        Args:
            x: Hidden states, (..., features).
        """
        return self.product(x)

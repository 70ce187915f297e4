"""The embedding layer."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Count, InitializerField, Size
from ember_ml.nn import initializers
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register


@register("layers/embedding")
class Embedding(Layer):
    """A vector for each of a number of symbols.

    Args:
        num_embeddings: how many symbols there are.
        features: the length of a vector.
        padding_index: a symbol whose vector is zero and gets no gradient.
        initializer: the first value of the vectors.

    Shape: (...) of integers -> (..., features).

    Example:
        >>> nn.layers.Embedding(10, 4)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: Size,
        features: Size,
        padding_index: Count | None = None,
        initializer: InitializerField = "normal",
    ) -> None:
        if padding_index is not None and padding_index >= num_embeddings:
            raise ArgumentError(
                f"Embedding: padding_index={padding_index} must be below "
                f"num_embeddings={num_embeddings}"
            )
        self.padding_index = padding_index
        self.weight = Parameter(initializers.get(initializer)((num_embeddings, features)))

    def forward(self, x: Tensor) -> Tensor:
        """The vectors of the symbols."""
        if not x.dtype.is_integer:
            raise ArgumentTypeError(f"Embedding takes integers, not {x.dtype}")
        vectors = ops.embedding(self.weight, x)
        if self.padding_index is None:
            return vectors
        return ops.where(ops.expand_dims(x == self.padding_index, -1), 0.0, vectors)

    def attend(self, x: Tensor) -> Tensor:
        """The products of vectors with all embeddings: logits over the symbols (tied weights)."""
        return ops.linear(x, self.weight)

"""The embedding layer."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Count, InitializerField, Size
from ember_ml.nn import initializers
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import WHOLE, Region, TensorSplit
from ember_ml.registry import register


@register("layers/embedding")
class Embedding(Layer):
    """Lookup table that maps integers to learned vectors.

    Args:
        num_embeddings: Number of vectors, such as the vocabulary size.
        features: Length of each vector.
        padding_index: Index whose vector is zero and receives no gradient. Default: none.
        initializer: Initializer of the vectors. Default: "normal".

    Shape: (...) of integers -> (..., features).

    Example:
        >>> nn.layers.Embedding(10, 4)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    region: Region = WHOLE
    """Processes that the vectors are split among."""
    first_index: int = 0
    """Index of the first vector of this process."""

    def __init__(
        self,
        num_embeddings: Size,
        features: Size,
        padding_index: Count | None = None,
        initializer: InitializerField = "normal",
    ) -> None:
        check_padding_index(self, padding_index, num_embeddings)
        self.num_embeddings = num_embeddings
        self.padding_index = padding_index
        self.weight = Parameter(initializers.get(initializer)((num_embeddings, features)))

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors of the indices."""
        if not x.dtype.is_integer:
            raise ArgumentTypeError(
                f"{type(self).__name__}: the input must have an integer dtype, not {x.dtype}"
            )
        vectors = self.lookup(x)
        if self.padding_index is None:
            return vectors
        return ops.where(ops.expand_dims(x == self.padding_index, -1), 0.0, vectors)

    def lookup(self, x: Tensor) -> Tensor:
        """Return the vectors of the indices, that of the padding index too.

        Args:
            x: Integers.
        """
        if self.region.size == 1:
            return ops.embedding(self.weight, x)
        own = x - self.first_index
        is_own = ops.logical_and(own >= 0, own < self.num_embeddings)
        vectors = ops.embedding(self.weight, ops.where(is_own, own, 0))
        return self.region.leave(ops.where(ops.expand_dims(is_own, -1), vectors, 0.0))

    def attend(self, x: Tensor) -> Tensor:
        """Return the logits over the vocabulary, with the embedding as output weight (tied).

        Args:
            x: Hidden states, (..., features).
        """
        return self.region.join(ops.linear(self.region.enter(x), self.weight))

    def tensor_split(self) -> TensorSplit | None:
        """Return the split by vectors, if their number is divisible."""
        return TensorSplit(
            {"weight": Split(0)},
            sizes=("num_embeddings",),
            regions=("",),
            offsets={"first_index": "num_embeddings"},
            is_optional=True,
        )


def check_padding_index(layer: Layer, index: int | None, num_embeddings: int) -> None:
    """Raise an ArgumentError if a padding index is not the index of a vector.

    Args:
        layer: The layer, for the error message.
        index: The padding index, if there is one.
        num_embeddings: Number of vectors.
    """
    if index is not None and index >= num_embeddings:
        raise ArgumentError(
            f"{type(layer).__name__}: padding_index ({index}) must be less than num_embeddings "
            f"({num_embeddings})"
        )

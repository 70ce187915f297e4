"""Features of text."""

from __future__ import annotations

from typing import Literal, Protocol

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import ComponentLike, Count, Size, Unconfigured
from ember_ml.nn.features import FeatureExtractor
from ember_ml.nn.pipeline.feature.base import FixedFeaturePipeline
from ember_ml.registry import create, register


@register("pipelines/token_counts")
class TokenCounts(FeatureExtractor):
    """Number of occurrences of each token in a text (bag of words).

    Args:
        vocab_size: Number of token ids.
        ignore: Token id that is not counted, such as the padding. Default: none.

    Shape: (batch, tokens) -> (batch, vocab_size).

    Example:
        >>> from ember_ml.nn.pipeline import TokenCounts
        >>> TokenCounts(4, ignore=0)([[1, 3, 3], [2, 0, 0]]).tolist()
        [[0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 1.0, 0.0]]
    """

    def __init__(self, vocab_size: Size, ignore: int | None = None) -> None:
        self.vocab_size = vocab_size
        self.ignore = ignore

    def extract(self, x: TensorLike) -> Tensor:
        """Return the counts.

        Args:
            x: Token ids of shape (batch, tokens).
        """
        ids = convert_to_tensor(x)
        if ids.ndim != 2:
            raise ShapeError(f"TokenCounts: expected ids of shape (batch, tokens), got {ids.shape}")
        rows = ids.shape[0]
        offsets = ops.expand_dims(ops.arange(rows), 1) * self.vocab_size
        ones = ops.ones_like(ids, dtype="float32")
        if self.ignore is not None:
            ones = ops.where(ids == self.ignore, 0.0, ones)
        index = ops.reshape(ids + offsets, (-1,))
        counts = ops.scatter(ops.reshape(ones, (-1,)), index, rows * self.vocab_size, "add")
        return ops.reshape(counts, (rows, self.vocab_size))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Token id of each feature."""
        return tuple(f"token_{at}" for at in range(self.vocab_size))


class TokenizerLike(Protocol):
    """Trained tokenizer, such as `ember_ml.data.text.Tokenizer`."""

    vocab_size: int
    pad_id: int | None


@register("pipelines/text")
class TextFeaturePipeline(FixedFeaturePipeline):
    """Features of texts: token ids or token counts. The tokenizer is saved with the pipeline.

    Args:
        tokenizer: Trained `ember_ml.data.text.Tokenizer` with a padding token. Default: `fit`
            trains one.
        kind: Kind of the tokenizer that `fit` trains, as in `Tokenizer.train`. Default: "bpe".
        vocab_size: Maximum number of its tokens. Default: 1000, or that of the given tokenizer.
        lowercase: Whether it converts texts to lower case. Default: False.
        max_length: Number of tokens to cut or pad all texts to. Default: the longest text of each
            batch.
        output: "ids" (batch, tokens) or "counts" (batch, vocab_size). Default: "ids".
        pretrained: Whether a tokenizer was given, which `fit` does not replace.
        pad_id: Token id at padding; that of the tokenizer, if one is given. Default: 0.

    Example:
        >>> from ember_ml.nn.pipeline import TextFeaturePipeline
        >>> texts = ["red green", "green blue blue"]
        >>> pipeline = TextFeaturePipeline(kind="char", vocab_size=30, output="counts").fit(texts)
        >>> pipeline.run(texts).shape
        (2, 30)
    """

    def __init__(
        self,
        tokenizer: Unconfigured[TokenizerLike | None] = None,
        kind: Literal["bpe", "byte_bpe", "char_bpe", "wordpiece", "char"] = "bpe",
        vocab_size: Size | None = None,
        lowercase: bool = False,
        max_length: Size | None = None,
        output: Literal["ids", "counts"] = "ids",
        pretrained: bool = False,
        pad_id: Count = 0,
    ) -> None:
        super().__init__("text")
        if tokenizer is not None:
            vocab_size, pad_id = tokenizer.vocab_size, tokenizer.pad_id or 0
        shared = {
            "kind": kind,
            "vocab_size": vocab_size or 1000,
            "lowercase": lowercase,
            "max_length": max_length,
            "pretrained": pretrained or tokenizer is not None,
            "pad_id": pad_id,
        }
        # by name: files and tokenizers belong to data, which nn does not import
        stages: dict[str, ComponentLike] = {
            "tokenize": create("pipelines/tokenize", tokenizer, **shared)
        }
        if output == "counts":
            stages["counts"] = TokenCounts(vocab_size or 1000, ignore=pad_id)
        self._set_stages(stages, {**shared, "output": output})

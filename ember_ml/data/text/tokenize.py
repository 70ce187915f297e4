"""Tokenization as a stage of pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import Count, Size, Unconfigured
from ember_ml.data.conversion import to_host
from ember_ml.data.text.packing import pad
from ember_ml.data.text.tokenizer import Tokenizer
from ember_ml.nn.features.base import FeatureExtractor, NotFittedError
from ember_ml.registry import register


@register("pipelines/tokenize")
class Tokenize(FeatureExtractor):
    """Token ids of texts, padded to one length; saved together with the tokenizer.

    Without a tokenizer, `fit` trains one, so that a `TrainingPipeline` trains it on the training
    data only.

    Args:
        tokenizer: Trained `Tokenizer` with a padding token. Default: `fit` trains one.
        kind: Kind of the tokenizer that `fit` trains, as in `Tokenizer.train`. Default: "bpe".
        vocab_size: Maximum number of its tokens. Default: 1000.
        lowercase: Whether it converts texts to lower case. Default: False.
        max_length: Number of tokens to cut or pad all texts to. Default: the longest text of each
            batch.
        pretrained: Whether a tokenizer was given, which `fit` does not replace.
        pad_id: Token id at padding; that of the tokenizer, if one is given. Default: 0.

    Shape: list of texts -> (batch, tokens).

    Example:
        >>> from ember_ml.data.text import Tokenize, Tokenizer
        >>> tokenizer = Tokenizer.train(["a b", "b c"], "char")
        >>> ids = Tokenize(tokenizer)(["a b", "c"])
        >>> ids.shape
        (2, 3)
        >>> Tokenize(tokenizer).inverse(ids)
        ['a b', 'c']
    """

    def __init__(
        self,
        tokenizer: Unconfigured[Tokenizer | None] = None,
        kind: Literal["bpe", "byte_bpe", "char_bpe", "wordpiece", "char"] = "bpe",
        vocab_size: Size | None = 1000,
        lowercase: bool = False,
        max_length: Size | None = None,
        pretrained: bool = False,
        pad_id: Count = 0,
    ) -> None:
        self.kind = kind
        self.vocab_size = vocab_size
        self.lowercase = lowercase
        self.max_length = max_length
        self.pretrained = pretrained or tokenizer is not None
        self.pad_id = pad_id
        self.tokenizer: Tokenizer | None = None
        if tokenizer is not None:
            self._set(tokenizer)

    def _set(self, tokenizer: Tokenizer) -> None:
        if not isinstance(tokenizer, Tokenizer):
            raise ArgumentTypeError(f"Tokenize: expected a Tokenizer, not {tokenizer!r:.60}")
        if tokenizer.pad_id is None:
            raise ArgumentError(
                "Tokenize: the tokenizer has no padding token; train it with a special token "
                '{"pad": "<pad>"}'
            )
        self.tokenizer = tokenizer
        self.pad_id = tokenizer.pad_id

    @property
    def config(self) -> Any:
        """Config, which says whether a tokenizer was given."""
        return self._config

    @config.setter
    def config(self, config: Any) -> None:
        fields = {"pretrained": self.pretrained, "pad_id": self.pad_id}
        self._config = type(config)(**{**dict(config), **fields})

    @property
    def needs_fit(self) -> bool:
        """Whether `fit` trains the tokenizer: not if one was given."""
        return not self.pretrained

    @property
    def is_fitted(self) -> bool:
        """Whether there is a tokenizer."""
        return self.tokenizer is not None

    def fit(self, data: Any) -> Self:
        """Train the tokenizer on texts, unless one was given; return the module.

        Args:
            data: List of texts, or an iterable of such batches.
        """
        if self.needs_fit:
            self._set(
                Tokenizer.train(_texts(data), self.kind, self.vocab_size, lowercase=self.lowercase)
            )
        return self

    def partial_fit(self, batch: Any) -> Self:
        """Raise an error unless a tokenizer was given: it cannot be trained batch by batch.

        Args:
            batch: List of texts.
        """
        if self.needs_fit:
            raise NotImplementedError("Tokenize: a tokenizer is trained on all texts: call fit")
        return self

    def extract(self, x: Any) -> Tensor:
        """Return the token ids.

        Args:
            x: List of texts.
        """
        tokenizer = self._fitted()
        texts = list(x)
        if not all(isinstance(text, str) for text in texts):
            raise ArgumentTypeError(f"Tokenize: expected a list of texts, not {x!r:.60}")
        ids = tokenizer.encode_batch(texts)
        batch, _ = pad(ids, self.pad_id, length=self.max_length, truncate=True)
        return convert_to_tensor(batch)

    def inverse(self, x: TensorLike) -> Any:
        """Return the texts of token ids.

        Args:
            x: Token ids of shape (batch, tokens).
        """
        return self._fitted().decode_batch(to_host(x).tolist())

    def _fitted(self) -> Tokenizer:
        if self.tokenizer is None:
            raise NotFittedError("Tokenize has no tokenizer: pass one, or call fit(texts) first")
        return self.tokenizer

    def extra_files(self) -> dict[str, bytes]:
        """Return the files of the tokenizer."""
        return {} if self.tokenizer is None else self.tokenizer.to_files()

    def load_extra_files(self, files: Mapping[str, bytes]) -> None:
        """Restore the tokenizer.

        Args:
            files: Files that `extra_files` returned.
        """
        tokenizer = Tokenizer.from_files(files) if files else None
        if tokenizer is None:
            self.tokenizer = None
        else:
            self._set(tokenizer)


def _texts(data: Any) -> Iterator[str]:
    """Yield the texts of nested iterables."""
    for part in data:
        if isinstance(part, str):
            yield part
        else:
            yield from _texts(part[0] if isinstance(part, tuple) and part else part)

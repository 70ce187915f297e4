"""Sampling of tokens from logits."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor


class Sampler:
    """Sampler of tokens from logits: (batch, vocab_size) -> (batch,).

    Args:
        temperature: Divisor of the logits; 0 takes the most likely token.
        top_k: Sample from this number of most likely tokens only.
        top_p: Sample from the most likely tokens whose probabilities add up to this only.
        seed: Random seed. The same seed samples the same tokens on every backend.

    Example:
        >>> from ember_ml.nn.models.sampling import Sampler
        >>> Sampler()(tensor.array([[0.0, 2.0, 1.0]])).tolist()
        [1]
    """

    def __init__(
        self,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> None:
        if not temperature >= 0:
            raise ArgumentError(f"generate: temperature={temperature} must be at least 0")
        if top_k is not None and top_k < 1:
            raise ArgumentError(f"generate: top_k={top_k} must be at least 1")
        if top_p is not None and not 0 < top_p <= 1:
            raise ArgumentError(f"generate: top_p={top_p} must be above 0 and at most 1")
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.source = ops.random.default_generator() if seed is None else ops.random.Generator(seed)

    def __call__(self, logits: Tensor) -> Tensor:
        """Return a token for each row of logits."""
        if self.temperature == 0:
            return ops.argmax(logits, axis=-1)
        logits = logits.astype("float32") / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            order = ops.argsort(-logits, axis=-1)  # by rank: ties must not admit more than k
            ranks = ops.argsort(order, axis=-1)
            logits = ops.where(ranks < self.top_k, logits, -float("inf"))
        if self.top_p is not None:
            logits = self._nucleus(logits, self.top_p)
        return ops.random.categorical(logits, seed=self.source)

    def _nucleus(self, logits: Tensor, top_p: float) -> Tensor:
        """Mask all tokens except the most likely ones that make up `top_p`."""
        order = ops.flip(ops.sort(logits, axis=-1), axis=-1)
        odds = ops.softmax(order, axis=-1)
        before = ops.cumsum(odds, axis=-1) - odds  # always keeps the most likely token
        least = ops.min(ops.where(before < top_p, order, float("inf")), axis=-1, keepdims=True)
        return ops.where(logits < least, -float("inf"), logits)

"""How a token is drawn from logits."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor


class Sampler:
    """Draws a token from logits, (batch, vocab_size) -> (batch,).

    Args:
        temperature: 0 takes the likeliest.
        top_k: from so many of the likeliest.
        top_p: from the likeliest whose probabilities add up to this.
        seed: the same seed draws the same, on every backend.

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
        """The tokens."""
        if self.temperature == 0:
            return ops.argmax(logits, axis=-1)
        logits = logits.astype("float32") / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            order = ops.argsort(-logits, axis=-1)  # by rank, so that ties do not let more in
            ranks = ops.argsort(order, axis=-1)
            logits = ops.where(ranks < self.top_k, logits, -float("inf"))
        if self.top_p is not None:
            logits = self._nucleus(logits, self.top_p)
        return ops.random.categorical(logits, seed=self.source)

    def _nucleus(self, logits: Tensor, share: float) -> Tensor:
        """Without the tokens beyond the likeliest that make up the share."""
        order = ops.flip(ops.sort(logits, axis=-1), axis=-1)
        odds = ops.softmax(order, axis=-1)
        before = ops.cumsum(odds, axis=-1) - odds  # the likeliest token stays, whatever the share
        least = ops.min(ops.where(before < share, order, float("inf")), axis=-1, keepdims=True)
        return ops.where(logits < least, -float("inf"), logits)

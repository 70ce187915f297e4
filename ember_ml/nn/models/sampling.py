"""Sampling of tokens from logits."""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Sequence

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import Tensor

_COLD = 1e-20
"""Temperature below which logits of usual size may overflow when they are divided by it."""
_COLDEST = 1e-30
"""Smallest divisor of logits; lower ones exceed the range of float32."""
_CHUNK = 16
"""Number of draws of each row that are moved to the device at once."""


class Sampler:
    """Sampler of tokens from logits: (batch, vocab_size) -> (batch,).

    Each row has a random stream of its own: its tokens do not depend on the other rows. One draw
    is used for each token.

    Args:
        temperature: Divisor of the logits; 0 takes the most likely token.
        top_k: Sample from this number of most likely tokens only.
        top_p: Sample from the most likely tokens whose probabilities add up to this only.
        seed: Random seed, from which the seeds of the rows are derived (`row_seed`), or one seed
            for each row. The same seed samples the same tokens on every backend.
        min_p: Sample only from tokens with at least this fraction of the highest probability.

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
        seed: int | Sequence[int] | None = None,
        min_p: float | None = None,
    ) -> None:
        check_sampling(temperature, top_k, top_p, min_p)
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.min_p = min_p
        self.streams = Streams(seed)

    def __call__(self, logits: Tensor) -> Tensor:
        """Return a token for each row of logits."""
        if self.temperature == 0:
            return ops.argmax(logits, axis=-1)
        return draw(self.probabilities(logits), self.streams.next(logits))

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the probabilities of the tokens: (..., vocab_size), float32."""
        if self.temperature == 0:
            best = ops.argmax(logits, axis=-1)
            return ops.one_hot(best, logits.shape[-1]).astype("float32")
        return ops.softmax(self.filtered(logits), axis=-1)

    def filtered(self, logits: Tensor) -> Tensor:
        """Return the logits divided by the temperature, -inf for tokens that are not sampled."""
        logits = logits.astype("float32")
        if self.temperature < _COLD:  # differences to the maximum do not overflow to inf
            logits = logits - ops.max(logits, axis=-1, keepdims=True)
        logits = logits / max(self.temperature, _COLDEST)
        if self.top_k is None or self.top_k >= logits.shape[-1]:
            return self._likely(logits)
        values, indices = ops.topk(logits, self.top_k)  # exactly k, also of equal logits
        never = ops.full_like(logits, -float("inf"))
        return ops.put_along_axis(never, indices, self._likely(values), axis=-1)

    def _likely(self, logits: Tensor) -> Tensor:
        """Mask the tokens that `top_p` and `min_p` exclude."""
        if self.top_p is not None and self.top_p < 1:
            logits = self._nucleus(logits, self.top_p)
        if self.min_p is not None:
            odds = ops.softmax(logits, axis=-1)
            least = self.min_p * ops.max(odds, axis=-1, keepdims=True)
            logits = ops.where(odds < least, -float("inf"), logits)
        return logits

    def _nucleus(self, logits: Tensor, top_p: float) -> Tensor:
        """Mask all tokens except the most likely ones that make up `top_p`."""
        order = ops.flip(ops.sort(logits, axis=-1), axis=-1)
        odds = ops.softmax(order, axis=-1)
        before = ops.cumsum(odds, axis=-1) - odds  # always keeps the most likely token
        least = ops.min(ops.where(before < top_p, order, float("inf")), axis=-1, keepdims=True)
        return ops.where(logits < least, -float("inf"), logits)


def check_sampling(
    temperature: float, top_k: int | None, top_p: float | None, min_p: float | None
) -> None:
    """Raise an error if an option of `Sampler` is out of range."""
    check_number("temperature", temperature)
    for name, value in (("top_k", top_k), ("top_p", top_p), ("min_p", min_p)):
        if value is not None:
            check_number(name, value, whole=name == "top_k")
    if not 0 <= temperature < float("inf"):
        raise ArgumentError(f"generate: temperature={temperature} must be at least 0, and finite")
    if top_k is not None and top_k < 1:
        raise ArgumentError(f"generate: top_k={top_k} must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ArgumentError(f"generate: top_p={top_p} must be above 0 and at most 1")
    if min_p is not None and not 0 <= min_p <= 1:
        raise ArgumentError(f"generate: min_p={min_p} must be between 0 and 1")


def check_number(name: str, value: object, whole: bool = False) -> None:
    """Raise an ArgumentTypeError unless an option is a number.

    Args:
        name: Name of the option.
        value: Its value.
        whole: Whether it must be an integer. Default: False.
    """
    if not isinstance(value, numbers.Integral if whole else numbers.Real):
        what = "an integer" if whole else "a number"
        raise ArgumentTypeError(f"generate: {name} must be {what}, not {value!r:.60}")


def draw(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Return the token of each row at which the cumulative probability exceeds a random number.

    Args:
        probabilities: Tensor of shape (batch, vocab_size). Rows need not add up to 1.
        uniforms: Random numbers from [0, 1) of shape (batch,).
    """
    cumulative = ops.cumsum(probabilities, axis=-1)
    exceeds = cumulative > uniforms[:, None] * cumulative[:, -1:]
    # A parallel sum need not be monotonic: a token of probability 0 is never taken.
    return ops.argmax(ops.logical_and(exceeds, probabilities > 0).astype("int32"), axis=-1)


def row_seed(seed: int, row: int) -> int:
    """Return the seed with which a prompt alone samples the tokens of a row of a batch.

    Args:
        seed: Seed of the batch.
        row: Index of the row. The seed of row 0 is that of the batch.

    Example:
        >>> from ember_ml.nn.models.sampling import row_seed
        >>> model = nn.models.LanguageModel("gru", 8, 16)
        >>> both = model.generate([[1], [2]], 4, temperature=1.0, seed=3)
        >>> alone = model.generate([2], 4, temperature=1.0, seed=row_seed(3, 1))
        >>> both[1].tolist() == alone.tolist()
        True
    """
    if row == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed}:{row}".encode()).digest()[:16], "little")


class Streams:
    """Random numbers from [0, 1) for each row of a batch, independent of the other rows.

    Args:
        seed: Seed of the batch, or one for each row. Default: from the default generator.
    """

    def __init__(self, seed: int | Sequence[int] | None) -> None:
        if seed is None:
            seed = ops.random.default_generator().stream.fresh_seed()
        self.seed = seed
        self.rows: list[ops.random.Generator] = []
        self.chunk: Tensor | None = None
        self.at = 0

    def next(self, like: Tensor) -> Tensor:
        """Return one number for each row of a tensor, on its device: (batch,)."""
        if self.chunk is None or self.at == _CHUNK:
            rows = like.shape[0]
            values = [self.take_row(row, rows, _CHUNK) for row in range(rows)]
            self.chunk = convert_to_tensor(
                values, dtype="float32", device=like.device, backend=like.backend
            )
            self.at = 0
        self.at += 1
        return self.chunk[:, self.at - 1]

    def take_row(self, row: int, rows: int, count: int) -> list[float]:
        """Return the next numbers of one row.

        Args:
            row: Index of the row.
            rows: Number of rows, the same in all calls.
            count: Number of numbers.
        """
        if not self.rows:
            self.rows = [ops.random.Generator(seed) for seed in self._seeds(rows)]
        values = self.rows[row].stream.uniform((count,), 0.0, 1.0, dtype="float32").tolist()
        return list(map(float, values))

    def _seeds(self, rows: int) -> list[int]:
        if not isinstance(self.seed, Sequence):
            return [row_seed(self.seed, row) for row in range(rows)]
        if len(self.seed) != rows:
            raise ArgumentError(
                f"generate: seed has {len(self.seed)} values for {rows} rows; pass one for each "
                "row, or one integer"
            )
        return list(self.seed)

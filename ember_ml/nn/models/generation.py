"""Generation of sequences token by token."""

from __future__ import annotations

from collections.abc import Generator as PythonGenerator
from collections.abc import Iterable, Iterator
from operator import index

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.nn.models.base import Model
from ember_ml.nn.models.sampling import Sampler
from ember_ml.nn.module import inference_mode
from ember_ml.nn.sequence_module import State

Logits = PythonGenerator[Tensor, Tensor, None]
"""Yields the logits of the next token, and receives the token that was chosen."""


class Generator(Model):
    """Model of tokens that can continue a sequence.

    Subclasses define `forward`, `initial_state` and `step` for tokens.
    """

    default_loss = "cross_entropy"
    max_length: int | None = None
    """Maximum sequence length, if there is one."""
    vocab_size: int

    def initial_state(self, batch: int) -> State:
        """Return the state before the first token.

        Args:
            batch: Batch size.
        """
        raise NotImplementedError(f"{type(self).__name__} has no recurrent form")

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the logits after one more token, (batch, vocab_size), and the next state.

        Args:
            tokens: Integer tensor of shape (batch,).
            state: The result of `initial_state` or of the last step.
        """
        raise NotImplementedError(f"{type(self).__name__} has no recurrent form")

    def generate(
        self,
        prompt: TensorLike,
        max_new_tokens: int = 32,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop_tokens: int | Iterable[int] = (),
        seed: int | None = None,
        cache: bool = True,
    ) -> Tensor:
        """Return the prompt and its continuation: (batch, time), or (time,) like the prompt.

        Args:
            prompt: Integers of shape (batch, time) or (time,), with at least one token.
            max_new_tokens: Maximum number of tokens to add.
            temperature: 0 takes the most likely token; 1 samples from the model's distribution;
                values below 1 prefer likely tokens.
            top_k: Sample from this number of most likely tokens only.
            top_p: Sample from the most likely tokens whose probabilities add up to this only.
            stop_tokens: Tokens that end a sequence. The rest of the sequence repeats the stop
                token.
            seed: Random seed. The same seed samples the same tokens on every backend.
            cache: Whether to generate step by step from a state or KV cache. False recomputes the
                whole sequence for each token.

        Example:
            >>> model = nn.models.LanguageModel("gru", 8, 16)
            >>> model.generate([1, 2], 3, temperature=1.0, top_k=4, seed=0).shape
            (5,)
        """
        tokens = self._prompt(prompt)
        new = self.stream(
            tokens,
            max_new_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            stop_tokens=stop_tokens,
            seed=seed,
            cache=cache,
        )
        sequence = ops.concat([tokens, *(x[:, None] for x in new)], axis=1)
        return sequence if convert_to_tensor(prompt).ndim == 2 else sequence[0]

    def stream(
        self,
        prompt: TensorLike,
        max_new_tokens: int = 32,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop_tokens: int | Iterable[int] = (),
        seed: int | None = None,
        cache: bool = True,
    ) -> Iterator[Tensor]:
        """Yield the tokens that follow a prompt, of shape (batch,) each, as they are generated.

        The arguments are those of `generate`.

        Example:
            >>> model = nn.models.LanguageModel("gru", 8, 16)
            >>> [int(token[0]) < 8 for token in model.stream([1, 2], 3)]
            [True, True, True]
        """
        sampler = Sampler(temperature, top_k, top_p, seed)
        stops = stop_tokens if isinstance(stop_tokens, Iterable) else (stop_tokens,)
        stops = [index(stop) for stop in stops]
        tokens = self._prompt(prompt)
        max_new_tokens = index(max_new_tokens)
        if max_new_tokens < 0:
            raise ArgumentError(
                f"{type(self).__name__}.generate: max_new_tokens={max_new_tokens} must be at least "
                "0"
            )
        total = tokens.shape[1] + max_new_tokens
        if self.max_length is not None and total > self.max_length:
            raise ArgumentError(
                f"{type(self).__name__}.generate: {tokens.shape[1]} tokens and {max_new_tokens} "
                f"new ones exceed max_length={self.max_length}"
            )
        return self._tokens(tokens, max_new_tokens, sampler, stops, cache)

    def _tokens(
        self, tokens: Tensor, count: int, sampler: Sampler, stops: list[int], cache: bool
    ) -> Iterator[Tensor]:
        logits = self._logits_by_steps(tokens) if cache else self._logits_recomputed(tokens)
        scores = next(logits)
        ended: Tensor | None = None
        last = tokens[:, -1]
        for left in range(count, 0, -1):
            token = sampler(scores)
            if stops:
                token = token if ended is None else ops.where(ended, last, token)
                ended = _is_any(token, stops)
            last = token
            yield token
            if left == 1 or (ended is not None and bool(ops.all(ended))):
                return
            scores = logits.send(token)

    def _logits_by_steps(self, tokens: Tensor) -> Logits:
        """Yield the logits after the prompt, then after each token sent, from a state."""
        parts = list(self.modules())
        with inference_mode(parts):  # not across a yield, where the caller would see the mode
            state = self.initial_state(tokens.shape[0])
            for at in range(tokens.shape[1]):
                logits, state = self.step(tokens[:, at], state)
        while True:
            token = yield logits
            with inference_mode(parts):
                logits, state = self.step(token, state)

    def _logits_recomputed(self, tokens: Tensor) -> Logits:
        """Yield the logits after the prompt, then after each token sent, from all tokens."""
        parts = list(self.modules())
        while True:
            with inference_mode(parts):
                logits = self(tokens)[:, -1]
            token = yield logits
            tokens = ops.concat([tokens, token[:, None]], axis=1)

    def _prompt(self, prompt: TensorLike) -> Tensor:
        """Return the prompt as integers of shape (batch, time), on the model's backend."""
        like = self.parameters()[0]
        tokens = convert_to_tensor(prompt, backend=like.backend)
        if tokens.ndim not in (1, 2) or not tokens.size:
            raise ShapeError(
                f"{type(self).__name__}.generate: a prompt must have shape (batch, time) or "
                f"(time,), and at least one token; got {tokens.shape}"
            )
        if not tokens.dtype.is_integer:
            raise ArgumentTypeError(
                f"{type(self).__name__}.generate: a prompt must have integers, not {tokens.dtype}"
            )
        low, high = int(ops.min(tokens)), int(ops.max(tokens))
        if low < 0 or high >= self.vocab_size:
            raise ArgumentError(
                f"{type(self).__name__}.generate: the prompt has tokens from {low} to {high}; the "
                f"vocabulary has those from 0 to {self.vocab_size - 1}"
            )
        return tokens if tokens.ndim == 2 else tokens[None]


def _is_any(token: Tensor, stops: list[int]) -> Tensor:
    """Return whether each token is one of the stop tokens."""
    is_stop = token == stops[0]
    for stop in stops[1:]:
        is_stop = ops.logical_or(is_stop, token == stop)
    return is_stop

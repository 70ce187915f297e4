"""Sequences written token by token."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import index
from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.models.base import Model
from ember_ml.nn.models.sampling import Sampler
from ember_ml.nn.module import inference_mode
from ember_ml.nn.sequence_module import State


class Generator(Model):
    """A model of tokens that can go on with a sequence.

    Subclasses write `forward`, `initial_state` and `step`, of tokens.
    """

    default_loss = "cross_entropy"
    max_length: int | None = None
    """The most tokens that it can see, if there is a bound."""
    vocab_size: int

    def initial_state(self, batch: int) -> State:
        """The state before the first token."""
        raise NotImplementedError(f"{type(self).__name__} has no form that goes step by step")

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """The logits after one more token each, (batch, vocab_size), and the state."""
        raise NotImplementedError(f"{type(self).__name__} has no form that goes step by step")

    def generate(
        self,
        prompt: Any,
        max_new_tokens: int = 32,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop_tokens: int | Iterable[int] = (),
        seed: int | None = None,
        cache: bool = True,
    ) -> Tensor:
        """The prompt and what follows it: (batch, time), or (time,) for a prompt of that shape.

        Args:
            prompt: (batch, time) or (time,) of integers, at least one a sequence.
            max_new_tokens: how many tokens to add at the most.
            temperature: 0 takes the likeliest token; 1 draws from the model's distribution; below
                1 the likely ones come more often.
            top_k: draw from so many of the likeliest tokens.
            top_p: draw from the likeliest tokens whose probabilities add up to this.
            stop_tokens: tokens after which a sequence ends; it is filled up with the one it met.
            seed: the same seed draws the same tokens, on every backend.
            cache: whether to go step by step from a state, in constant memory if the layers have
                states of constant size; else each token costs a pass over all before.

        Example:
            >>> model = nn.models.LanguageModel("gru", 8, 16)
            >>> model.generate([1, 2], 3, temperature=1.0, top_k=4, seed=0).shape
            (5,)
        """
        tokens = self._prompt(prompt)
        new = list(
            self.stream(
                tokens,
                max_new_tokens,
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                stop_tokens=stop_tokens,
                seed=seed,
                cache=cache,
            )
        )
        whole = ops.concat([tokens, *(x[:, None] for x in new)], axis=1)
        return whole if convert_to_tensor(prompt).ndim == 2 else whole[0]

    def stream(
        self,
        prompt: Any,
        max_new_tokens: int = 32,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop_tokens: int | Iterable[int] = (),
        seed: int | None = None,
        cache: bool = True,
    ) -> Iterator[Tensor]:
        """The tokens that follow a prompt, (batch,) each, as soon as they are known.

        The arguments are those of `generate`.

        Example:
            >>> model = nn.models.LanguageModel("gru", 8, 16)
            >>> [int(token[0]) < 8 for token in model.stream([1, 2], 3)]
            [True, True, True]
        """
        sampler = Sampler(temperature, top_k, top_p, seed)
        given = stop_tokens if isinstance(stop_tokens, Iterable) else (stop_tokens,)
        stops = [index(stop) for stop in given]
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
                f"new ones are more than max_length={self.max_length}"
            )
        return self._tokens(tokens, max_new_tokens, sampler, stops, cache)

    def _tokens(
        self, tokens: Tensor, count: int, sampler: Sampler, stops: list[int], cache: bool
    ) -> Iterator[Tensor]:
        logits = self._by_steps(tokens) if cache else self._anew(tokens)
        scores = next(logits)
        ended: Tensor | None = None
        last = tokens[:, -1]
        for left in range(count, 0, -1):
            token = sampler(scores)
            if stops:
                token = token if ended is None else ops.where(ended, last, token)
                ended = _among(token, stops)
            last = token
            yield token
            if left == 1 or (ended is not None and bool(ops.all(ended))):
                return
            scores = logits.send(token)

    def _by_steps(self, tokens: Tensor) -> Any:
        """The logits after the prompt, then after each token sent."""
        parts = list(self.modules())
        with inference_mode(
            parts
        ):  # never across a yield, or whoever reads the tokens would see it
            state = self.initial_state(tokens.shape[0])
            for at in range(tokens.shape[1]):
                logits, state = self.step(tokens[:, at], state)
        while True:
            token = yield logits
            with inference_mode(parts):
                logits, state = self.step(token, state)

    def _anew(self, tokens: Tensor) -> Any:
        """The same, from the whole sequence each time."""
        parts = list(self.modules())
        while True:
            with inference_mode(parts):
                logits = self(tokens)[:, -1]
            token = yield logits
            tokens = ops.concat([tokens, token[:, None]], axis=1)

    def _prompt(self, prompt: Any) -> Tensor:
        """(batch, time) of integers, on the model's backend."""
        like = self.parameters()[0]
        tokens = convert_to_tensor(prompt, backend=like.backend)
        if tokens.ndim not in (1, 2) or not tokens.size:
            raise ShapeError(
                f"{type(self).__name__}.generate: a prompt is (batch, time) or (time,), with at "
                f"least one token; not {tokens.shape}"
            )
        if not tokens.dtype.is_integer:
            raise ArgumentTypeError(
                f"{type(self).__name__}.generate: a prompt is of integers, not {tokens.dtype}"
            )
        low, high = int(ops.min(tokens)), int(ops.max(tokens))
        if low < 0 or high >= self.vocab_size:
            raise ArgumentError(
                f"{type(self).__name__}.generate: the prompt has tokens from {low} to {high}; "
                f"there are those from 0 to {self.vocab_size - 1}"
            )
        return tokens if tokens.ndim == 2 else tokens[None]


def _among(token: Tensor, stops: list[int]) -> Tensor:
    """Whether each is one of the tokens that end a sequence."""
    found = token == stops[0]
    for stop in stops[1:]:
        found = ops.logical_or(found, token == stop)
    return found

"""Generation of sequences token by token."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Unpack, overload

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.nn.models.base import Model
from ember_ml.nn.models.decoding import beams, speculative, text
from ember_ml.nn.models.decoding.call import Call
from ember_ml.nn.models.decoding.loop import SamplingLoop
from ember_ml.nn.models.decoding.options import GenerationOptions, TensorOptions
from ember_ml.nn.models.decoding.result import Generation
from ember_ml.nn.models.decoding.tokenizers import TextTokenizer, read_tokenizer
from ember_ml.nn.sequence_module import State, StatefulCall, hold


class Generator(StatefulCall, Model):
    """Model of tokens that can continue a sequence.

    Subclasses define `forward`, `initial_state` and `step` for tokens.
    """

    default_loss = "cross_entropy"
    max_length: int | None = None
    """Maximum sequence length, if there is one."""
    vocab_size: int
    tokenizer: TextTokenizer | None = None
    """Tokenizer of the model, such as a `data.text.Tokenizer`; saved and loaded with it."""

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

    def prefill(
        self, tokens: Tensor, mask: Tensor | None = None, state: State | None = None
    ) -> tuple[Tensor, State]:
        """Return the logits after the last real token, (batch, vocab_size), and the state.

        The default calls `step` for each token.

        Args:
            tokens: Prompts, integers of shape (batch, time), at least one real token in each row.
            mask: Padding mask of shape (batch, time), False at padding, which must come last.
            state: State before the first token. Default: the start of the sequence.
        """
        state = self.initial_state(tokens.shape[0]) if state is None else state
        logits, state = self.step(tokens[:, 0], state)
        for at in range(1, tokens.shape[1]):
            after = self.step(tokens[:, at], state)
            logits, state = after if mask is None else hold(mask[:, at], after, (logits, state))
        return logits, state

    @overload
    def generate(
        self,
        prompt: TensorLike,
        max_new_tokens: int = 32,
        *,
        mask: None = None,
        num_samples: None = None,
        log_probs: Literal[False] = False,
        **options: Unpack[TensorOptions],
    ) -> Tensor: ...
    @overload
    def generate(
        self,
        prompt: TensorLike,
        max_new_tokens: int = 32,
        *,
        mask: TensorLike | None = None,
        num_samples: int | None = None,
        log_probs: bool = False,
        **options: Unpack[GenerationOptions],
    ) -> Generation: ...
    def generate(
        self,
        prompt: TensorLike,
        max_new_tokens: int = 32,
        *,
        mask: TensorLike | None = None,
        num_samples: int | None = None,
        log_probs: bool = False,
        **options: Unpack[GenerationOptions],
    ) -> Tensor | Generation:
        """Return the prompt and its continuation: (batch, time), or (time,) like the prompt.

        The result is a `Generation` with lists instead of a tensor for prompts of unequal length,
        and with `mask`, `num_samples`, `log_probs`, `allowed` or `stop`. `complete` always returns
        a `Generation`.

        Args:
            prompt: Integers of shape (batch, time) or (time,), with at least one token; or a list
                of lists or arrays of any lengths.
            max_new_tokens: Maximum number of tokens to add.
            mask: Padding mask of shape (batch, time), False at the right of shorter prompts.
            num_samples: Number of sequences for each prompt; with beams, the best ones.
            log_probs: Whether to return the log-probability of each new token.
            options: Further options; see `GenerationOptions`.

        Example:
            >>> model = nn.models.LanguageModel("gru", 8, 16)
            >>> model.generate([1, 2], 3, temperature=1.0, top_k=4, seed=0).shape
            (5,)
            >>> len(model.generate([[1, 2], [3]], 3, num_samples=2).tokens)
            4
        """
        call = Call(self, prompt, max_new_tokens, mask, num_samples, options)
        if log_probs or num_samples is not None or call.has_lists:
            return _complete(call, log_probs)
        tokens = call.prompts.tokens
        if call.options.num_beams > 1 or call.options.draft is not None:
            new = [_filled(_complete(call, False).tokens, tokens)]
        else:
            new = [step.tokens[:, None] for step in SamplingLoop(call)]
        sequence = ops.concat([tokens, *new], axis=1)
        return sequence[0] if call.prompts.is_single else sequence

    def complete(
        self,
        prompts: TensorLike,
        max_new_tokens: int = 32,
        *,
        mask: TensorLike | None = None,
        num_samples: int | None = None,
        log_probs: bool = False,
        **options: Unpack[GenerationOptions],
    ) -> Generation:
        """Return the continuations of prompts as lists, with the reasons why they ended.

        The arguments are those of `generate`.

        Example:
            >>> model = nn.models.LanguageModel("gru", 8, 16)
            >>> result = model.complete([[1, 2], [3]], 4, allowed=[[5, 6], [7]])
            >>> all(tokens in ([5, 6], [7]) for tokens in result.tokens)
            True
        """
        call = Call(self, prompts, max_new_tokens, mask, num_samples, options)
        return _complete(call, log_probs)

    def stream(
        self,
        prompt: TensorLike,
        max_new_tokens: int = 32,
        *,
        mask: TensorLike | None = None,
        num_samples: int | None = None,
        **options: Unpack[GenerationOptions],
    ) -> Iterator[Tensor]:
        """Yield the tokens that follow a prompt, of shape (batch,) each, as they are generated.

        The arguments are those of `generate`. A row that has ended repeats its last token. With
        `draft` there is one prompt. Beam search knows its tokens at the end only.

        Example:
            >>> model = nn.models.LanguageModel("gru", 8, 16)
            >>> [int(token[0]) < 8 for token in model.stream([1, 2], 3)]
            [True, True, True]
        """
        call = Call(self, prompt, max_new_tokens, mask, num_samples, options)
        if call.options.num_beams > 1:
            raise ArgumentError(
                f"{call.name}.stream: num_beams={call.options.num_beams}: beam search knows its "
                "tokens at the end only; use generate"
            )
        if call.options.draft is None:
            return (step.tokens for step in SamplingLoop(call))
        if len(call.order) > 1:
            raise ArgumentError(
                f"{call.name}.stream: draft takes one prompt, not {len(call.order)} rows; use "
                "generate"
            )
        like = call.prompts.tokens
        return (_filled([[token]], like)[:, 0] for _, token in speculative.SpeculativeLoop(call))

    @overload
    def generate_text(
        self, prompt: str, max_new_tokens: int = 128, **options: Unpack[GenerationOptions]
    ) -> str: ...
    @overload
    def generate_text(
        self,
        prompt: list[str] | tuple[str, ...],
        max_new_tokens: int = 128,
        **options: Unpack[GenerationOptions],
    ) -> list[str]: ...
    def generate_text(
        self,
        prompt: str | list[str] | tuple[str, ...],
        max_new_tokens: int = 128,
        **options: Unpack[GenerationOptions],
    ) -> str | list[str]:
        """Return the text that follows a prompt, or each of several prompts.

        The model needs a `tokenizer`. Its token for the end of a text ends the result, unless `eos`
        is given.

        Args:
            prompt: Text, or several texts.
            max_new_tokens: Maximum number of tokens to add.
            options: Further options; see `GenerationOptions`.
        """
        texts = [prompt] if isinstance(prompt, str) else list(prompt)
        results = text.generate(self, texts, max_new_tokens, options)
        return results[0] if isinstance(prompt, str) else results

    def stream_text(
        self, prompt: str, max_new_tokens: int = 128, **options: Unpack[GenerationOptions]
    ) -> Iterator[str]:
        """Yield the text that follows a prompt piece by piece, complete characters only.

        The pieces joined are the result of `generate_text`, with the same arguments.
        """
        return text.stream(self, prompt, max_new_tokens, options)

    def extra_files(self) -> dict[str, bytes]:
        """Return the files of the tokenizer, if there is one."""
        return {} if self.tokenizer is None else self.tokenizer.to_files()

    def load_extra_files(self, files: Mapping[str, bytes]) -> None:
        """Load the tokenizer from files; without files, the model has none.

        Args:
            files: Files that `extra_files` returned.
        """
        self.tokenizer = read_tokenizer(files) if files else None


def _complete(call: Call, log_probs: bool) -> Generation:
    """Return the result of a call as lists."""
    if call.options.num_beams > 1:
        return beams.search(call, log_probs)
    if call.options.draft is not None:
        return speculative.speculate(call, log_probs)
    return SamplingLoop(call, log_probs).result()


def _filled(rows: Iterable[Sequence[int]], like: Tensor) -> Tensor:
    """Return new tokens as a tensor; a shorter row repeats its last token."""
    lists = [list(row) for row in rows]
    longest = max(len(row) for row in lists)
    table: list[Any] = [row + row[-1:] * (longest - len(row)) for row in lists]
    tokens = convert_to_tensor(table, dtype="int64", device=like.device, backend=like.backend)
    return tokens.reshape(len(lists), longest)

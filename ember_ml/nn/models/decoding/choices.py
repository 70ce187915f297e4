"""Allowed continuations as a trie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

from ember_ml._core.errors import ArgumentError, ArgumentTypeError

Node = dict[int, "Node"]


class Choices:
    """Set of allowed continuations, each a sequence of tokens.

    Args:
        sequences: The continuations.
        vocab_size: Number of tokens in the vocabulary.
        stop_ids: Stop tokens. They end a continuation that is the beginning of another one.
    """

    def __init__(
        self, sequences: Iterable[Sequence[int]], vocab_size: int, stop_ids: Sequence[int] = ()
    ) -> None:
        self.stop_ids = list(stop_ids)
        self.root: Node = {}
        self._complete: set[int] = set()
        self.max_length = 0
        choices = [self._read(at, each, vocab_size) for at, each in enumerate(sequences)]
        if not choices:
            raise ArgumentError("generate: allowed has no continuations; pass at least one")
        for choice in choices:
            self._add(choice)
        for choice in choices:
            self._check_prefix(choice, choices)

    @property
    def count(self) -> int:
        """Number of different continuations."""
        return len(self._complete)

    def _read(self, at: int, sequence: Any, vocab_size: int) -> list[int]:
        try:
            choice = [index(token) for token in sequence]
        except TypeError:
            raise ArgumentTypeError(
                f"generate: allowed must be sequences of tokens; continuation {at} is "
                f"{sequence!r:.60}"
            ) from None
        if not choice:
            raise ArgumentError(f"generate: allowed: continuation {at} has no tokens")
        for token in choice:
            if not 0 <= token < vocab_size:
                raise ArgumentError(
                    f"generate: allowed: continuation {at} has the token {token}; the vocabulary "
                    f"has those from 0 to {vocab_size - 1}"
                )
        early = set(choice[:-1]) & set(self.stop_ids)
        if early:
            raise ArgumentError(
                f"generate: allowed: the stop token {min(early)} would end continuation {at}, "
                f"{choice}, before its last token"
            )
        return choice

    def _add(self, choice: list[int]) -> None:
        node = self.root
        for token in choice:
            node = node.setdefault(token, {})
        self._complete.add(id(node))
        self.max_length = max(self.max_length, len(choice))

    def _check_prefix(self, choice: list[int], choices: list[list[int]]) -> None:
        """Raise an error if nothing tells whether a continuation ends or becomes another one."""
        node = self._find(choice)
        if not node:
            return
        self.max_length = max(self.max_length, len(choice) + 1)
        longer = next(each for each in choices if each[: len(choice)] == choice and each != choice)
        if not self.stop_ids:
            raise ArgumentError(
                f"generate: allowed: {choice} is the beginning of {longer}; pass eos, which ends it"
            )
        both = set(self.stop_ids) & node.keys()
        if both:
            raise ArgumentError(
                f"generate: allowed: the stop token {min(both)} also continues {choice}"
            )

    def _find(self, tokens: Iterable[int]) -> Node | None:
        node: Node | None = self.root
        for token in tokens:
            node = None if node is None else node.get(token)
        return node

    def next_tokens(self, tokens: Sequence[int]) -> list[int]:
        """Return the tokens that may follow; empty if the continuation is complete.

        Args:
            tokens: Tokens generated so far.
        """
        node = self._find(tokens)
        if not node:
            return []
        return [*node, *self.stop_ids] if id(node) in self._complete else list(node)

    def is_complete(self, tokens: Sequence[int]) -> bool:
        """Return whether tokens are a whole continuation, which nothing can follow.

        Args:
            tokens: Tokens generated so far.
        """
        return not self._find(tokens)

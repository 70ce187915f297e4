"""Memorisation, compression, and copying what is not blank."""

from __future__ import annotations

import numpy as np

from ember_ml.backend.host_tasks.draws import IGNORED, Array, Draws

MAP = 3
"""The split, beside those of the examples, whose numbers make the map."""


def memorized(draws: Draws, vocab_size: int, seq_len: int, seed: int) -> tuple[Array, Array]:
    """Keys, each before a token in whose place its value is to be said; one map for all examples.

    Args:
        draws: the examples' random numbers.
        vocab_size: of all tokens; the last one stands where a value is to be said.
        seq_len: of inputs and targets.
        seed: of the map.
    """
    insert = vocab_size - 1
    num_keys = insert // 2
    scores = Draws(seed, MAP, np.zeros(1, np.int64)).uniform(insert - num_keys)[0]
    values = num_keys + np.argsort(scores)[:num_keys]
    keys = draws.below(num_keys, seq_len // 2)
    inputs = np.stack([keys, np.full_like(keys, insert)], axis=2).reshape(len(draws), -1)
    targets = np.stack([np.full_like(keys, IGNORED), values[keys]], axis=2)
    return inputs, targets.reshape(len(draws), -1)


def compressed(draws: Draws, vocab_size: int, seq_len: int) -> tuple[Array, Array]:
    """Random tokens and a last one; all of them are to be said again."""
    tokens = draws.below(vocab_size - 1, seq_len - 1)
    end = np.full((len(draws), 1), vocab_size - 1)
    whole = np.concatenate([tokens, end], axis=1)
    return whole, whole


def copied(
    draws: Draws, vocab_size: int, seq_len: int, num_tokens_to_copy: int
) -> tuple[Array, Array]:
    """Tokens among blanks, then a token after which they are to be said, in their order."""
    copy, blank, count = vocab_size - 1, vocab_size - 2, num_tokens_to_copy
    tokens = draws.below(vocab_size - 2, count)
    blanks = seq_len - 2 * count - 1
    before = np.sort(draws.below(count, blanks), axis=1)  # the token that each blank stands before
    places = np.arange(count) + np.apply_along_axis(
        lambda row: np.searchsorted(row, np.arange(count), side="right"), 1, before
    )
    inputs = np.full((len(draws), seq_len), blank)
    np.put_along_axis(inputs, places, tokens, axis=1)
    inputs[:, count + blanks] = copy
    targets = np.full((len(draws), seq_len), IGNORED)
    targets[:, -count:] = tokens
    return inputs, targets

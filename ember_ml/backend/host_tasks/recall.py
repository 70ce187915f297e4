"""Sequences of keys and values, in which keys come again."""

from __future__ import annotations

import numpy as np

from ember_ml.backend.host_tasks.draws import IGNORED, Array, Draws, seen_before


def in_context(
    draws: Draws,
    vocab_size: int,
    seq_len: int,
    *,
    multi_query: bool,
    noise_vocab_size: int,
    frac_noise: float,
    masked: bool,
) -> tuple[Array, Array]:
    """Inputs and targets of in-context recall, with noise between the pairs if there is any.

    Args:
        draws: the examples' random numbers.
        vocab_size: of all tokens, the noise among them.
        seq_len: of the whole sequence, before inputs and targets are taken from it.
        multi_query: whether each value of a key that was shown before is asked for, or only the
            last.
        noise_vocab_size: the last so many tokens are noise.
        frac_noise: the share of pairs that are noise instead.
        masked: whether only values that can be known are targets; else every next token is.
    """
    symbols = vocab_size - noise_vocab_size - (not multi_query)
    num_keys = symbols // 2
    pairs = seq_len // 2 - 1
    keys = draws.below(num_keys, pairs)
    values = num_keys + draws.below(symbols - num_keys, num_keys)  # of each key
    noisy = draws.uniform(pairs) < frac_noise
    noisy[np.arange(len(draws)), draws.below(pairs)] = False  # one pair is always shown
    noise = vocab_size - noise_vocab_size + draws.below(max(1, noise_vocab_size), pairs, 2)
    body = np.stack([keys, np.take_along_axis(values, keys, axis=1)], axis=2)
    body = np.where(noisy[..., None], noise, body) if noise_vocab_size else body

    counted = np.where(noisy, num_keys, keys)  # noise pairs count as one key that nobody asks for
    shown = np.zeros((len(draws), num_keys + 1), bool)
    np.put_along_axis(shown, counted, True, axis=1)
    last = np.argmax(np.where(shown[:, :num_keys], draws.uniform(num_keys), -1.0), axis=1)
    answer = np.take_along_axis(values, last[:, None], axis=1)

    known = np.zeros(body.shape, bool)
    known[..., 1] = seen_before(counted) & ~noisy & multi_query
    parts = [body.reshape(len(draws), -1), last[:, None], answer]
    if not multi_query:
        parts.insert(1, np.full((len(draws), 1), symbols))  # the copy prefix
    tokens = np.concatenate(parts, axis=1)
    asked = np.zeros(tokens.shape, bool)
    asked[:, : 2 * pairs] = known.reshape(len(draws), -1)
    asked[:, -1] = True
    return shifted(tokens, asked, masked)


def shifted(tokens: Array, asked: Array, masked: bool) -> tuple[Array, Array]:
    """Inputs, and the token after each as its target; if masked, only of those asked for."""
    targets = np.where(asked, tokens, IGNORED) if masked else tokens
    return tokens[:, :-1], targets[:, 1:]

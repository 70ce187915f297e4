"""Recall of keys and values that are several tokens long."""

from __future__ import annotations

import numpy as np

from ember_ml.backend.host_tasks.draws import IGNORED, Array, Draws, seen_before


def fuzzy(
    draws: Draws,
    vocab_size: int,
    seq_len: int,
    *,
    key_size: int,
    value_size: int,
    test: bool,
    masked: bool,
) -> tuple[Array, Array]:
    """Inputs and targets of fuzzy in-context recall.

    A motif is a tuple of different tokens. Which value belongs to a key is a function of the key
    and the example, so that no table of motifs is ever made.

    Args:
        draws: the examples' random numbers.
        vocab_size: of all tokens; the last one is the padding.
        seq_len: of inputs and targets.
        key_size: the most tokens of a key.
        value_size: the most tokens of a value.
        test: whether keys have the most tokens; else they are of all sizes.
        masked: whether only values that can be known are targets; else every next token is.
    """
    rows = len(draws)
    num_keys = (vocab_size - 1) // 2
    longest = key_size + value_size
    steps = seq_len // (1 + 1 + (key_size - 1) * test) + 1  # of pairs, of the shortest
    sizes = np.full((rows, steps), key_size)
    if not test:
        sizes = 1 + draws.below(key_size, steps)
    keys = _motifs(draws.uniform(steps * key_size).reshape(rows, steps, key_size), num_keys)
    keys, names = _cut(keys, sizes, num_keys)
    values, value_sizes = _values(draws, names, num_keys, vocab_size - 1, value_size)

    lengths = sizes + value_sizes
    probe_length = lengths[:, 0]  # the first pair is the probe
    end = seq_len - probe_length - longest
    latest = end - longest + 1  # so that a pair before it does not end the sequence
    place = draws.below(np.maximum(1, np.minimum(seq_len - 2 * probe_length, latest)))
    order = _inserted(lengths, place, end)
    return _laid_out(keys, sizes, values, value_sizes, names, order, seq_len, vocab_size, masked)


def _motifs(draws: Array, high: int) -> Array:
    """Different tokens in each motif: each token is drawn from those that are left."""
    count = draws.shape[-1]
    found = np.empty(draws.shape, np.int64)
    for at in range(count):
        token = np.minimum((draws[..., at] * (high - at)).astype(np.int64), high - at - 1)
        for lower in np.moveaxis(np.sort(found[..., :at], axis=-1), -1, 0):
            token = token + (token >= lower)
        found[..., at] = token
    return found


def _cut(motifs: Array, sizes: Array, base: int) -> tuple[Array, Array]:
    """Motifs of given sizes, -1 where they are shorter, and a number for each motif."""
    at = np.arange(motifs.shape[-1])
    cut = np.where(at < sizes[..., None], motifs, -1)
    return cut, ((cut + 1) * (base + 1) ** at).sum(axis=-1)


def _values(draws: Draws, names: Array, low: int, high: int, most: int) -> tuple[Array, Array]:
    """The value of each key, -1 where it is shorter, and its size."""
    own = draws.of(names, most + 1)
    sizes = 1 + np.minimum((own[..., 0] * most).astype(np.int64), most - 1)
    motifs, _ = _cut(_motifs(own[..., 1:], high - low), sizes, high - low)
    return np.where(motifs >= 0, motifs + low, -1), sizes


def _inserted(lengths: Array, place: Array, end: Array) -> Array:
    """Which pair comes when, -1 for none: pair 0 once its place is reached, and again at the end.

    The others come in their order until the sequence is long enough.
    """
    rows, steps = lengths.shape
    order = np.full((rows, steps + 1), -1)
    length = np.zeros(rows, np.int64)
    following = np.ones(rows, np.int64)
    shown = np.zeros(rows, bool)
    for at in range(steps):
        going = length < end
        probe = going & ~shown & (length >= place)
        pick = np.where(probe, 0, np.minimum(following, steps - 1))
        order[:, at] = np.where(going, pick, -1)
        following += going & ~probe
        shown |= probe
        length += np.where(going, lengths[np.arange(rows), pick], 0)
    order[:, -1] = 0
    return order


def _laid_out(
    keys: Array,
    sizes: Array,
    values: Array,
    value_sizes: Array,
    names: Array,
    order: Array,
    seq_len: int,
    vocab_size: int,
    masked: bool,
) -> tuple[Array, Array]:
    """The tokens of the pairs side by side, padded on the left."""
    rows = len(order)
    picked = np.maximum(order, 0)
    absent = order < 0
    motifs = np.concatenate([keys, values], axis=2)
    tokens = np.take_along_axis(motifs, picked[..., None], axis=1)
    tokens = np.where(absent[..., None], -1, tokens)
    named = np.where(
        absent, -1 - np.arange(order.shape[1]), np.take_along_axis(names, picked, axis=1)
    )
    asked = np.zeros(tokens.shape, bool)
    asked[..., keys.shape[2] :] = seen_before(named)[..., None]
    flat, asked = tokens.reshape(rows, -1), asked.reshape(rows, -1)
    # a stable sort by whether there is a token brings the gaps to the left
    places = np.argsort(flat >= 0, axis=1, kind="stable")[:, -(seq_len + 1) :]
    flat = np.take_along_axis(flat, places, axis=1)
    asked = np.take_along_axis(asked, places, axis=1) & (flat >= 0)
    whole = np.where(flat >= 0, flat, vocab_size - 1)
    wanted = asked if masked else flat >= 0
    targets = np.where(wanted, whole, IGNORED)
    return whole[:, :-1], targets[:, 1:]

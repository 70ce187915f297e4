"""In-context recall with keys and values of several tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ember_ml.configs.fields import Seed, Size
from ember_ml.mad.tasks.base import TINY, Task, TrainOn
from ember_ml.mad.tasks.draws import IGNORED, Draws, seen_before
from ember_ml.registry import register

if TYPE_CHECKING:
    from ember_ml.configs.tasks import FuzzyInContextRecallConfig


@register(
    "tasks/fuzzy-in-context-recall",
    aliases=["fuzzy_in_context_recall", "fuzzy_recall", "fuzzy-recall"],
)
class FuzzyInContextRecall(Task):
    """In-context recall of keys and values of several tokens.

    A motif is a tuple of one to three different tokens. Evaluation uses keys of the maximum size.
    The value of a key is a hash of the key and the example, so no table of motifs is needed.

    Args:
        vocab_size: Number of different tokens; the last one is the padding.
        seq_len: Number of tokens of an example.
        key_size: Maximum number of tokens of a key.
        value_size: Maximum number of tokens of a value.
        train_on: "all": training predicts every next token, as in MAD; "known": only the values
            that can be known, which takes fewer steps.
        num_train: Number of training examples.
        num_validation: Number of validation examples.
        num_test: Number of test examples.
        seed: Seed of the examples.

    Example:
        >>> inputs, targets = ember_ml.mad.tasks.FuzzyInContextRecall(num_train=8).train.batch([0])
        >>> inputs.shape == targets.shape
        True
    """

    short_name = "fuzzy"
    harder: ClassVar = {
        "vocab_size": (32, 64, 128),
        "seq_len": (256, 512, 1024),
        "num_train": (6400, 3200, 1600, 800),
    }
    scales: ClassVar = {
        "tiny": {"vocab_size": 8, "seq_len": 18, **TINY},
        "mini": {
            "vocab_size": 10,
            "seq_len": 48,
            "key_size": 2,
            "value_size": 2,
            "train_on": "known",
            "num_validation": 256,
            "steps": 500,
        },
    }

    def __init__(
        self,
        vocab_size: Size = 16,
        seq_len: Size = 128,
        key_size: Size = 3,
        value_size: Size = 3,
        train_on: TrainOn = "all",
        num_train: Size = 12800,
        num_validation: Size = 1280,
        num_test: Size = 1280,
        seed: Seed = 0,
    ) -> None:
        super().__init__(vocab_size, seq_len, num_train, num_validation, num_test, seed)
        self.key_size = key_size
        self.value_size = value_size
        self.train_on = train_on

    @staticmethod
    def check_config(config: FuzzyInContextRecallConfig) -> None:
        """Raise a ValueError for sizes that allow no example."""
        least = 2 * max(config.key_size, config.value_size) + 1
        if config.vocab_size < least:
            raise ValueError(f"vocab_size must be at least {least}, not {config.vocab_size}")
        least = 3 * (config.key_size + config.value_size)
        if config.seq_len < least:
            raise ValueError(f"seq_len must be at least {least}, not {config.seq_len}")

    def roles(self) -> list[tuple[int, str]]:
        """Return the roles of the tokens, as (end, role) pairs."""
        padding = self.vocab_size - 1
        return [(padding // 2, "key"), (padding, "value"), (self.vocab_size, "padding")]

    def generate(self, draws: Draws, *, test: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets; see `Task.generate`."""
        rows, key_size, seq_len = len(draws), self.key_size, self.seq_len
        longest = key_size + self.value_size
        shortest = 1 + (key_size if test else 1)
        steps = seq_len // shortest + 1  # upper bound on the number of pairs
        sizes = np.full((rows, steps), key_size) if test else 1 + draws.below(key_size, steps)
        uniform = draws.uniform(steps * key_size).reshape(rows, steps, key_size)
        pairs = _pairs(draws, uniform, sizes, self.vocab_size, self.value_size)

        probe_length = pairs.lengths[:, 0]  # the first pair is the probe
        end = seq_len - probe_length - longest
        latest = end - longest + 1  # so that no pair before the probe ends the sequence
        place = draws.below(np.maximum(1, np.minimum(seq_len - 2 * probe_length, latest)))
        order = _insert_probe(pairs.lengths, place, end)
        tokens, known = _lay_out(pairs, order, seq_len + 1)
        is_token = tokens >= 0
        is_target = known if test or self.train_on == "known" else is_token
        tokens = np.where(is_token, tokens, self.vocab_size - 1)
        return tokens[:, :-1], np.where(is_target, tokens, IGNORED)[:, 1:]


class _Pairs(NamedTuple):
    """Candidate pairs of every example."""

    keys: np.ndarray
    """(examples, pairs, key_size); -1 after the end of a shorter key."""
    values: np.ndarray
    """(examples, pairs, value_size); -1 after the end of a shorter value."""
    ids: np.ndarray
    """(examples, pairs); equal for equal keys."""
    lengths: np.ndarray
    """(examples, pairs); tokens of key and value together."""


def _pairs(
    draws: Draws, uniform: np.ndarray, sizes: np.ndarray, vocab_size: int, value_size: int
) -> _Pairs:
    """Draw keys of the given sizes, and the value bound to each."""
    num_keys = (vocab_size - 1) // 2
    num_values = vocab_size - 1 - num_keys
    keys = _cut(_motifs(uniform, num_keys), sizes)
    ids = ((keys + 1) * (num_keys + 1) ** np.arange(keys.shape[-1])).sum(axis=-1)
    own = draws.hashed(ids, value_size + 1)
    value_sizes = 1 + np.minimum((own[..., 0] * value_size).astype(np.int64), value_size - 1)
    values = _cut(_motifs(own[..., 1:], num_values), value_sizes)
    return _Pairs(keys, np.where(values >= 0, values + num_keys, -1), ids, sizes + value_sizes)


def _motifs(uniform: np.ndarray, high: int) -> np.ndarray:
    """Return motifs of different tokens below `high`, by sampling without replacement."""
    motifs = np.empty(uniform.shape, np.int64)
    for at in range(uniform.shape[-1]):
        token = np.minimum((uniform[..., at] * (high - at)).astype(np.int64), high - at - 1)
        for lower in np.moveaxis(np.sort(motifs[..., :at], axis=-1), -1, 0):
            token = token + (token >= lower)
        motifs[..., at] = token
    return motifs


def _cut(motifs: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Replace the tokens after the size of each motif by -1."""
    return np.where(np.arange(motifs.shape[-1]) < sizes[..., None], motifs, -1)


def _insert_probe(lengths: np.ndarray, place: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the order of the pairs in each sequence, -1 for none.

    Pair 0, the probe, comes once its place is reached, and again at the end. The others come in
    order until the sequence has `end` tokens.
    """
    rows, steps = lengths.shape
    order = np.full((rows, steps + 1), -1)
    length = np.zeros(rows, np.int64)
    following = np.ones(rows, np.int64)
    shown = np.zeros(rows, bool)
    for at in range(steps):
        active = length < end
        probe = active & ~shown & (length >= place)
        pick = np.where(probe, 0, np.minimum(following, steps - 1))
        order[:, at] = np.where(active, pick, -1)
        following += active & ~probe
        shown |= probe
        length += np.where(active, lengths[np.arange(rows), pick], 0)
    order[:, -1] = 0
    return order


def _lay_out(pairs: _Pairs, order: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate the tokens of the pairs, padded on the left with -1.

    Returns:
        Tokens, and whether each is a value that can be known; both of shape (examples, length).
    """
    rows = len(order)
    picked = np.maximum(order, 0)
    absent = order < 0
    motifs = np.concatenate([pairs.keys, pairs.values], axis=2)
    tokens = np.take_along_axis(motifs, picked[..., None], axis=1)
    tokens = np.where(absent[..., None], -1, tokens)
    ids = np.take_along_axis(pairs.ids, picked, axis=1)
    ids = np.where(absent, -1 - np.arange(order.shape[1]), ids)
    known = np.zeros(tokens.shape, bool)
    known[..., pairs.keys.shape[2] :] = seen_before(ids)[..., None]
    tokens, known = tokens.reshape(rows, -1), known.reshape(rows, -1)
    # a stable sort by whether there is a token moves the gaps to the left
    places = np.argsort(tokens >= 0, axis=1, kind="stable")[:, -length:]
    tokens = np.take_along_axis(tokens, places, axis=1)
    return tokens, np.take_along_axis(known, places, axis=1) & (tokens >= 0)

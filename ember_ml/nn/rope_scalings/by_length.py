"""Scalings whose frequencies depend on the length of the sequence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from ember_ml._core.errors import ArgumentError
from ember_ml.configs.fields import Positive, Size, ValidatedAs
from ember_ml.nn.rope_scalings.base import Frequencies, RopeScaling, frequencies
from ember_ml.registry import register

Factors = Annotated[Sequence[float], ValidatedAs(tuple[Positive, ...])]
"""A factor for each frequency; a tuple in the config."""


@register("rope_scalings/dynamic")
class DynamicScaling(RopeScaling):
    r"""Dynamic NTK scaling: the base grows with a sequence longer than the original length.

    .. math:: b' = b \, (s \, n / n_0 - s + 1)^{d / (d - 2)}

    for a sequence of n positions, original length n0 and d features. The keys of a KV cache keep
    the frequencies of the length at which they were computed. Generation beyond the original length
    therefore differs slightly from one pass over the whole sequence.

    Args:
        factor: The factor s.
        original_length: The original length n0.

    Reference: Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models",
    2023, section 3.3.

    Example:
        >>> scaling = nn.rope_scalings.DynamicScaling(2.0, original_length=16)
        >>> scaling.scale(100.0, 4, 16) == nn.rope_scalings.frequencies(100.0, 4)
        True
    """

    by_length = True

    def __init__(self, factor: Positive, original_length: Size) -> None:
        self.factor = factor
        self.original_length = original_length

    def scale(self, base: float, features: int, length: int) -> Frequencies:
        """Return the frequencies; see `RopeScaling.scale`."""
        if features <= 2:
            return frequencies(base, features)
        ratio = max(length, self.original_length) / self.original_length
        growth = self.factor * ratio - (self.factor - 1)
        return frequencies(base * growth ** (features / (features - 2)), features)


@register("rope_scalings/longrope")
class LongRoPE(RopeScaling):
    r"""LongRoPE: each frequency has its own factor, for short and for long sequences.

    .. math:: \omega_i' = \omega_i / \lambda_i

    The keys of a KV cache keep the factors of the length at which they were computed.

    Args:
        short_factors: Factors lambda of sequences up to the original length, one per frequency.
        long_factors: Factors lambda of longer sequences, one per frequency.
        original_length: Maximum sequence length of the pretraining.
        factor: Ratio of the longest to the original length, for the default `attention_factor`.
            Default: 1.
        attention_factor: Factor of the rotated queries and keys. Default: sqrt(1 + log(factor) /
            log(original_length)), or 1 if factor is at most 1.

    Reference: Ding et al., "LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens", 2024.

    Example:
        >>> scaling = nn.rope_scalings.LongRoPE((1.0, 1.0), (2.0, 4.0), original_length=16)
        >>> scaling.scale(100.0, 4, 17)
        (0.5, 0.025)
    """

    by_length = True

    def __init__(
        self,
        short_factors: Factors,
        long_factors: Factors,
        original_length: Size,
        factor: Positive = 1.0,
        attention_factor: Positive | None = None,
    ) -> None:
        self.short_factors, self.long_factors = tuple(short_factors), tuple(long_factors)
        self.original_length = original_length
        self.factor = factor
        own = 1.0
        if factor > 1 and original_length > 1:
            own = math.sqrt(1 + math.log(factor) / math.log(original_length))
        self.attention_factor = own if attention_factor is None else attention_factor

    def scale(self, base: float, features: int, length: int) -> Frequencies:
        """Return the frequencies; see `RopeScaling.scale`."""
        self.check(features)
        is_long = length > self.original_length
        factors = self.long_factors if is_long else self.short_factors
        speeds = frequencies(base, features)
        return tuple(speed / own for speed, own in zip(speeds, factors, strict=True))

    def check(self, features: int) -> None:
        """Raise an ArgumentError unless each frequency has a factor."""
        for name in ("short_factors", "long_factors"):
            count = len(getattr(self, name))
            if count != features // 2:
                raise ArgumentError(
                    f"LongRoPE: {name} has {count} factors; {features} rotated features need "
                    f"{features // 2}"
                )

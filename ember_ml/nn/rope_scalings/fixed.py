"""Scalings whose frequencies are the same for every length."""

from __future__ import annotations

import math

from ember_ml._core.errors import ArgumentError
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn.rope_scalings.base import Frequencies, RopeScaling, frequencies
from ember_ml.registry import register


@register("rope_scalings/linear")
class LinearScaling(RopeScaling):
    r"""Position interpolation: all frequencies are divided by a factor.

    .. math:: \omega_i' = \omega_i / s

    Args:
        factor: The factor s.

    Reference: Chen et al., "Extending Context Window of Large Language Models via Positional
    Interpolation", 2023.

    Example:
        >>> nn.rope_scalings.LinearScaling(2.0).scale(100.0, 4, 8)
        (0.5, 0.05)
    """

    def __init__(self, factor: Positive) -> None:
        self.factor = factor

    def scale(self, base: float, features: int, length: int) -> Frequencies:
        """Return the frequencies; see `RopeScaling.scale`."""
        return tuple(speed / self.factor for speed in frequencies(base, features))


@register("rope_scalings/llama3")
class Llama3Scaling(RopeScaling):
    r"""Scaling of Llama 3.1: low frequencies are divided by a factor, high ones stay.

    Frequencies between `low_factor` and `high_factor` periods per original length are interpolated.

    Args:
        factor: Factor of the low frequencies.
        original_length: Maximum sequence length of the pretraining.
        low_factor: Number of periods per original length below which frequencies are divided.
            Default: 1.
        high_factor: Number of periods per original length above which frequencies stay, more than
            `low_factor`. Default: 4.

    Reference: Grattafiori et al., "The Llama 3 Herd of Models", 2024.

    Example:
        >>> nn.rope_scalings.Llama3Scaling(8.0, original_length=64).scale(10000.0, 4, 8)
        (1.0, 0.00125)
    """

    def __init__(
        self,
        factor: Positive,
        original_length: Size,
        low_factor: Positive = 1.0,
        high_factor: Positive = 4.0,
    ) -> None:
        if low_factor >= high_factor:
            raise ArgumentError(
                f"Llama3Scaling: low_factor ({low_factor}) must be less than high_factor "
                f"({high_factor})"
            )
        self.factor = factor
        self.original_length = original_length
        self.low_factor, self.high_factor = low_factor, high_factor

    def scale(self, base: float, features: int, length: int) -> Frequencies:
        """Return the frequencies; see `RopeScaling.scale`."""
        return tuple(self._scaled(speed) for speed in frequencies(base, features))

    def _scaled(self, speed: float) -> float:
        periods = self.original_length * speed / (2 * math.pi)
        share = (periods - self.low_factor) / (self.high_factor - self.low_factor)
        share = min(max(share, 0.0), 1.0)
        return share * speed + (1 - share) * speed / self.factor


@register("rope_scalings/yarn")
class YaRN(RopeScaling):
    r"""YaRN: interpolation of the low frequencies, and a factor of queries and keys.

    .. math:: \omega_i' = \gamma_i \omega_i + (1 - \gamma_i) \omega_i / s

    gamma falls linearly with i, from 1 at `beta_fast` rotations per original length to 0 at
    `beta_slow`.

    Args:
        factor: The factor s.
        original_length: Maximum sequence length of the pretraining.
        beta_fast: Number of rotations per original length from which frequencies stay. Default: 32.
        beta_slow: Number of rotations up to which frequencies are divided by s. Default: 1.
        attention_factor: Factor of the rotated queries and keys. Default: 0.1 log(s) + 1.
        truncate: Whether the ends of the linear part are rounded to whole pairs. Default: True.

    Reference: Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models",
    2023.

    Example:
        >>> round(nn.rope_scalings.YaRN(4.0, original_length=64).attention_factor, 4)
        1.1386
    """

    def __init__(
        self,
        factor: Positive,
        original_length: Size,
        beta_fast: Positive = 32.0,
        beta_slow: Positive = 1.0,
        attention_factor: Positive | None = None,
        truncate: bool = True,
    ) -> None:
        self.factor = factor
        self.original_length = original_length
        self.beta_fast, self.beta_slow = beta_fast, beta_slow
        own = 0.1 * math.log(max(factor, 1.0)) + 1.0
        self.attention_factor = own if attention_factor is None else attention_factor
        self.truncate = truncate

    def scale(self, base: float, features: int, length: int) -> Frequencies:
        """Return the frequencies; see `RopeScaling.scale`."""
        low, high = (
            self._place(self.beta_fast, base, features),
            self._place(self.beta_slow, base, features),
        )
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, features - 1)
        width = high - low or 0.001
        scaled = []
        for pair, speed in enumerate(frequencies(base, features)):
            share = 1 - min(max((pair - low) / width, 0.0), 1.0)
            scaled.append(share * speed + (1 - share) * speed / self.factor)
        return tuple(scaled)

    def _place(self, rotations: float, base: float, features: int) -> float:
        """Return the index of the pair that rotates so often in the original length."""
        period = self.original_length / (rotations * 2 * math.pi)
        return features * math.log(period) / (2 * math.log(base))

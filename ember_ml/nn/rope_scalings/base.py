"""The base class of the scalings of rotary frequencies, and their lookup by name."""

from __future__ import annotations

from ember_ml.configs.base import Config
from ember_ml.configs.fields import ComponentLike
from ember_ml.registry import build

Frequencies = tuple[float, ...]
"""Angle per position of each pair of features."""


def frequencies(base: float, features: int) -> Frequencies:
    """Return the frequencies of rotary embeddings without scaling.

    Args:
        base: Approximate ratio of the longest to the shortest period.
        features: Number of rotated features: two per frequency.

    Example:
        >>> nn.rope_scalings.frequencies(100.0, 4)
        (1.0, 0.1)
    """
    return tuple(base ** (-at / features) for at in range(0, features, 2))


class RopeScaling:
    """Function from the base of rotary embeddings to the frequencies of a longer context.

    Subclasses implement `scale`.

    Attributes:
        attention_factor: Factor of the rotated queries and keys.
        by_length: Whether the frequencies depend on the length of the sequence.
    """

    config: Config | None = None
    attention_factor: float = 1.0
    by_length: bool = False

    def scale(self, base: float, features: int, length: int) -> Frequencies:
        """Return the frequencies.

        Args:
            base: Base of the frequencies without scaling.
            features: Number of rotated features: two per frequency.
            length: Number of positions of the longest sequence of the batch, with padding.
        """
        raise NotImplementedError

    def check(self, features: int) -> None:
        """Raise an ArgumentError if the scaling does not fit a number of rotated features.

        Args:
            features: Number of rotated features: two per frequency.
        """

    def __repr__(self) -> str:
        fields = self.config.to_dict() if self.config is not None else {}
        arguments = ", ".join(
            f"{name}={value!r}" for name, value in fields.items() if name != "type"
        )
        return f"{type(self).__name__}({arguments})"


def get(scaling: ComponentLike | None) -> RopeScaling | None:
    """Return a scaling, or None for None.

    Args:
        scaling: A name, a config, a `{"type": ...}` mapping, or a scaling, which is returned as it
            is.

    Example:
        >>> nn.rope_scalings.get({"type": "linear", "factor": 2.0}).scale(100.0, 4, 8)
        (0.5, 0.05)
    """
    built: RopeScaling | None = None if scaling is None else build("rope_scalings", scaling)
    return built

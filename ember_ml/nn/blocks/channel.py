"""What stands behind a mixer in a block."""

from __future__ import annotations

from typing import Any

from ember_ml.configs.patterns import items_of


def behind(channel_mixer: Any) -> list[Any]:
    """The channel mixers that were asked for; none for "none" and None."""
    return [] if channel_mixer in (None, "none") else items_of(channel_mixer)

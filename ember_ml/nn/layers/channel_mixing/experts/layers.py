"""Experts that are layers of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.module import Module


class LayerExperts(Module):
    """Experts that are layers, each with weights of its own.

    Args:
        num_experts: how many.
        config: of which each is made.
    """

    in_blocks: bool = False
    """Whether many small groups of items can be worked on at once, each by any expert."""
    ITEMS = "layers"

    def __init__(self, num_experts: int, config: Any) -> None:
        self.layers = [config.create() for _ in range(num_experts)]

    def run_groups(self, groups: Sequence[tuple[Tensor, ...]]) -> list[Tensor]:
        """Each expert's outputs for its group of items; none for a group without items."""
        return [
            layer(*group)
            for layer, group in zip(self.layers, groups, strict=True)
            if group[0].shape[0]
        ]

    def run_blocks(self, blocks: tuple[Tensor, ...], owners: Tensor) -> Tensor:
        """The outputs of one block (experts, items, ...) of items for each expert."""
        each = zip(*[ops.unstack(block) for block in blocks], strict=True)
        return ops.stack([layer(*given) for layer, given in zip(self.layers, each, strict=True)])

"""Language models that repeat one block."""

from __future__ import annotations

from typing import Any

from ember_ml.nn.models.language import LanguageModel


class BlockModel(LanguageModel):
    """A language model of one block, so many times.

    Args:
        block: {"type": ...} and the options of its own that the block is given.
        num_layers: how many blocks there are.
        vocab_size: how many tokens there are.
        hidden_size: the width of the model.
        shared: options that the blocks and the model have in common, such as norm and dropout.
        options: those that the model alone has.
    """

    def __init__(
        self,
        block: dict[str, Any],
        num_layers: int,
        vocab_size: int,
        hidden_size: int,
        shared: dict[str, Any],
        **options: Any,
    ) -> None:
        super().__init__(
            [{**block, **shared}] * num_layers, vocab_size, hidden_size, **shared, **options
        )

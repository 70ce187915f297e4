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
        norm, dropout, stochastic_depth, norm_eps: of the blocks and of the model.
        max_length, tie_weights, positions: of the model.
    """

    def __init__(
        self,
        block: dict[str, Any],
        num_layers: int,
        vocab_size: int,
        hidden_size: int,
        norm: str,
        dropout: float,
        stochastic_depth: float,
        max_length: int | None,
        tie_weights: bool,
        positions: str = "none",
        norm_eps: float | None = None,
    ) -> None:
        shared: dict[str, Any] = {
            "norm": norm,
            "dropout": dropout,
            "stochastic_depth": stochastic_depth,
        }
        if norm_eps is not None:
            shared["norm_eps"] = norm_eps
        super().__init__(
            [{**block, **shared}] * num_layers,
            vocab_size,
            hidden_size,
            **shared,
            max_length=max_length,
            tie_weights=tie_weights,
            positions=positions,
        )

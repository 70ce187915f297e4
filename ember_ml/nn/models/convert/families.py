"""What a family of models of transformers is, for the two directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ember_ml.configs.base import Config
from ember_ml.nn.models.convert.layouts import Piece, pieces_of
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.language import LanguageModel

HEAD = "lm_head.weight"


@dataclass(frozen=True)
class Family:
    """Models of one kind.

    Attributes:
        prefix: what stands before the names of the tensors but the head's, or, in checkpoints
            that were saved without the head, before none.
        embedding: the name of the embedding, without the prefix.
        derived: how the names end of tensors that follow from the config; older files have them.
        config: the config of the model here that a config.json means.
        pieces: the variables of such a model, with the names of their tensors, but those of the
            embedding and of the head.
    """

    prefix: str
    embedding: str
    derived: tuple[str, ...]
    config: Callable[[Settings], Config]
    pieces: Callable[[LanguageModel], list[Piece]]

    def all_pieces(self, model: LanguageModel) -> list[Piece]:
        """The variables with the whole names of their tensors."""
        inner = pieces_of(model.embedding.weight, self.embedding) + self.pieces(model)
        whole = [
            Piece(each.variable, tuple(self.prefix + name for name in each.names), each.layout)
            for each in inner
        ]
        return whole + ([] if model.head is None else pieces_of(model.head.weight, HEAD))
